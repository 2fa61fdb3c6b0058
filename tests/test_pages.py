"""Every snippet of README, CONTRIBUTING and docs/ is executed, and what it should print is what comes out.

A page's Python blocks run in order in one namespace, in a folder of its own. Names that a page takes as given
(X, y, hospital, …) and files (train.csv, …) are in `given`. A `text` block right after a Python block is what
that one prints; in `console` blocks the lines after each `$ command` are. `...` stands for any number of
lines. A `toml` block is the file of a `sfboost fit`. A block that cannot run here stands after a comment
`<!-- not run: the reason -->`.
"""

import contextlib
import doctest
import io
import os
import re
import shlex
import warnings
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pandas", reason="the pages show tables: pip install 'sfboost[app]'")
pytest.importorskip("typer", reason="the pages show commands: pip install 'sfboost[app]'")

import pandas as pd
from typer.main import get_command
from typer.testing import CliRunner

from sfboost.cli.app import app
from sfboost_lab.commands.app import app as lab_app

APPS = {"sfboost": app, "sfboost-lab": lab_app}
ROOT = Path(__file__).parents[1]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "lab" / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]
LANGUAGES = {"python", "console", "text", "toml"}
#: How many blocks say that they are not run: one more needs a reason in its page, and a change here.
NOT_RUN = 9
#: Pages whose blocks need the real files.
NEEDS_DATA = {"tutorial.md", "datasets.md"}
#: Pages that take more than a few seconds.
LONG = {"tutorial.md", "diagnostics.md", "methods.md", "datasets.md", "reproduction-details.md"}
if find_spec("torch") is not None:
    LONG |= {"README.md", "learning.md"}  # they learn features
#: What a block mentions → the package it needs.
NEEDS = {"sfboost.torch": "torch", 'TRAINERS["irm"]': "torch"}
_FENCE = re.compile(
    r"(?:<!-- not run: (?P<why>[^>]+) -->\n)?^```(?P<language>\w*)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its lines, the line it begins at, and why it is not run."""

    language: str
    text: str
    line: int
    why: str | None
    follows: bool  # nothing stands between it and the block before


def blocks(page):
    text, made, end = page.read_text(encoding="utf-8"), [], 0
    for found in _FENCE.finditer(text):
        line = text.count("\n", 0, found.start("text")) + 1
        follows = bool(made) and not text[end : found.start()].strip()
        made.append(Block(found["language"], found["text"], line, found["why"], follows))
        end = found.end()
    return made


def agrees(printed, expected):
    """Whether the lines agree; `...` stands for any number of lines."""
    pattern = "".join("(?:.*\n)?" if line == "..." else re.escape(line) + "\n" for line in expected)
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in printed), re.DOTALL) is not None


def given(folder):
    """What pages take as given: rows of three hospitals and a new one, by name and as files."""
    from hospitals import reversed_hospital, training
    from sklearn.ensemble import RandomForestClassifier

    import sfboost

    rows, new = training(), reversed_hospital()
    names = {"heart_rate": "thalach", "patient": "patient"}
    for frame in (rows, new):
        frame["bmi"] = frame["chol"].fillna(220.0) / 9
        frame["glucose_ward"] = frame["heart_rate"]
        frame["ca"] = (frame["ward"] == "A").astype(float)
    labelled = new.drop(columns="hospital")
    tables = {"train.csv": rows, "new.csv": labelled.drop(columns="sick"), "labelled.csv": labelled}
    for name, frame in tables.items():
        kept = frame.rename(columns=names)[[c for c in ("patient", "hospital", "sick") if c in frame]]
        kept = kept.join(frame.rename(columns=names)[["age", "sex", "chol", "thalach", "ca"]])
        kept.to_csv(folder / name, index=False)
    rows.assign(hospital=rows["hospital"].where(rows["hospital"] != "east", "west")).to_csv(
        folder / "rows.csv", index=False
    )
    columns = ["age", "bmi", "sex", "glucose_ward"]
    X, X_new = (frame[columns].assign(sex=(frame["sex"] == "m").astype(float)) for frame in (rows, new))
    y, hospital = (rows["sick"] == "yes").astype(int).to_numpy(), rows["hospital"].to_numpy()
    model = sfboost.StableFeatureBoosting(stable_features=["age", "bmi", "sex"])
    model.fit(X, y, sample_domain=hospital)
    forest = sfboost.StableFeatureBoosting(
        stable_features=["age", "bmi", "sex"], stable=RandomForestClassifier(5, random_state=0)
    ).fit(X, y, sample_domain=hospital)
    labels = np.where(np.arange(len(new)) < 20, (new["sick"] == "yes").astype(float), np.nan)
    return {
        **{"np": np, "sfboost": sfboost, "X": X, "y": y, "hospital": hospital, "d": hospital, "X_new": X_new},
        **{"model": model, "forest": forest, "labels": labels},
        **{"stable_proba": model.predict_proba(X_new), "X_unstable": X_new[["glucose_ward"]].to_numpy()},
    }


def embeddings():
    """Rows of a frozen network, so to say: thirty-two columns, and nobody knows which are stable."""
    rng = np.random.default_rng(0)
    y, hospital = rng.integers(0, 2, 900), np.repeat(["north", "south", "east"], 300)
    directions = rng.normal(size=(4, 32))
    X = np.outer(2 * y - 1, directions[0]) + rng.normal(size=(900, 32)) * 2
    X += (hospital == "south")[:, None] * directions[1] + (hospital == "east")[:, None] * directions[2]
    new = rng.integers(0, 2, 600)
    X_new = np.outer(2 * new - 1, directions[0] / 2 + directions[3]) + rng.normal(size=(600, 32)) * 2
    return {"X": X, "y": y, "hospital": hospital, "X_new": X_new}


#: Pages whose names mean other rows.
GIVEN = {"adaptation.md": embeddings}


def run_python(text, names):
    """Run a block in the page's namespace; return the lines that it prints."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(text, "page", "exec"), names)
    return out.getvalue().splitlines()


def run_examples(text, names, where):
    """Run a block of `>>>` examples, as doctest does."""
    test = doctest.DocTestParser().get_doctest(text, names, where, None, 0)
    runner, out = doctest.DocTestRunner(), io.StringIO()
    runner.run(test, out=out.write, clear_globs=False)
    names.update(test.globs)
    assert runner.failures == 0, out.getvalue()


def run_console(text, where):
    """Run the commands of a block; what is said to be printed is what comes out."""
    for part in re.split(r"^\$ ", text.replace("\\\n", " "), flags=re.MULTILINE)[1:]:
        command, _, expected = part.partition("\n")
        words = shlex.split(command, comments=True)
        assert words[0] in APPS, f"{where}: only our own commands are run; say why `{command}` is not"
        done = CliRunner().invoke(APPS[words[0]], words[1:])
        printed = (done.stdout if done.exit_code != 2 else done.stderr).splitlines()
        if done.exit_code not in (0, 2):
            printed.append(f"[exit code {done.exit_code}]")
        assert agrees(printed, expected.splitlines()), f"{where}\n$ {command}\n" + "\n".join(printed)


def missing(block):
    return {package for word, package in NEEDS.items() if word in block.text and find_spec(package) is None}


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(
            page, marks=[pytest.mark.long] * (page.name in LONG), id=page.relative_to(ROOT).as_posix()
        )
        for page in PAGES
    ],
)
def test_the_page_does_what_it_says(page, tmp_path, monkeypatch):
    if page.name in NEEDS_DATA and not os.environ.get("SFBOOST_DATA"):
        pytest.skip("SFBOOST_DATA is not set: this page needs the real files")
    found = blocks(page)
    if all(block.why for block in found):
        return
    monkeypatch.chdir(tmp_path)
    names, printed, left_out = given(tmp_path) | GIVEN.get(page.name, dict)(), None, set()
    for block in found:
        where = f"{page.name}:{block.line}"
        if block.why or missing(block):
            left_out |= missing(block)
            printed = None
        elif block.language == "python" and block.text.startswith(">>>"):
            run_examples(block.text, names, where)
        elif block.language == "python":
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                printed = run_python(block.text, names)
        elif block.language == "text" and block.follows and printed is not None:
            assert agrees(printed, block.text.splitlines()), f"{where}\n" + "\n".join(printed)
        elif block.language == "console":
            run_console(block.text, where)
        elif block.language == "toml":
            (tmp_path / "sfboost.toml").write_text(block.text, encoding="utf-8")
            run_console(
                "$ sfboost fit train.csv --config sfboost.toml --no-evaluate -q -o by_toml.sfb\n", where
            )
    for check in CHECKS.get(page.name, ()):
        check(tmp_path)
    if left_out:
        pytest.skip(f"some blocks need {', '.join(sorted(left_out))}")


def test_every_block_has_a_language_and_those_that_are_not_run_a_reason():
    every = [(page, block) for page in PAGES for block in blocks(page)]
    assert [(page.name, b.line) for page, b in every if b.language not in LANGUAGES] == []
    assert len([block for _, block in every if block.why]) == NOT_RUN
    fences = sum(len(re.findall("^```", page.read_text(encoding="utf-8"), re.M)) for page in PAGES)
    assert fences == 2 * len(every)


def commands_that_are_not_run():
    """Words of every sfboost command in a block that says why it is not run."""
    for page in PAGES:
        for block in (block for block in blocks(page) if block.why):
            for command in re.findall(
                r"^\$ (sfboost(?:-lab)? .*)$", block.text.replace("\\\n", " "), re.MULTILINE
            ):
                yield shlex.split(command, comments=True)


@pytest.mark.parametrize("words", list(commands_that_are_not_run()), ids=lambda words: " ".join(words)[:60])
def test_a_command_that_is_not_run_is_one_that_could_be(words):
    """Its name and options exist, and what it names in this repository is there."""
    command, context, words = get_command(APPS[words[0]]), None, words[1:]
    while hasattr(command, "resolve_command"):
        context = command.make_context(command.name or "sfboost", words, parent=context)
        _, command, words = command.resolve_command(context, [*context._protected_args, *context.args])
    command.make_context(command.name, list(words), parent=context)
    assert [
        word for word in words if word.startswith(("src/", "records/", "lab/")) and not (ROOT / word).exists()
    ] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_no_command_stands_outside_a_block(page):
    """An indented command would not be run."""
    text = _FENCE.sub("", page.read_text(encoding="utf-8"))
    assert re.findall(r"^ {4,}(?:sfboost|sfboost-lab|make|pip|python) .*$", text, re.MULTILINE) == []


@pytest.mark.long
def test_the_first_page_shows_every_row_of_the_demo():
    from sfboost.cli.demo import METHODS, run

    text = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([01]\.\d)[^|]*\|(.*)\|$", text, re.MULTILINE)
    shown = {float(a): [float(cell) for cell in cells.split("|")] for a, cells in rows}
    measured = run(4)
    assert list(shown) == list(measured)
    for agreement, scores in measured.items():
        assert shown[agreement] == [round(scores[method], 1) for method, _, _ in METHODS]


def test_dots_stand_for_lines_and_nothing_else_does():
    assert agrees(["a", "b", "c"], ["a", "..."])
    assert not agrees(["a", "b", "c"], ["a", "c"])
    assert not agrees(["a", "b"], ["...", "c"])


def check_the_tutorials_report(folder):
    """What the tutorial quotes from the report and from the table."""
    report = (folder / "hungary.html").read_text(encoding="utf-8")
    assert "thalach" in report.partition("What the unstable features say")[2].partition("</table>")[0]
    rows = pd.read_parquet(folder / "heart.parquet").query("label == 'yes'")
    assert rows.groupby("exang")["thalach"].mean().round().tolist() == [135, 124]


CHECKS = {"tutorial.md": (check_the_tutorials_report,)}
