import io
import tarfile
import zipfile

import pytest

from sfboost_lab.datasets import archives
from sfboost_lab.datasets.archives import UnsafeArchiveError, unpack


def tar_of(path, *infos, mode="w"):
    with tarfile.open(path, mode) as made:
        for info, content in infos:
            info.size = len(content) if info.isreg() else 0
            made.addfile(info, io.BytesIO(content))
    return path


def entry(name, content=b"hello", kind=tarfile.REGTYPE, link=""):
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, link
    return info, content


OUTSIDE = ["../evil", "a/../../evil", "/etc/evil", "C:\\evil", "..\\evil", "\\\\host\\evil"]


@pytest.mark.parametrize("name", OUTSIDE)
def test_a_tar_member_outside_its_folder_is_refused(tmp_path, name):
    archive = tar_of(tmp_path / "a.tar", entry("fine"), entry(name))
    with pytest.raises(UnsafeArchiveError, match="points outside"):
        unpack(archive, tmp_path / "out")
    assert [p.name for p in tmp_path.iterdir()] == ["a.tar"]


@pytest.mark.parametrize("name", OUTSIDE)
def test_a_zip_member_outside_its_folder_is_refused(tmp_path, name):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as made:
        made.writestr(name, "evil")
    with pytest.raises(UnsafeArchiveError, match="points outside"):
        unpack(tmp_path / "a.zip", tmp_path / "out")
    assert [p.name for p in tmp_path.iterdir()] == ["a.zip"]


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE])
def test_links_and_devices_in_a_tar_are_refused(tmp_path, kind):
    archive = tar_of(tmp_path / "a.tar", entry("fine"), entry("link", b"", kind, "fine"))
    with pytest.raises(UnsafeArchiveError, match="a link or a device"):
        unpack(archive, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_link_in_a_zip_is_refused(tmp_path):
    info = zipfile.ZipInfo("link")
    info.external_attr = 0o120777 << 16
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as made:
        made.writestr(info, "/etc/passwd")
    with pytest.raises(UnsafeArchiveError, match="a link"):
        unpack(tmp_path / "a.zip", tmp_path / "out")


@pytest.mark.parametrize("name", ["bomb.zip", "bomb.tar.gz"])
def test_a_bomb_is_refused(tmp_path, monkeypatch, name):
    zeros, archive = bytes(40_000_000), tmp_path / name
    if name.endswith("zip"):
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as made:
            made.writestr("zeros", zeros)
    else:
        tar_of(archive, entry("zeros", zeros), mode="w:gz")
    assert archive.stat().st_size < 60_000
    monkeypatch.setattr(archives, "MAX_RATIO", 30)
    with pytest.raises(UnsafeArchiveError, match="far more than its size suggests"):
        unpack(archive, tmp_path / "out")
    assert [p.name for p in tmp_path.iterdir()] == [name]


def test_the_default_limits_refuse_a_bomb_of_a_quarter_gigabyte(tmp_path):
    with zipfile.ZipFile(tmp_path / "bomb.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as made:
        made.writestr("zeros", bytes(250_000_000))
    with pytest.raises(UnsafeArchiveError, match="far more than its size suggests"):
        unpack(tmp_path / "bomb.zip", tmp_path / "out")


def test_the_number_of_files_is_limited(tmp_path, monkeypatch):
    archive = tar_of(tmp_path / "a.tar", *[entry(f"f{k}", b"") for k in range(5)])
    monkeypatch.setattr(archives, "MAX_FILES", 4)
    with pytest.raises(UnsafeArchiveError, match="4 files"):
        unpack(archive, tmp_path / "out")
    monkeypatch.setattr(archives, "MAX_FILES", 5)
    assert len(list(unpack(archive, tmp_path / "out").iterdir())) == 5


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:xz"])
def test_an_honest_tar_is_unpacked_whole(tmp_path, mode):
    archive = tar_of(tmp_path / "a.tar", entry("a/b.txt", b"one"), entry("c.txt", b"two"), mode=mode)
    out = unpack(archive, tmp_path / "deep/out")
    assert (out / "a/b.txt").read_bytes() == b"one"
    assert (out / "c.txt").read_bytes() == b"two"
    assert unpack(archive, out) == out


def test_what_is_no_archive_is_refused_with_a_sentence(tmp_path):
    (tmp_path / "words.tar").write_text("these are words")
    with pytest.raises(UnsafeArchiveError, match="cannot be read as a tar or zip"):
        unpack(tmp_path / "words.tar", tmp_path / "out")


def test_a_cut_archive_leaves_nothing(tmp_path):
    archive = tar_of(tmp_path / "a.tar.gz", entry("a", bytes(range(256)) * 999), mode="w:gz")
    archive.write_bytes(archive.read_bytes()[:-40])
    with pytest.raises(UnsafeArchiveError, match="cannot be read"):
        unpack(archive, tmp_path / "out")
    assert [p.name for p in tmp_path.iterdir()] == ["a.tar.gz"]
