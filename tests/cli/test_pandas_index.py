"""The index of a pandas table is nobody's feature unless it is named."""

import json

import numpy as np
import pandas as pd
import pytest
from hospitals import ROLES, training

FIT = (*ROLES, "--no-evaluate")


def shuffled():
    """Rows whose index is not 0, 1, …, so that pandas writes it."""
    return training(60).sample(frac=1.0, random_state=0)


def written(kind, path):
    rows = shuffled()
    if kind == "Parquet, no name":
        rows.to_parquet(path)
        return "__index_level_0__"
    if kind == "Parquet, a name":
        rows.rename_axis("number").to_parquet(path)
        return "number"
    if kind == "Parquet, two levels":
        index = pd.MultiIndex.from_arrays([rows.index, np.arange(len(rows))], names=["number", None])
        rows.set_index(index).to_parquet(path)
        return "__index_level_1__"
    rows.to_csv(path)
    if kind == "CSV, read and written again":
        pd.read_csv(path).to_csv(path, index=False)
        return "Unnamed: 0"
    return ""


KINDS = [
    *("Parquet, no name", "Parquet, a name", "Parquet, two levels"),
    *("CSV, no name", "CSV, read and written again"),
]


@pytest.fixture(scope="module")
def plain(sfboost, tmp_path_factory):
    """What is told of the same rows without an index."""
    folder = tmp_path_factory.mktemp("plain")
    shuffled().to_csv(folder / "plain.csv", index=False)
    return sfboost.json("fit", folder / "plain.csv", *FIT, "-o", folder / "m.sfb")


@pytest.mark.parametrize("kind", KINDS)
def test_an_index_is_left_out_and_that_is_said(sfboost, tmp_path, plain, kind):
    name = written(kind, tmp_path / "rows.any")
    done = sfboost("fit", tmp_path / "rows.any", *FIT, "-o", tmp_path / "m.sfb", "--json")
    assert f"Column {name!r} looks like the index of a pandas table and is left out" in done.stderr
    told = {**json.loads(done.stdout), "file": plain["file"]}
    assert told == plain


def test_an_index_that_is_named_is_what_it_is_named(sfboost, tmp_path):
    shuffled().set_index("patient").to_parquet(tmp_path / "rows.parquet")
    done = sfboost("fit", tmp_path / "rows.parquet", *FIT, "-o", tmp_path / "m.sfb")
    assert "index" not in done.stderr
    shuffled().rename_axis("number").to_parquet(tmp_path / "rows.parquet")
    told = sfboost.json(
        *("fit", tmp_path / "rows.parquet", *FIT, "--unstable", "number,heart_rate", "--drop", "ward"),
        *("-o", tmp_path / "m.sfb"),
    )
    assert told["unstable"] == ["number", "heart_rate"]
