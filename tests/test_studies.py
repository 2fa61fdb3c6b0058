"""Scripts behind the docs' figures, and those of speed, stay in step with the library: each can be read."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
SCRIPTS = sorted([*(ROOT / "studies").glob("*.py"), *(ROOT / "benchmarks").rglob("bench_*.py")])


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_imports_only_what_exists(script, monkeypatch):
    monkeypatch.syspath_prepend(script.parent)  # one study may use another, as it may when it is run
    try:
        runpy.run_path(str(script), run_name="read")
    except ImportError as error:
        # Our own sentence about a missing extra has the reason as its cause.
        missing = error if isinstance(error, ModuleNotFoundError) else error.__cause__
        if not isinstance(missing, ModuleNotFoundError) or str(missing.name).startswith("sfboost"):
            raise
        pytest.skip(f"{missing.name} is not installed")


LEARNED = [
    ("learn_digits", "table", "learning.md", {"images": "colored_digits", "rows": None}),
    ("learn_digits", "table", "learning.md", {"images": "colored_mnist", "rows": None}),
    ("learn_families", "table", "learning.md", {}),
    ("learn_pacs", "table", "adaptation.md", {}),
]


@pytest.mark.parametrize(("name", "function", "page", "which"), LEARNED)
def test_the_pages_show_what_the_studies_of_learned_features_recorded(name, function, page, which):
    """Every row of the study's table is on the page, under whatever name."""
    pytest.importorskip("torch", reason="the study imports it")
    recorded = map(
        json.loads, (ROOT / "records" / "studies" / f"{name}.jsonl").read_text("utf-8").splitlines()
    )
    lines = [line for line in recorded if all(line[key] == value for key, value in which.items())]
    study = runpy.run_path(str(ROOT / "studies" / f"{name}.py"), run_name="read")
    rows = [row for row in study[function](lines).splitlines() if row.startswith("|") and "---" not in row]
    shown = {
        row.split("|", 2)[2]
        for row in (ROOT / "docs" / page).read_text("utf-8").splitlines()
        if row.startswith("|")
    }
    figures = [row for row in rows[1:] if row.split("|", 2)[2] not in shown]
    assert len(rows) > 4
    assert figures == []


@pytest.fixture(scope="module")
def acceptance():
    pytest.importorskip("pandas", reason="the study makes a table of its rows")
    return runpy.run_path(str(ROOT / "studies" / "acceptance.py"), run_name="read")


def test_brier_score_log_loss_and_accuracy_are_the_textbooks_own(acceptance):
    proba, y = np.array([[0.8, 0.2], [0.6, 0.4], [0.5, 0.5]]), np.array([0, 1, 7])
    scores = acceptance["score"](proba[:2], y[:2], np.array([0, 1]))
    assert scores == pytest.approx(
        {"brier": (0.04 + 0.36) / 2, "log_loss": -np.log(0.8 * 0.4) / 2, "accuracy": 0.5}, abs=1e-6
    )
    # A class that training never had: no column is right.
    assert acceptance["score"](proba[2:], y[2:], np.array([0, 1]))["accuracy"] == 0.0


WORSE = {
    "nothing": ({}, []),
    "tables by less": ({"tables": {"brier": 0.019}}, []),
    "tables as they are": ({"as is": {"brier": 0.03}}, ["real tables, as is"]),
    "digits": ({"digits": {"accuracy": -0.006}}, ["coloured digits"]),
    "paper": ({"paper": {"accuracy": 1e-9}}, ["paper"]),
}


@pytest.mark.parametrize("case", WORSE)
def test_each_gate_holds_rows_to_what_it_says(case, acceptance, tmp_path, capsys):
    """Of ten tables one is worse: by .019 the mean moves by .0019, by .03 (as is alone) it is too much."""
    worse, fails = WORSE[case]
    rows = [
        {"group": group, "case": name, "change": change, "learner": "logistic", "target": "new", "draw": 0}
        for group, name, change in [
            *(("tables", f"table {k}", change) for k in range(10) for change in ("as is", "mirrored")),
            *(("digits", name, "as is") for name in acceptance["DIGITS"].values()),
            ("paper", "paper: cmnist", "erm"),
        ]
    ]
    figures = {"brier": 0.2, "accuracy": 0.7, "decision": "pooled", "mode": "quick", "commit": "c"}
    figures |= {"fit": 1.0, "adapt": 0.1, "fit_ratio": 50.0, "adapt_ratio": 5.0}

    def figure(row, name):
        touched = row["case"] in ("table 0", "coloured digits", "paper: cmnist")
        more = [by.get(name, 0.0) for what, by in worse.items() if what in (row["group"], row["change"])]
        return figures[name] + (sum(more[:1]) if touched else 0.0)

    for name, made in {
        "base": [row | figures for row in rows],
        "new": [row | figures | {k: figure(row, k) for k in ("brier", "accuracy")} for row in rows],
    }.items():
        (tmp_path / name).write_text("\n".join(map(json.dumps, made)))
    held = acceptance["compare"](tmp_path / "base", tmp_path / "new", [])
    lines = capsys.readouterr().out.splitlines()
    assert [line[6:].split(":")[0] for line in lines if line.startswith("FAILS")] == fails
    assert held == (not fails)


def test_a_row_that_is_missing_is_no_gate_that_holds(acceptance, tmp_path, capsys):
    row = {"group": "tables", "case": "impact", "change": "as is", "learner": "logistic", "draw": 0}
    row |= {"brier": 0.1, "accuracy": 0.7, "decision": "pooled", "mode": "quick", "commit": "c"}
    row |= {"fit": 1.0, "adapt": 0.1, "fit_ratio": 50.0, "adapt_ratio": 5.0}
    both = [json.dumps(row | {"target": target}) for target in ("TINT", "UK4")]
    (tmp_path / "base").write_text("\n".join(both))
    (tmp_path / "new").write_text(both[0])
    assert not acceptance["compare"](tmp_path / "base", tmp_path / "new", ["impact"])
    assert "FAILS 1 rows of quick are missing" in capsys.readouterr().out
