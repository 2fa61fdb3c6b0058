import tarfile

import numpy as np
import pytest

from sfboost_lab.datasets import load
from sfboost_lab.datasets.sources import MissingDataError

image = pytest.importorskip("PIL.Image", reason="pictures need pillow: pip install 'sfboost[data]'")
pytest.importorskip("pandas", reason="the metadata needs pandas: pip install 'sfboost[app]'")
pytestmark = pytest.mark.usefixtures("no_data")

HEADER = ",patient,node,x_coord,y_coord,tumor,slide,center,split"


@pytest.fixture
def wilds(tmp_path):
    """Ten patches for each of five hospitals, in the layout of WILDS."""
    root = tmp_path / "camelyon17_v1.0"
    lines = [HEADER]
    for center in range(5):
        for k in range(10):
            patient, node, x, y = f"{4 + center:03}", center % 3, 96 * k, 32 * center
            folder = root / f"patches/patient_{patient}_node_{node}"
            folder.mkdir(parents=True, exist_ok=True)
            patch = folder / f"patch_patient_{patient}_node_{node}_x_{x}_y_{y}.png"
            image.new("RGB", (96, 96), (center, k, 0)).save(patch)
            number = 10 * center + k
            lines.append(f"{number},{patient},{node},{x},{y},{k % 2},{center},{center},{int(k == 9)}")
    (root / "metadata.csv").write_text("\n".join(lines) + "\n")
    return tmp_path


def test_the_splits_are_the_official_ones(wilds):
    made = load("camelyon17", data_dir=wilds)
    assert made.train == ("hospital-0", "hospital-3", "hospital-4")
    assert (made.validate, made.test) == (("hospital-1",), ("hospital-2",))
    sizes = {domain.name: len(domain) for domain in made.domains}
    assert sizes["hospital-0"] == 9
    assert sizes["hospital-0-held-out"] == 1
    assert sizes["hospital-1"] == sizes["hospital-2"] == 10
    assert sum(sizes.values()) == 50


def test_each_patch_belongs_to_its_row(wilds):
    made = load("camelyon17", data_dir=wilds)
    for hospital in (0, 1, 2, 3, 4):
        domain = made.domain(f"hospital-{hospital}")
        assert domain.X[0].shape == (3, 96, 96)
        for k in range(len(domain)):
            assert domain.X[k][:2, 0, 0].tolist() == [hospital, k]
        np.testing.assert_array_equal(domain.y, np.arange(len(domain)) % 2)


def test_the_archive_of_wilds_is_read_too(wilds, tmp_path):
    packed = tmp_path / "camelyon17_v1.0.tar.gz"
    with tarfile.open(packed, "w:gz") as made:
        made.add(wilds / "camelyon17_v1.0", arcname=".")
    dataset = load("camelyon17", root=packed)
    assert dataset.domain("hospital-2").X[3][1, 0, 0] == 3


def test_wrong_metadata_and_a_wrong_folder_are_explained(wilds, tmp_path):
    with pytest.raises(MissingDataError, match=r"Put it at .*camelyon17_v1\.0"):
        load("camelyon17", data_dir=tmp_path / "nothing")
    with pytest.raises(MissingDataError, match=r"has no metadata\.csv"):
        load("camelyon17", root=tmp_path)
    (wilds / "camelyon17_v1.0/metadata.csv").write_text(",patient\n0,004\n")
    with pytest.raises(ValueError, match="has no column"):
        load("camelyon17", data_dir=wilds)
