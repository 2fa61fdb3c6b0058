"""The index of a pandas table is nobody's feature unless it is named."""

import pytest
from hospitals import ROLES, training

FIT = (*ROLES, "--no-evaluate")


def write(rows, path):
    rows.to_csv(path) if path.suffix == ".csv" else rows.to_parquet(path)
    return path


@pytest.mark.parametrize(
    ("ending", "index", "name"),
    [("csv", None, ""), ("parquet", None, "__index_level_0__"), ("parquet", "number", "number")],
)
def test_an_index_is_left_out_and_that_is_said(sfboost, tmp_path, ending, index, name):
    rows = training(60).sample(frac=1.0, random_state=0).rename_axis(index)
    table = write(rows, tmp_path / f"rows.{ending}")
    done = sfboost("fit", table, *FIT, "-o", tmp_path / "m.sfb")
    assert f"Column {name!r} looks like the index of a pandas table and is left out" in done.stderr


def test_an_index_that_is_named_is_what_it_is_named(sfboost, tmp_path):
    table = write(training(60).set_index("patient"), tmp_path / "rows.parquet")
    assert "index" not in sfboost("fit", table, *FIT, "-o", tmp_path / "m.sfb").stderr
