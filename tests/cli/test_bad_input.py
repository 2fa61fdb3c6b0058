"""What people hand in: a mistake is one sentence and exit code 2; what can be mended is mended and said."""

import csv
import re

import numpy as np
import pandas as pd
import pytest
from hospitals import ROLES, reversed_hospital, training
from typer.testing import CliRunner

from sfboost.cli import run as run_module
from sfboost.cli.app import app


@pytest.fixture
def written(tmp_path):
    """Write a changed table and return its path."""

    def write(rows, name="rows.csv", **options):
        rows.to_csv(tmp_path / name, index=False, **options)
        return tmp_path / name

    return write


def fit(sfboost, table, tmp_path, *options, code=0, roles=ROLES):
    return sfboost("fit", table, *roles, *options, "--no-evaluate", "-o", tmp_path / "m.sfb", code=code)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda rows: rows.drop(columns="hospital"), "has no column 'hospital'"),
        (lambda rows: rows.rename(columns={"chol": "Chol"}), "did you mean 'Chol'"),
        (lambda rows: rows.iloc[:0], "a header but no rows"),
        (lambda rows: rows.assign(sick=None), "lacks its 'sick'"),
        (lambda rows: rows.assign(sick="yes"), r"one class only \(yes\)"),
        (lambda rows: rows.assign(sick=rows["age"] / 7), "holds numbers such as"),
        (lambda rows: rows.assign(hospital=None), "lacks its 'hospital'"),
        (
            lambda rows: rows.assign(chol=rows["chol"].astype(object).where(rows.index > 4, "high")),
            "holds numbers, but also text such as 'high'",
        ),
    ],
)
def test_a_table_that_cannot_be_used_is_refused(sfboost, written, tmp_path, change, sentence):
    done = fit(sfboost, written(change(training(60))), tmp_path, code=2)
    assert re.search(sentence, done.stderr), done.stderr
    assert not (tmp_path / "m.sfb").exists()


def test_rows_without_a_label_or_a_domain_are_left_out_and_that_is_said(sfboost, written, tmp_path):
    rows = training(100)
    known = {
        "sick": rows["sick"].where(rows.index >= 7),
        "hospital": rows["hospital"].where(rows.index != 50),
    }
    done = fit(sfboost, written(rows.assign(**known)), tmp_path)
    assert "7 rows of rows.csv have no 'sick' and are left out" in done.stderr
    assert "1 row of rows.csv has no 'hospital' and is left out." in done.stderr
    assert "fitted to 292 rows" in done.stdout


def test_a_new_table_that_lacks_a_column_is_refused_before_the_work(sfboost, written, tmp_path, monkeypatch):
    monkeypatch.setattr("sfboost.cli.run.learn", None)
    training(60).drop(columns=["chol", "age"]).to_csv(tmp_path / "new.csv", index=False)
    done = sfboost(
        "run", written(training(60)), tmp_path / "new.csv", *ROLES, "-o", tmp_path / "p.csv", code=2
    )
    assert "new.csv has no column 'age', 'chol'" in done.stderr


def test_text_that_is_no_category_is_left_out_and_dates_are_days(sfboost, written, tmp_path):
    rows = training(60)
    days = pd.Timestamp("2024-01-31 10:15") + pd.to_timedelta(np.arange(180), unit="D")
    table = written(rows.assign(ward=rows["patient"] + " seen", seen=days.strftime("%d.%m.%Y %H:%M")))
    done = fit(sfboost, table, tmp_path)
    assert "Left out, neither numbers nor dates nor at most 100 different texts: 'ward'." in done.stderr
    assert "Dates, read as the number of days since 1970: 'seen'." in done.stderr
    new = written(rows.drop(columns="ward").assign(seen="1.2.2024"), "new.csv")
    sfboost("predict", tmp_path / "m.sfb", new, "-o", tmp_path / "p.csv")


@pytest.mark.parametrize("end", ["\n", "\r"])
@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("sick,hospital,age,age|yes,a,1,2|", "several columns named"),
        ("sick,hospital,age,x|yes,a,1,2|no,b,1,2,3|", "has 5 cells where the header has 4"),
    ],
)
def test_a_header_with_a_name_twice_and_a_ragged_line_are_told(sfboost, tmp_path, end, text, sentence):
    (tmp_path / "rows.csv").write_bytes(text.replace("|", end).encode())
    assert sentence in fit(sfboost, tmp_path / "rows.csv", tmp_path, code=2).stderr


def test_one_domain_is_accepted_with_a_warning_and_not_evaluated(sfboost, written, tmp_path):
    rows = training(200).query("hospital == 'north'")
    done = sfboost("fit", written(rows), *ROLES, "-o", tmp_path / "m.sfb")
    assert "All rows are from one domain (north)" in done.stderr
    done = sfboost("evaluate", written(rows), *ROLES, code=2)
    assert "at least two domains" in done.stderr


def test_a_csv_that_is_guessed_wrong_can_be_told(sfboost, tmp_path):
    """The header has more commas than bars, so commas are guessed."""
    rows = training(120).rename(columns={"ward": "ward, as, on, the, sign, of, the, door"})
    rows.to_csv(tmp_path / "rows.csv", index=False, sep="|", decimal=",", quoting=csv.QUOTE_NONE)
    fit(sfboost, tmp_path / "rows.csv", tmp_path, code=2)
    fit(sfboost, tmp_path / "rows.csv", tmp_path, "--delimiter", "|", "--decimal", ",")


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda new: new.drop(columns=["chol", "ward"]), "no column 'chol', 'ward'"),
        (
            lambda new: new.assign(age="old"),
            "'age' of rows.csv held numbers in training, and here it holds 'old'",
        ),
        (lambda new: new.iloc[:0], "a header but no rows"),
    ],
)
def test_a_new_table_that_does_not_fit_is_refused(files, sfboost, written, tmp_path, change, sentence):
    for command in ("adapt", "predict"):
        out = tmp_path / ("a.sfb" if command == "adapt" else "p.csv")
        done = sfboost(command, files.model, written(change(reversed_hospital(60))), "-o", out, code=2)
        assert sentence in done.stderr or "has no rows" in done.stderr
        assert not out.exists()


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda new: new.assign(ward="Z"), "categories that training never saw (Z; 100.0 % of rows)"),
        (
            lambda new: new.assign(chol=None),
            "is put there: 'chol' in all (",
        ),
        (lambda new: new.assign(hospital=["a", "b"] * 150), "rows of 2 domains (a, b)"),
        (lambda new: new.assign(sick="perhaps"), "Labels that training never saw are not scored: perhaps"),
    ],
)
def test_what_can_be_used_is_used_and_what_was_odd_is_said(
    files, sfboost, written, tmp_path, change, sentence
):
    done = sfboost("adapt", files.model, written(change(reversed_hospital(300))), "-o", tmp_path / "a.sfb")
    assert sentence in done.stderr
    assert (tmp_path / "a.sfb").exists()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("run", "{train}", *ROLES, "-o", "p.csv"), "Where are the new rows?"),
        (("run", "{train}", "--hold-out", "moon", *ROLES, "-o", "p.csv"), "there are north, south, east"),
        (("run", "{train}", "{new}", *ROLES, "-o", "p.xlsx"), "ends in none of"),
        (("predict", "{adapted}", "{new}", "-o", "-", "--json"), "both want standard output"),
        (("predict", "nothing.sfb", "{new}", "-o", "p.csv"), "There is no file nothing.sfb"),
        (
            ("predict", "{train}", "{new}", "-o", "p.csv"),
            "is not loaded: it does not begin like a saved model",
        ),
        (("explain", "{model}", "{new}", "--row", "1"), "not adapted yet"),
        (("explain", "{adapted}", "{new}"), "Which row?"),
        (("explain", "{adapted}", "{new}", "--row", "801"), "rows 1 to 800"),
        (("explain", "{adapted}", "{new}", "--id", "nobody"), "No row of new.csv has patient = 'nobody'"),
        (("fit", "{train}", *ROLES, "-o", "model"), "call it model.sfb"),
        (("fit", "{train}", *ROLES, "--categorical", "patient", "-o", "m.sfb"), "are no features"),
    ],
)
def test_a_wrong_call_is_one_sentence(files, sfboost, tmp_path, monkeypatch, arguments, sentence):
    monkeypatch.chdir(tmp_path)
    done = sfboost(*(part.format(**vars(files)) for part in arguments), code=2)
    assert sentence in " ".join(done.stderr.split())
    assert list(tmp_path.iterdir()) == []


def test_a_fault_of_ours_ends_with_one_and_the_traceback_is_for_debugging(files, sfboost, monkeypatch):
    def fail(*_, **__):
        raise ZeroDivisionError("oh")

    monkeypatch.setattr(run_module, "learn", fail)
    arguments = ("run", files.train, files.new, *ROLES, "-o", "p.csv")
    done = sfboost(*arguments, code=1)
    assert "Unexpected ZeroDivisionError: oh" in done.stderr
    done = CliRunner().invoke(app, [*map(str, arguments), "--debug"])
    assert done.exit_code == 1
    assert "Traceback" in done.stderr


@pytest.mark.parametrize(
    ("option", "sentence"),
    [
        (("--delimiter", "ab"), "it is one ASCII character"),
        (("--delimiter", ""), "it is one ASCII character"),
        (("--delimiter", "é"), "it is one ASCII character"),
        (("--decimal", "x"), "it is . or ,"),
    ],
)
def test_a_dialect_that_cannot_be_is_refused(files, sfboost, tmp_path, option, sentence):
    assert sentence in fit(sfboost, files.train, tmp_path, *option, code=2).stderr


def test_cells_that_a_spreadsheet_takes_for_formulas_are_written_as_they_are(files, sfboost, tmp_path):
    """An id must match the id of the table it came from."""
    ids = ["=1+1", "+7", "-7", "@cmd", "\tx"]
    reversed_hospital(5).assign(patient=ids).to_csv(tmp_path / "new.csv", index=False)
    sfboost("predict", files.adapted, tmp_path / "new.csv", "-o", tmp_path / "p.csv")
    assert pd.read_csv(tmp_path / "p.csv")["patient"].tolist() == ids


def test_the_training_table_is_not_new(sfboost, written, tmp_path):
    rows = written(training(60))
    done = sfboost("run", rows, rows, *ROLES, "-o", tmp_path / "p.csv", code=2)
    assert "TRAIN and NEW are the same file" in done.stderr
    assert "--hold-out" in done.stderr
