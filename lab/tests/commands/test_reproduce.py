"""The commands that reproduce and show, as a person meets them."""

import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("typer", reason="the [app] extra brings the command")
pytest.importorskip("matplotlib", reason="the [app] extra brings the figure")

import engine_experiment
from typer.testing import CliRunner

from sfboost_lab.commands.app import app
from sfboost_lab.experiments import Store
from sfboost_lab.experiments.registry import EXPERIMENTS

HELPERS = Path(__file__).parents[1] / "helpers"


@pytest.fixture
def small(monkeypatch):
    """One more experiment in the list."""
    monkeypatch.setitem(EXPERIMENTS.entries, "small", "engine_experiment:EXPERIMENT")


def invoke(*arguments):
    return CliRunner().invoke(app, [str(a) for a in arguments])


def reproduce(out, *arguments):
    return invoke("reproduce", "small", "--jobs", 1, "--out", out, *arguments)


@pytest.mark.usefixtures("small")
def test_one_command_gives_records_tables_figure_and_page(tmp_path):
    result = reproduce(tmp_path)
    assert result.exit_code == 0, result.output
    assert "paper 9.9 ± 0.1" in result.output
    assert "Oracle (ORACLE)" in result.output
    assert {p.name for p in tmp_path.iterdir() if p.is_file()} == {
        *("lock", "small.md", "small.csv", "small.tex", "small.png", "index.html")
    }
    page = (tmp_path / "index.html").read_text()
    assert "default-src 'none'" in page
    assert "data:image/png;base64," in page
    assert "http://" not in page
    assert "https://" not in page
    assert len(Store(tmp_path).read().records) == 5
    summary, _, rest = page.partition("<h2")
    assert '<a href="#small">small</a>' in summary  # the summary comes first
    assert "<h3>" not in summary
    assert re.search(r'<th scope="row">ERM</th>\s*<td class="best">', rest)
    assert not re.search(r'ORACLE\)</th>\s*<td class="best">', rest)


@pytest.mark.usefixtures("small")
def test_the_same_command_goes_on_and_quick_runs_stand_apart(tmp_path):
    reproduce(tmp_path, "--seeds", 2)
    more = reproduce(tmp_path, "--seeds", 4)
    assert "2 of 4 runs are in" in more.output
    assert len(Store(tmp_path).read().records) == 4
    assert "QUICK" in reproduce(tmp_path, "--quick").output
    assert len(Store(tmp_path).read().records) == 6
    shown = invoke("results", "show", "small", "--from", tmp_path)
    assert shown.exit_code == 0
    assert "(4)" in shown.output
    assert "QUICK" not in shown.output


@pytest.mark.usefixtures("small")
def test_the_page_shows_what_was_asked_for_and_no_other_runs_of_the_folder(tmp_path):
    for seeds in (4, 2):
        reproduce(tmp_path, "--seeds", seeds)
        page = (tmp_path / "index.html").read_text()
        assert f"({seeds})" in page
    assert "(4)" not in page


@pytest.mark.usefixtures("small")
def test_failed_runs_are_told_and_the_exit_code_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(engine_experiment, "FUNCTION", "fails_for_odd_seeds")
    result = reproduce(tmp_path)
    assert result.exit_code == 1
    assert "2 of 5 runs failed, the first with: ArithmeticError: seed" in result.output
    assert "(3)" in result.output  # the others are in the table
    monkeypatch.setattr(engine_experiment, "FUNCTION", "ordinary")
    assert reproduce(tmp_path).exit_code == 1
    assert reproduce(tmp_path, "--retry-failed").exit_code == 0


@pytest.mark.usefixtures("small")
def test_results_are_exported_in_every_format_and_packed(tmp_path):
    reproduce(tmp_path)
    for format, mark in (("md", "| ERM | none |"), ("csv", "Small,ERM,none"), ("tex", r"\begin{tabular}")):
        file = tmp_path / f"out.{format}"
        assert (
            invoke("results", "export", "small", "--from", tmp_path, "-f", format, "-o", file).exit_code == 0
        )
        assert mark in file.read_text()
        assert mark in invoke("results", "export", "small", "--from", tmp_path, "-f", format).output
    packed = tmp_path / "small.jsonl.gz"
    reproduce(tmp_path, "--seeds", 7)
    assert len(Store(tmp_path).read().records) == 7  # two more than are planned
    result = invoke("results", "pack", "small", "--from", tmp_path, "--out", packed)
    assert "5 records" in result.output
    assert packed.stat().st_size < 4000


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        (["reproduce", "syntetic"], "Did you mean 'synthetic'?"),
        (["results", "show", "smal"], "Did you mean 'small'?"),
        (["results", "show", "small"], "No records of 'small' are in"),
        (["results", "show", "small", "--from", "nowhere"], "No records of 'small' are in nowhere."),
        (["results", "export", "small", "-f", "xls"], "there are md, csv, tex"),
    ],
)
def test_mistakes_are_answered_by_a_sentence(command, sentence):
    result = invoke(*command)
    assert result.exit_code == 2
    assert sentence in result.output
    assert "Traceback" not in result.output


@pytest.mark.usefixtures("small")
def test_a_missing_extra_is_named(tmp_path, monkeypatch):
    def plan(seeds, quick):
        raise ModuleNotFoundError("No module named 'torch'", name="torch")

    without = replace(engine_experiment.EXPERIMENT, plan=plan)
    monkeypatch.setattr(engine_experiment, "EXPERIMENT", without)
    result = reproduce(tmp_path)
    assert result.exit_code == 2
    assert "small needs torch: pip install 'sfboost[all]'" in result.output


def test_the_list_names_every_experiment():
    for command in (["reproduce"], ["reproduce", "list"]):
        output = invoke(*command).output
        assert all(name in output for name in EXPERIMENTS)


@pytest.mark.usefixtures("small")
def test_progress_tells_how_much_is_done_and_how_long_the_rest_takes(tmp_path, monkeypatch):
    reproduce(tmp_path, "--seeds", 1)
    monkeypatch.setattr(engine_experiment, "FUNCTION", "slow")
    monkeypatch.setattr("sfboost_lab.commands.reproduce._LINE_EVERY", 0.5)
    output = reproduce(tmp_path, "--seeds", 80).output
    lines = re.findall(r"small: (\d+) of 80 runs, [\d.]+ min, about (\d+) min left", output)
    assert lines, output
    done = [int(line[0]) for line in lines]
    assert 1 < done[0] <= done[-1] <= 80
    assert done == sorted(done)
    assert all(int(line[1]) == 1 for line in lines[:-1])  # a few seconds are a minute, never none


@pytest.mark.parametrize("how", ["Ctrl-C", pytest.param("SIGTERM", marks=pytest.mark.long)])
def test_stopping_ends_the_workers_and_leaves_a_folder_that_can_go_on(tmp_path, how):
    code = (
        # A shell that puts the tests into the background lets them, and what they start, ignore Ctrl-C.
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "import engine_experiment; from sfboost_lab.experiments.registry import EXPERIMENTS\n"
        "engine_experiment.FUNCTION = 'slow'; EXPERIMENTS.entries['small'] = 'engine_experiment:EXPERIMENT'\n"
        "from sfboost_lab.commands.app import app; app()"
    )
    arguments = ["reproduce", "small", "--seeds", "2000", "--jobs", "2", "--out", str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HELPERS), *sys.path])}
    process = subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        env=environment,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    deadline = time.monotonic() + 120
    while not Store(tmp_path).segments and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.3)
    if how == "Ctrl-C":
        os.killpg(process.pid, signal.SIGINT)  # a terminal asks every process
    else:
        process.terminate()  # a batch system asks the first
    said = process.communicate(timeout=60)[1].decode()
    assert process.returncode == 130, said
    assert "the same command goes on from there" in said
    assert "Traceback" not in said
    workers = [int(path.stem.rsplit("-", 2)[1]) for path in Store(tmp_path).segments]
    deadline = time.monotonic() + 30
    while any(_alive(pid) for pid in workers) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(_alive(pid) for pid in workers)
    contents = Store(tmp_path).read()
    assert 0 < len(contents.records) < 2000
    assert all(record.ok for record in contents.records.values())


def _alive(pid):
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
