import numpy as np
import pytest

from sfboost_lab.datasets import export, load
from sfboost_lab.datasets.own_tables import from_table

pytest.importorskip("pyarrow", reason="Parquet needs pyarrow: pip install 'sfboost[app]'")
pd = pytest.importorskip("pandas", reason="Parquet needs pandas: pip install 'sfboost[app]'")


@pytest.mark.parametrize("name", ["ac", "multiclass_ac", "gaussian", "three_parts"])
def test_what_is_exported_reads_back(name, tmp_path):
    made = load(name, n_rows=50)
    back = from_table(export(made, tmp_path / "made.parquet"), target="label", domain="domain")
    assert back.classes == made.classes
    for a in made.domains:
        b = back.domain(a.name)
        np.testing.assert_array_equal(b.X.to_numpy(), a.X)
        np.testing.assert_array_equal(b.y, a.y)


def test_colored_digits_are_pixels_and_colors(tmp_path):
    made = load("colored_digits", view="table")
    rows = pd.read_parquet(export(made, tmp_path / "digits.parquet"))
    assert list(rows.columns[:3]) == ["domain", "label", "pixel_0"]
    assert list(rows.columns[-2:]) == ["red", "green"]
    assert len(rows) == 1000 + 4 * 200 + 11 * 597
    assert set(rows["label"]) == {"0 to 4", "5 to 9"}


def test_image_arrays_become_a_column_per_value(tmp_path):
    rows = pd.read_parquet(export(load("colored_digits"), tmp_path / "digits.parquet"))
    assert len(rows.columns) == 2 + 128
    first = load("colored_digits").domain("train-0.9").X[0].ravel()
    np.testing.assert_array_equal(rows.iloc[0, 2:].to_numpy(dtype=np.float32), first)


def test_a_table_keeps_words_missing_values_and_missing_labels(tmp_path):
    rows = pd.DataFrame(
        {
            "age": [1.0, None, 3.0],
            "ward": ["a", None, "b"],
            "town": ["X", "X", "Y"],
            "sick": ["no", "yes", None],
        }
    )
    made = from_table(rows, target="sick", domain="town", test="Y")
    path = export(made, tmp_path / "made.parquet")
    back = from_table(path, target="label", domain="domain", test="Y")
    for a, b in zip(made.domains, back.domains, strict=True):
        pd.testing.assert_frame_equal(a.X, b.X)
        np.testing.assert_array_equal(a.y, b.y)


def test_pictures_are_exported_as_their_bytes(picture_tar, pictures, tmp_path):
    path = export(load("pacs", root=picture_tar), tmp_path / "pacs.parquet")
    rows = pd.read_parquet(path)
    assert len(rows) == 60
    assert dict(zip(rows["name"], rows["picture"], strict=True)) == pictures


def test_a_failed_export_leaves_the_old_file(tmp_path):
    target = tmp_path / "made.parquet"
    export(load("ac", n_rows=5), target)
    before = target.read_bytes()
    rows = pd.DataFrame({"label": [1, 2], "town": ["X", "Y"], "sick": [0, 1]})
    with pytest.raises(ValueError, match=r"named \['label'\]"):
        export(from_table(rows, target="sick", domain="town", test="Y"), target)
    assert target.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["made.parquet"]
