import numpy as np
import pytest

from sfboost.datasets import Dataset, Domain
from sfboost_lab.datasets import load, write_sheet
from sfboost_lab.datasets.sheet import _most_shifted, _pick, _rgb, label_rates

pytest.importorskip("matplotlib", reason="figures need matplotlib: pip install 'sfboost[app]'")


def pixels(path):
    image = pytest.importorskip("PIL.Image", reason="needs pillow: pip install 'sfboost[data]'")
    with image.open(path) as opened:
        return np.asarray(opened.convert("RGB")).astype(int)


def test_a_sheet_of_colored_digits_is_red_and_green(tmp_path):
    shown = pixels(write_sheet(load("colored_digits"), tmp_path / "digits.png"))
    red, green, blue = shown[..., 0], shown[..., 1], shown[..., 2]
    assert ((red > 200) & (green < 60) & (blue < 60)).sum() > 500
    assert ((green > 200) & (red < 60) & (blue < 60)).sum() > 500


def test_a_sheet_of_pictures_shows_the_pictures(picture_tar, tmp_path):
    shown = pixels(write_sheet(load("pacs", root=picture_tar), tmp_path / "pacs.png", n_examples=6))
    assert len(np.unique(shown.reshape(-1, 3), axis=0)) > 1000


PAGES = [("ac", "png"), ("ac", "pdf"), ("ac", "svg"), ("gaussian", "png"), ("multiclass_ac", "png")]


@pytest.mark.parametrize(("name", "ending"), PAGES)
def test_a_table_gets_a_page_in_any_format(name, ending, tmp_path):
    path = write_sheet(load(name, n_rows=60), tmp_path / f"page.{ending}")
    assert path.stat().st_size > 2000


def test_words_missing_values_and_wide_tables_are_drawn(tmp_path):
    pd = pytest.importorskip("pandas", reason="tables need pandas: pip install 'sfboost[app]'")
    table = pd.DataFrame({"ward": ["a", None, "b"] * 4, "empty": [np.nan] * 12, "age": np.arange(12.0)})
    wide = pd.concat([table, pd.DataFrame({f"w{k}": ["u", "v", "u"] * 4 for k in range(20)})], axis=1)
    y = np.arange(12) % 2
    made = Dataset("made", (Domain("a", wide, y), Domain("b", wide, y)), train=("a",), test=("b",))
    assert write_sheet(made, tmp_path / "page.png").stat().st_size > 2000


def test_the_columns_that_move_most_are_chosen():
    X = np.random.default_rng(0).normal(size=(200, 40))
    moved = X + 5 * np.isin(np.arange(40), range(10, 25))
    y = np.arange(200) % 2
    assert _most_shifted([Domain("a", X, y), Domain("b", moved, y)], 40) == list(range(10, 25))


def test_label_rates_leave_rows_without_label_out():
    made = Dataset("made", (Domain("a", np.zeros((4, 1)), np.array([0, 1, 1, -1])),), train=("a",), test=())
    np.testing.assert_allclose(label_rates(made)["a"], [1 / 3, 2 / 3])


def test_examples_have_the_label_of_their_column_and_none_comes_twice():
    domain = load("colored_digits").domain("test-0.1")
    labels = np.repeat([0, 1], 5)
    chosen = _pick(domain, labels, np.random.default_rng(0))
    assert len(set(chosen)) == 10
    np.testing.assert_array_equal(domain.y[chosen], labels)


def test_two_channels_are_red_and_green():
    image = np.zeros((2, 1, 2))
    image[0, 0, 0] = image[1, 0, 1] = 1
    assert _rgb(image).tolist() == [[[1, 0, 0], [0, 1, 0]]]


def test_the_style_of_the_user_is_left_alone(tmp_path):
    import matplotlib as mpl

    before = dict(mpl.rcParams)
    write_sheet(load("ac", n_rows=20), tmp_path / "page.png")
    assert dict(mpl.rcParams) == before
