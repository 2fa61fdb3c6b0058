"""What a column holds is decided in training, goes into the model file, and is how every new file is read."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hospitals import ROLES, reversed_hospital, training

from sfboost import load
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


@pytest.mark.parametrize(
    ("endings", "options"),
    [
        *((endings, ()) for endings in (("csv", "parquet"), ("parquet", "csv"), ("csv", "csv"))),
        (("csv", "parquet"), ("--categorical", "odd")),
        (("parquet", "csv"), ("--categorical", "o?d")),
    ],
)
def test_truth_values_mean_the_same_in_csv_and_parquet(sfboost, tmp_path, endings, options):
    first, second = endings
    train = write(tmp_path / f"train.{first}", with_column(training(120), [True, False]))
    new = with_column(reversed_hospital(300), [True, False])
    model = tmp_path / "m.sfb"
    sfboost("fit", train, *ROLES, *options, "--no-evaluate", "-o", model)
    told = sfboost.json("adapt", model, write(tmp_path / f"new.{second}", new), "-o", tmp_path / "a.sfb")
    assert not [remark for remark in told["remarks"] if "'odd'" in remark]
    sfboost("predict", tmp_path / "a.sfb", tmp_path / f"new.{second}", "-o", tmp_path / "p.csv")
    sfboost("predict", tmp_path / "a.sfb", write(tmp_path / f"same.{first}", new), "-o", tmp_path / "q.csv")
    assert (tmp_path / "p.csv").read_text() == (tmp_path / "q.csv").read_text()


def test_digits_that_are_text_in_training_stay_text(sfboost, tmp_path):
    """Parquet says that post codes are text; CSV cannot, and the model remembers."""
    train = write(tmp_path / "train.parquet", with_column(training(120), ["01234", "98765"]))
    sfboost("fit", train, *ROLES, "--no-evaluate", "-o", tmp_path / "m.sfb")
    new = with_column(reversed_hospital(300), ["01234", "98765"])
    for ending in ("csv", "parquet"):
        table = write(tmp_path / f"new.{ending}", new)
        told = sfboost.json("adapt", tmp_path / "m.sfb", table, "-o", tmp_path / "a.sfb")
        assert not [remark for remark in told["remarks"] if "'odd'" in remark]
    columns = {column.name: column for column in load_project(tmp_path / "m.sfb").encoder.columns}
    assert columns["odd"].kind == "category"
    assert set(columns["odd"].levels) == {"01234", "98765"}


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


def test_a_domain_that_is_not_a_number_is_missing(sfboost, tmp_path):
    """An Arrow table may hold NaN where pandas would have written nothing."""
    rows = pa.Table.from_pandas(training(60), preserve_index=False)
    codes = pa.array(np.where(np.arange(rows.num_rows) < 3, np.nan, 1.0))
    rows = rows.set_column(rows.column_names.index("hospital"), "hospital", codes)
    pq.write_table(rows, tmp_path / "rows.parquet")
    fit = ("fit", tmp_path / "rows.parquet", *ROLES, "--no-evaluate", "-o", tmp_path / "m.sfb")
    assert "3 rows of rows.parquet have no 'hospital' and are left out" in sfboost(*fit).stderr


@pytest.mark.parametrize("column", ["sick", "hospital"])
def test_a_list_in_a_cell_of_training_is_refused(sfboost, tmp_path, column):
    rows = training(60)
    rows[column] = [[1, 2]] * len(rows)
    table = write(tmp_path / "rows.parquet", rows)
    done = sfboost("fit", table, *ROLES, "-o", tmp_path / "m.sfb", code=2)
    assert f"Column '{column}' holds list<element: int64>, which is neither number nor text" in done.stderr


def test_an_id_that_is_a_list_is_refused(files, sfboost, tmp_path):
    new = reversed_hospital(60)
    new["patient"] = [[1, 2]] * len(new)
    table = write(tmp_path / "new.parquet", new)
    done = sfboost("predict", files.adapted, table, "-o", tmp_path / "p.csv", code=2)
    assert "an id is one value" in done.stderr


def test_categories_of_numbers_are_categories(sfboost, tmp_path):
    """pandas' categorical of whole numbers: codes, without --categorical."""
    rows = with_column(training(120), [3, 7])
    rows["odd"] = rows["odd"].astype(int).astype("category")
    rows.to_feather(tmp_path / "train.arrow")
    sfboost("fit", tmp_path / "train.arrow", *ROLES, "--no-evaluate", "-o", tmp_path / "m.sfb")
    assert sum(name.startswith("odd=") for name in load(tmp_path / "m.sfb").unstable_columns_.names) == 1
    new = write(tmp_path / "new.csv", with_column(reversed_hospital(300), [3, 7]))
    remarks = sfboost.json("adapt", tmp_path / "m.sfb", new, "-o", tmp_path / "a.sfb")["remarks"]
    assert not [remark for remark in remarks if "'odd'" in remark]


def test_infinite_numbers_count_as_missing(files, sfboost, tmp_path):
    new = reversed_hospital(300)
    new.loc[:99, "heart_rate"] = np.inf
    table = write(tmp_path / "new.csv", new)
    done = sfboost("adapt", files.model, table, "-o", tmp_path / "a.sfb")
    assert "'heart_rate' in 33 % (150.1)" in done.stderr


def test_two_features_of_one_name_are_refused(sfboost, tmp_path):
    table = write(tmp_path / "rows.csv", training(60).assign(**{"ward=B": 1.0}))
    done = sfboost("fit", table, *ROLES, "-o", tmp_path / "m.sfb", code=2)
    assert "Two features would both be called 'ward=B'" in done.stderr


@pytest.mark.parametrize(
    "values",
    [
        ["B", "A"],
        pytest.param([True, False], marks=pytest.mark.long),
        pytest.param(["3", "7"], marks=pytest.mark.long),
    ],
)
def test_a_column_that_one_domain_alone_has_does_not_stop_the_others(sfboost, tmp_path, values):
    """Where that domain is held out, nothing of the column is left, and its type is still known."""
    rows = with_column(training(120), values)
    rows.loc[rows["hospital"] != "north", "odd"] = None
    table = write(tmp_path / "rows.csv", rows)
    told = pd.DataFrame(sfboost.json("evaluate", table, *ROLES)["domains"])
    assert not told["decision"].isin(["skipped"]).any()
    sfboost("run", table, "--hold-out", "north", *ROLES, "--no-evaluate", "-o", tmp_path / "p.csv")


def test_a_column_that_is_empty_in_training_is_told_and_may_be_filled_later(sfboost, tmp_path):
    train = write(tmp_path / "train.csv", training(120).assign(odd=None))
    done = sfboost("fit", train, *ROLES, "--no-evaluate", "-o", tmp_path / "m.sfb")
    assert "One value or none in all training rows, so nothing is said by 'odd'" in done.stderr
    new = write(tmp_path / "new.csv", with_column(reversed_hospital(300), [3, 7]))
    sfboost("adapt", tmp_path / "m.sfb", new, "-o", tmp_path / "a.sfb")
