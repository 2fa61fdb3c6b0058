import numpy as np
import pytest

from sfboost.datasets import ImageSequence, image_folder
from sfboost.datasets.images import decode, decode_all

image = pytest.importorskip("PIL.Image", reason="pictures need pillow: pip install 'sfboost[data]'")


@pytest.fixture
def colors(tmp_path):
    """Twenty 9x6 PNGs; all pixels of number k are k."""
    for k in range(20):
        image.new("RGB", (9, 6), (k, k, k)).save(tmp_path / f"{k:02}.png")
    return ImageSequence(tmp_path, [f"{k:02}.png" for k in range(20)])


def test_one_picture_is_bytes_of_channels_height_width(colors):
    assert colors[3].shape == (3, 6, 9)
    assert colors[3].dtype == np.uint8
    assert (colors[-1] == 19).all()


def test_slices_and_index_arrays_stay_on_disk(colors):
    assert colors[2:5].names == ["02.png", "03.png", "04.png"]
    assert colors[np.array([7, 1])].names == ["07.png", "01.png"]
    assert colors[np.arange(20) >= 18].names == ["18.png", "19.png"]
    assert (colors[:3] + colors[5:6]).names == ["00.png", "01.png", "02.png", "05.png"]


def test_pictures_of_two_data_sets_are_not_pooled(colors, tmp_path):
    with pytest.raises(ValueError, match="one data set"):
        colors + ImageSequence(tmp_path / "others", ["00.png"])


def test_sizes_that_differ_are_answered_by_a_sentence(colors, tmp_path):
    image.new("RGB", (3, 3)).save(tmp_path / "00.png")
    with pytest.raises(ValueError, match=r"choose one size with resized"):
        decode_all(colors.files, None)


def test_grey_and_palette_pictures_get_three_channels(tmp_path):
    for mode in ("L", "P", "RGBA", "1"):
        image.new(mode, (4, 4)).save(tmp_path / "a.png")
        assert decode(tmp_path / "a.png").shape == (3, 4, 4)


@pytest.mark.parametrize("content", [b"", b"these are words", b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff\xe0"])
def test_what_is_no_picture_is_named(tmp_path, content):
    (tmp_path / "a.jpg").write_bytes(content)
    with pytest.raises(ValueError, match=r"a\.jpg .*cannot be read as a picture") as told:
        decode(tmp_path / "a.jpg")
    assert "BytesIO" not in str(told.value)


def test_a_cut_picture_is_refused(colors, tmp_path):
    rng = np.random.default_rng(0)
    image.fromarray(rng.integers(0, 256, (64, 64, 3), dtype=np.uint8)).save(tmp_path / "a.jpg")
    (tmp_path / "a.jpg").write_bytes((tmp_path / "a.jpg").read_bytes()[:1500])
    with pytest.raises(ValueError, match="cannot be read as a picture"):
        decode(tmp_path / "a.jpg")


def test_domains_and_labels_are_the_folders_wherever_they_lie(folder):
    made = image_folder(folder, test="sketch", size=8)
    assert (made.train, made.test, made.classes) == (("photo",), ("sketch",), ("dog", "elephant", "guitar"))
    photo = made.domain("photo")
    assert [name.split("/")[2] for name in photo.X.names] == [made.classes[k] for k in photo.y]
    assert (len(photo), photo.X[0].shape) == (15, (3, 8, 8))
    inner = image_folder(folder / "pacs")
    assert inner.domain("photo").X.names[0] == "photo/dog/pic_000.png"
    X, y, domain = inner.pooled("train")
    assert len(X) == len(y) == len(domain) == 30


def test_folders_without_pictures_are_told(tmp_path, folder):
    with pytest.raises(ValueError, match="holds no pictures"):
        image_folder(tmp_path)
    with pytest.raises(FileNotFoundError, match="is no folder"):
        image_folder(tmp_path / "nothing")
    with pytest.raises(ValueError, match=r"names \['foto'\] as test"):
        image_folder(folder, test="foto")
