"""Numbers at the edge and tables of a few rows: exit 0 or 2, one sentence of ours, silence under --quiet."""

import subprocess
import sys
import warnings

import pytest
from hospitals import ROLES, reversed_hospital, training


@pytest.fixture
def quietly(sfboost, tmp_path):
    """Run a command with --quiet as a person does, warnings not turned into errors; what it says."""

    def run(*arguments, code):
        with warnings.catch_warnings():
            warnings.simplefilter("default")
            return sfboost(*arguments, "--quiet", code=code).stderr

    return run


@pytest.mark.parametrize("scale", [1e300, 1e-300])
@pytest.mark.parametrize("column", ["heart_rate", "age"])
def test_a_column_in_an_impossible_unit_is_named_by_every_command(files, quietly, tmp_path, scale, column):
    train, new = tmp_path / "train.csv", tmp_path / "new.csv"
    for rows, path in ((training(60), train), (reversed_hospital(60), new)):
        rows.assign(**{column: rows[column] * scale}).to_csv(path, index=False)
    for arguments in (
        ("run", train, new, *ROLES, "-o", tmp_path / "p.csv"),
        ("fit", train, *ROLES, "-o", tmp_path / "m.sfb"),
        ("check", train, new, *ROLES),
        ("adapt", files.model, new, "-o", tmp_path / "a.sfb"),
    ):
        said = quietly(*arguments, code=2)
        assert column in said
        assert "another unit" in said
        assert len(said.splitlines()) == 1
    said = quietly("predict", files.adapted, new, "-o", tmp_path / "p.csv", code=2)
    assert "another unit" in said


@pytest.mark.parametrize("n_rows", [1, 2, 3])
def test_a_few_new_rows_are_used_or_refused_in_one_sentence(files, quietly, tmp_path, n_rows):
    few = tmp_path / "few.csv"
    reversed_hospital(n_rows).to_csv(few, index=False)
    code = 2 if n_rows == 1 else 0
    out = ("-o", tmp_path / "a.sfb", "--report", tmp_path / "r.html")
    for options in ((), ("--answer", "safe")):
        said = quietly("adapt", files.model, few, *out, *options, code=code)
        assert ("One row" in said) == (n_rows == 1)
        assert len(said.splitlines()) == (n_rows == 1)
    assert ("One row" in quietly("check", files.train, few, *ROLES, code=code)) == (n_rows == 1)
    assert quietly("predict", files.adapted, few, "-o", tmp_path / "p.csv", code=0) == ""


def test_two_training_rows_are_refused_in_one_sentence(quietly, tmp_path):
    rows = training(60).groupby("sick").head(1)
    rows.to_csv(tmp_path / "rows.csv", index=False)
    said = quietly("fit", tmp_path / "rows.csv", *ROLES, "-o", tmp_path / "m.sfb", code=2)
    assert "at least two rows of two classes" in said


def test_a_warning_from_elsewhere_is_a_note_without_a_path_and_nothing_under_quiet():
    """In a process of its own: pytest has its own way with warnings."""
    code = """
import warnings
from sfboost.cli.console import speaking
@speaking
def command(quiet: bool = False) -> None:
    warnings.warn("overflow encountered in exp", RuntimeWarning)
command(quiet=True)
command(quiet=False)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == "note: overflow encountered in exp\n"
