"""Showing and checking records by the command."""

import json
from dataclasses import replace

import pytest
from absent import run_without

pytest.importorskip("typer", reason="the [app] extra brings the command")

from typer.testing import CliRunner

from sfboost_lab.commands.app import app
from sfboost_lab.experiments import Store
from sfboost_lab.experiments.committed import committed_records
from sfboost_lab.experiments.store import write_records

SHOW_ALL = """
import json
from typer.testing import CliRunner
from sfboost_lab.commands.app import app
from sfboost_lab.experiments.registry import EXPERIMENTS
done = {name: CliRunner().invoke(app, ["results", "show", name]) for name in EXPERIMENTS}
print(json.dumps({name: [d.exit_code, d.output] for name, d in done.items()}))
"""


RUN_ALL = """
import json
from typer.testing import CliRunner
from sfboost_lab.commands.app import app
done = [CliRunner().invoke(app, words) for words in {commands!r}]
print(json.dumps([[d.exit_code, d.output] for d in done]))
"""
SHOW = ("results", "show", "sample-size")


def run_all_without_torch(commands):
    done = run_without(("torch", "safetensors"), RUN_ALL.format(commands=commands))
    return json.loads(done.stdout)


def invoke(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.mark.long
def test_every_experiment_is_shown_without_torch():
    done = run_without(("torch", "safetensors", "pooch", "PIL"), SHOW_ALL)
    shown = json.loads(done.stdout)
    without_records = {name for name, (code, _) in shown.items() if code != 0}
    assert without_records == {"camelyon17"}
    assert "No records of 'camelyon17' are in" in shown["camelyon17"][1]
    for name in set(shown) - without_records:
        assert "SFB" in shown[name][1]
        assert "at commit" in shown[name][1]


@pytest.mark.long
def test_what_does_need_torch_says_so_and_a_folder_of_results_is_shown_without_it(tmp_path):
    runs = [r for r in committed_records("synthetic").values() if r.run.seed == 0]
    Store(tmp_path).append(runs)
    commands = (
        ["results", "show", "synthetic", "--from", str(tmp_path)],
        ["results", "pack", "synthetic", "--from", str(tmp_path), "-o", str(tmp_path / "s.jsonl.gz")],
        ["results", "check", "synthetic"],
        ["reproduce", "synthetic", "--out", str(tmp_path / "r")],
        ["table-one"],
    )
    shown, *others = run_all_without_torch(commands)
    assert shown[0] == 0, shown
    assert "SFB (ours) (ORACLE)" in shown[1]
    for code, said in others:
        assert code == 2
        assert said.strip().endswith("needs torch: pip install 'sfboost[all]' brings every extra."), said


@pytest.fixture
def few(tmp_path):
    """A few committed records of `sample-size`, in a place of their own."""
    kept = [
        r
        for r in committed_records("sample-size").values()
        if r.run.seed == 0 and r.run.data == {"n_test": 30}
    ]
    folder = tmp_path / "committed"
    write_records(kept, folder / "sample-size.jsonl.gz")
    return folder


def test_what_a_check_found_is_said_when_the_records_are_shown(few):
    assert "`sfboost-lab results check sample-size`" in invoke(*SHOW, "--records", few).output
    file = few / "sample-size.jsonl.gz"
    records = committed_records("sample-size", few)
    moved = [
        replace(
            r, measured=replace(r.measured, metrics={"test-0.1": {"accuracy": r.value("test-0.1") - 0.1}})
        )
        if r.run.adapter == "none"
        else r
        for r in records.values()
    ]
    write_records(moved, file)
    found = invoke("results", "check", "sample-size", "--seconds", 0, "--jobs", 1, "--keep", "--records", few)
    assert found.exit_code == 1
    assert "STALE: of 9 runs" in found.output
    assert "1 of sfb-columns;" in found.output
    assert "STALE: of 9 runs" in invoke(*SHOW, "--records", few).output


def test_records_are_unpacked_without_what_is_to_be_run_again(few, tmp_path):
    out = tmp_path / "results"
    done = invoke(
        "results", "unpack", "sample-size", "--out", out, "--without", "sfb,sfb-labels", "--records", few
    )
    assert "of 9 records" in done.output
    assert {r.run.adapter for r in Store(out).read().records.values()} == {"none", "sfb-paper"}


def test_records_of_a_trainer_are_left_out_by_its_name(few, tmp_path):
    out = tmp_path / "results"
    done = invoke(
        "results", "unpack", "sample-size", "--out", out, "--without", "sfb-columns", "--records", few
    )
    assert done.exit_code == 0
    assert "sfb-columns" not in {r.run.trainer for r in Store(out).read().records.values()}


def test_a_check_of_an_unknown_experiment_is_answered_by_a_sentence():
    done = invoke("results", "check", "sample-sise")
    assert done.exit_code == 2
    assert "Did you mean 'sample-size'?" in done.output
