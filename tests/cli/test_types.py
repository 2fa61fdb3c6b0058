"""What a column holds is decided in training, goes into the model file, and is how every new file is read."""

import numpy as np
import pandas as pd
import pytest
from hospitals import ROLES, reversed_hospital, training

from sfboost.cli.project import load_project

#: How a column of training is written, and how a new file may write the same values.
SPELLINGS = {
    "truth values": ([True, False], [["True", "False"], ["true", "false"], ["1", "0"], ["1.0", "0.0"]]),
    "whole numbers": (["3", "7"], [["3.0", "7.0"], ["03", "7e0"]]),
    "fractions": (["3.5", "7.0"], [["3.50", "7"]]),
    "texts": (["yes", "no"], [["yes", "no"]]),
}


def with_column(rows, values):
    """A column `odd` that follows the heart rate."""
    high = rows["heart_rate"] > 150
    return rows.assign(odd=pd.Series(np.where(high, values[0], values[1]), dtype=object))


def write(path, rows):
    if path.suffix == ".csv":
        rows.to_csv(path, index=False)
    else:
        rows.to_parquet(path, index=False)
    return path


@pytest.mark.parametrize(
    "kind",
    [
        "truth values",
        *(pytest.param(kind, marks=pytest.mark.long) for kind in SPELLINGS if kind != "truth values"),
    ],
)
def test_the_same_values_are_the_same_however_a_new_file_writes_them(sfboost, tmp_path, kind):
    values, spellings = SPELLINGS[kind]
    train = write(tmp_path / "train.csv", with_column(training(120), values))
    model, adapted = tmp_path / "m.sfb", tmp_path / "a.sfb"
    sfboost("fit", train, *ROLES, "--no-evaluate", "-o", model)
    predictions = set()
    for spelling in [[str(value) for value in values], *spellings]:
        new = write(tmp_path / "new.csv", with_column(reversed_hospital(300), spelling))
        told = sfboost.json("adapt", model, new, "-o", adapted)
        assert not [remark for remark in told["remarks"] if "'odd'" in remark]
        sfboost("predict", adapted, new, "-o", tmp_path / "p.csv")
        predictions.add((tmp_path / "p.csv").read_text())
    # The other commands, with the spelling that is least like that of training.
    sfboost("explain", adapted, new, "--row", 1)
    sfboost("run", train, new, *ROLES, "--no-evaluate", "-o", tmp_path / "q.csv")
    predictions.add((tmp_path / "q.csv").read_text())
    assert len(predictions) == 1
    sfboost("check", train, new, *ROLES)


def test_codes_with_leading_zeros_are_told_where_csv_makes_numbers_of_them(sfboost, tmp_path):
    train = write(tmp_path / "train.csv", with_column(training(120), ["01234", "98765"]))
    fit = ("fit", train, *ROLES, "--no-evaluate", "-o", tmp_path / "m.sfb")
    assert "say --categorical odd if it holds codes" in sfboost(*fit).stderr
    done = sfboost(*fit, "--categorical", "od*")
    assert "leading zeros" not in done.stderr
    columns = {column.name: column for column in load_project(tmp_path / "m.sfb").encoder.columns}
    assert set(columns["odd"].levels) == {"01234", "98765"}


def test_ids_and_domains_of_a_held_out_domain_stay_as_they_were_written(sfboost, tmp_path):
    rows = pd.concat([training(100), reversed_hospital(200)])
    rows["patient"] = [f"00{i}" for i in range(len(rows))]
    rows["hospital"] = rows["hospital"].map({"north": "01", "south": "02", "east": "03", "west": "04"})
    table = write(tmp_path / "all.csv", rows)
    sfboost("run", table, "--hold-out", "04", *ROLES, "--no-evaluate", "-o", tmp_path / "p.csv")
    predicted = pd.read_csv(tmp_path / "p.csv", dtype=str)
    assert predicted["patient"].tolist() == rows["patient"].tolist()[-200:]


@pytest.mark.parametrize(
    ("classes", "spellings"),
    [
        ((1, 0), [(1, 0), (1.0, 0.0), ("01", "00")]),
        ((True, False), [("True", "False"), ("TRUE", "FALSE"), (1, 0), (1.0, 0.0)]),
        (("yes", "no"), [("yes", "no")]),
    ],
)
def test_labels_are_scored_however_a_new_file_writes_them(sfboost, tmp_path, classes, spellings):
    def labelled(rows, names):
        return rows.assign(sick=rows["sick"].map({"yes": names[0], "no": names[1]}).astype(object))

    train = write(tmp_path / "train.csv", labelled(training(120), classes))
    sfboost("fit", train, *ROLES, "--no-evaluate", "-o", tmp_path / "m.sfb")
    scores = []
    for names in spellings:
        new = labelled(reversed_hospital(300), names)
        new.loc[3, "sick"] = None  # it turns whole numbers into fractions
        table = write(tmp_path / "new.csv", new)
        scores.append(sfboost.json("adapt", tmp_path / "m.sfb", table, "-o", tmp_path / "a.sfb")["scores"])
    assert scores[0]["stable"]["accuracy"] > 0.6
    assert all(score == scores[0] for score in scores)


@pytest.mark.parametrize("label", [float("inf"), float("-inf"), 1e20, 2.0**60])
def test_a_target_that_is_no_class_is_refused(sfboost, tmp_path, label):
    rows = training(60)
    rows["sick"] = np.where(rows["sick"] == "yes", label, 0.0)
    for table in (write(tmp_path / "rows.csv", rows), write(tmp_path / "rows.parquet", rows)):
        done = sfboost("fit", table, *ROLES, "--no-evaluate", "-o", tmp_path / "m.sfb", code=2)
        assert f"holds numbers such as {label:g}, not classes" in done.stderr
