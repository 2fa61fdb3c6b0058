import io
import tarfile
import zipfile

import numpy as np
import pytest

from sfboost.datasets import image_folder
from sfboost_lab.datasets import load
from sfboost_lab.datasets.archives import UnsafeArchiveError
from sfboost_lab.datasets.sources import MissingDataError

pytest.importorskip("PIL", reason="pictures need pillow: pip install 'sfboost[data]'")
pytestmark = pytest.mark.usefixtures("no_data")


def test_a_folder_and_a_tar_hold_the_same_pictures(picture_folder, picture_tar):
    folder, tar = image_folder(picture_folder), load("image_folder", root=picture_tar)
    assert folder.domain_names == tar.domain_names == ("art_painting", "cartoon", "photo", "sketch")
    assert folder.classes == tar.classes == ("dog", "elephant", "guitar")
    for a, b in zip(folder.domains, tar.domains, strict=True):
        np.testing.assert_array_equal(a.y, b.y)
        assert a.X.names == b.X.names
        for k in range(len(a)):
            assert a.X.files[k].read_bytes() == b.X.files[k].read_bytes()
            np.testing.assert_array_equal(a.X[k], b.X[k])


@pytest.mark.parametrize("kind", ["zip", "tar.gz"])
def test_a_packed_archive_is_unpacked_into_the_cache_once(pictures, tmp_path, cache, kind):
    path = tmp_path / f"pacs.{kind}"
    if kind == "zip":
        with zipfile.ZipFile(path, "w") as made:
            for name, content in pictures.items():
                made.writestr(name, content)
    else:
        with tarfile.open(path, "w:gz") as made:
            for name, content in pictures.items():
                info = tarfile.TarInfo(name)
                info.size = len(content)
                made.addfile(info, io.BytesIO(content))
    for _ in range(2):
        assert load("image_folder", root=path).domain("sketch").X[0].shape == (3, 20, 16)
    assert len(list((cache / "unpacked").iterdir())) == 1
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


def test_a_tar_with_a_link_is_refused(tmp_path):
    with tarfile.open(tmp_path / "bad.tar", "w") as made:
        info = tarfile.TarInfo("a/b/c.jpg")
        info.type, info.linkname = tarfile.SYMTYPE, "/etc/passwd"
        made.addfile(info)
    with pytest.raises(UnsafeArchiveError, match="a link"):
        load("image_folder", root=tmp_path / "bad.tar")


def test_pacs_leaves_one_domain_out(picture_folder):
    pacs = load("pacs", data_dir=picture_folder, test="photo")
    assert pacs.test == ("photo",)
    assert pacs.train == ("art_painting", "cartoon", "sketch")
    assert load("pacs", root=picture_folder).test == ("sketch",)
    assert load("pacs", root=picture_folder, size=8).domain("photo").X[0].shape == (3, 8, 8)


def test_pooled_pictures_stay_on_disk(picture_tar):
    X, y, sample_domain = load("pacs", root=picture_tar).pooled("train")
    assert len(X) == len(y) == len(sample_domain) == 45
    assert X[44].shape == (3, 20, 16)


def test_an_unknown_domain_and_a_missing_file_are_explained(picture_folder, tmp_path):
    with pytest.raises(ValueError, match=r"names \['foto'\] as test"):
        load("pacs", root=picture_folder, test="foto")
    with pytest.raises(MissingDataError, match="Put it at"):
        load("pacs", data_dir=tmp_path)


def test_ones_own_pictures_are_found_by_name(picture_folder):
    made = load("image_folder", root=picture_folder, test="photo", size=6)
    assert made.test == ("photo",)
    assert load("image_folder", root="pacs", data_dir=picture_folder).train == made.domain_names
