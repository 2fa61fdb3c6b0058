"""The tutorial is executed, command by command, on the real tables; what it prints is what comes out."""

import os
import re
import shlex
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from sfboost.cli.app import app

PAGE = Path(__file__).parents[2] / "docs" / "tutorial.md"


def commands():
    """Each command of the page with the lines that it is said to print."""
    for block in re.findall(r"```console\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, printed = part.partition("\n")
            yield command, printed.splitlines()


def agrees(printed, expected):
    """Whether the lines agree; `...` stands for any number of lines."""
    pattern = "\n".join(".*" if line == "..." else re.escape(line) for line in expected)
    return re.fullmatch(pattern, "\n".join(printed), re.DOTALL) is not None


def test_dots_stand_for_lines_and_nothing_else_does():
    assert agrees(["a", "b", "c"], ["a", "..."])
    assert not agrees(["a", "b", "c"], ["a", "c"])
    assert not agrees(["a", "b"], ["...", "c"])


@pytest.mark.data
def test_the_tutorial_prints_what_it_says(tmp_path, monkeypatch):
    if not os.environ.get("SFBOOST_DATA"):
        pytest.skip("SFBOOST_DATA is not set: the tutorial needs the real tables")
    monkeypatch.chdir(tmp_path)
    told = list(commands())
    assert len(told) >= 10
    for command, expected in told:
        done = CliRunner().invoke(app, shlex.split(command)[1:])
        printed = (done.stdout if done.exit_code != 2 else done.stderr).splitlines()
        if done.exit_code not in (0, 2):
            printed.append(f"[exit code {done.exit_code}]")
        assert agrees(printed, expected), f"$ {command}\n" + "\n".join(printed)
    report = (tmp_path / "cleveland.html").read_text(encoding="utf-8")
    for figure in ("0.845", "0.867", "0.517", "0.488", "0.077", "0.081"):  # what the page quotes from it
        assert f"<td>{figure}</td>" in report
    assert "thalach" in report.partition("As a table")[2].partition("</table>")[0]
    rows = pd.read_parquet(tmp_path / "heart.parquet").query("label == 'yes'")
    assert rows.groupby("exang")["thalach"].mean().round().tolist() == [135, 124]
