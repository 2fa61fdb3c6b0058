"""Scripts behind the docs' figures, and those of speed, stay in step with the library: each can be read."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SCRIPTS = sorted([*(ROOT / "studies").glob("*.py"), *(ROOT / "benchmarks").rglob("bench_*.py")])


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_imports_only_what_exists(script):
    try:
        runpy.run_path(str(script), run_name="read")
    except ImportError as error:
        # Our own sentence about a missing extra has the reason as its cause.
        missing = error if isinstance(error, ModuleNotFoundError) else error.__cause__
        if not isinstance(missing, ModuleNotFoundError) or str(missing.name).startswith("sfboost"):
            raise
        pytest.skip(f"{missing.name} is not installed")


@pytest.mark.parametrize("half", ["development", "held-out"])
def test_the_page_shows_what_the_study_of_unseen_tables_recorded(half):
    pytest.importorskip("pandas", reason="the study makes a table of its records")
    recorded = (ROOT / "records" / "studies" / "answers_unseen.jsonl").read_text("utf-8").splitlines()
    study = runpy.run_path(str(ROOT / "studies" / "study_answers.py"), run_name="read")
    shown = (ROOT / "docs" / "shifts.md").read_text("utf-8").splitlines()
    lines = study["page"]([json.loads(line) for line in recorded], half)
    assert len(lines) > 10
    assert [line for line in lines if line not in shown] == []


@pytest.mark.parametrize(
    ("name", "page", "count"),
    [
        ("drawn_tables", "shifts.md", lambda study: len(study["CASES"]) + 4),
        ("labels", "answers.md", lambda study: 2 * len(study["suite"].TABLES) + 2),
        ("metric", "how-good.md", lambda study: 2 * len(study["METRICS"]) + 2),
    ],
)
def test_the_page_shows_what_the_study_recorded(name, page, count):
    pytest.importorskip("pandas", reason="the study makes a table of its records")
    recorded = (ROOT / "records" / "studies" / f"{name}.jsonl").read_text("utf-8").splitlines()
    study = runpy.run_path(str(ROOT / "studies" / f"study_{name}.py"), run_name="read")
    shown = (ROOT / "docs" / page).read_text("utf-8").splitlines()
    lines = study["page"]([json.loads(line) for line in recorded])
    assert len(lines) == count(study)
    assert [line for line in lines if line not in shown] == []


LEARNED = [
    ("learn_digits", "table", "learning.md", {"images": "colored_digits", "rows": None}),
    ("learn_digits", "drawn_again", "learning.md", {"images": "colored_digits"}),
    ("learn_digits", "table", "learning.md", {"images": "colored_mnist", "rows": None}),
    ("learn_digits", "table", "learning.md", {"images": "colored_mnist", "rows": 5000}),
    ("learn_digits", "table", "learning.md", {"images": "colored_mnist", "rows": 1000}),
    ("learn_families", "table", "learning.md", {}),
    ("learn_strangers", "shown", "learning.md", {}),
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
