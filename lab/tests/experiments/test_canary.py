"""Records name the code that made them, and runs that are repeated show whether they still hold."""

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from engine_runs import make_groups

from sfboost_lab.experiments import Group, Measured, Record, Run, Store, sweep
from sfboost_lab.experiments.committed import (
    CHECKOUT,
    committed_records,
    compare,
    keep_outcome,
    last_outcome,
    repeat,
    sample,
)
from sfboost_lab.experiments.origin import origin
from sfboost_lab.experiments.registry import planned_groups


def moved(record, points):
    """The record with another accuracy."""
    accuracy = record.value("test") + points / 100
    return replace(record, measured=Measured({"test": {"accuracy": accuracy}}))


def test_every_new_record_names_the_commit_and_the_day(tmp_path):
    records = sweep(make_groups(2, 2), tmp_path).records
    root = Path(__file__).parents[3]
    # What is unpacked from a package may lie within a checkout, and is none.
    asked = ["git", "-C", str(root), "rev-parse", "HEAD"] if (root / ".git").exists() else ["true"]
    head = subprocess.run(asked, capture_output=True, text=True, check=False).stdout
    for record in records.values():
        assert record.made == origin()
        if head:
            assert head.startswith(record.made["commit"].rstrip("+"))
    assert Store(tmp_path).read().records == records


def test_repeated_runs_that_differ_in_the_digit_shown_mean_stale(tmp_path):
    groups = make_groups(3, 2)
    records = sweep(groups, tmp_path / "first").records
    same = repeat(groups, records, tmp_path / "again")
    assert (same.runs, same.stale, same.largest) == (6, False, 0.0)
    assert "6 runs repeated" in same.words()
    name = groups[1].runs[0].id
    for points, stale in ((0.04, False), (0.06, True), (-10, True)):
        other = repeat(groups, {**records, name: moved(records[name], points)}, tmp_path / f"{points}")
        assert other.stale is stale
        if stale:
            assert other.different == {"erm": 1}
            assert other.largest == pytest.approx(abs(points), abs=1e-4)
            assert "STALE" in other.words()


def test_a_run_that_fails_now_or_lost_a_place_is_stale(tmp_path):
    groups = make_groups(1, 1)
    records = sweep(groups, tmp_path).records
    (name,) = records
    failed = replace(records[name], measured=None, error="no more")
    elsewhere = replace(records[name], measured=Measured({"other": {"accuracy": 0.5}}))
    assert compare(records, {name: failed}).stale
    assert compare(records, {name: elsewhere}).stale


def test_the_sample_has_every_kind_before_it_repeats_one():
    groups = planned_groups("corrections")
    records = {run.id: Record(run, None, 1.0) for group in groups for run in group.runs}
    one_each = sample(groups, records, seconds=30)
    assert [len(group.runs) for group in one_each] == [10, 10, 10]
    assert {group.runs[0].dataset for group in one_each} == {"ac", "gaussian", "multiclass_ac"}
    assert [group.runs[0].dataset for group in sample(groups, records, seconds=10)] == ["ac"]
    assert len(sample(groups, records, seconds=100)) == 10
    assert len(sample(groups, records, seconds=0)) == 1


def test_a_dear_method_is_repeated_before_a_cheap_one_on_other_data():
    cheap = [
        Group("m:f", (Run("ac", "erm", seed=0, protocol="test", data={"agreement": a}),)) for a in range(9)
    ]
    dear = Group("m:f", (Run("ac", "sfb", seed=0, protocol="test"),))
    records = {g.runs[0].id: Record(g.runs[0], None, 1.0) for g in cheap}
    records[dear.runs[0].id] = Record(dear.runs[0], None, 5.0)
    assert dear in sample([*cheap, dear], records, seconds=7)


def test_an_outcome_is_kept_for_the_records_it_is_about_alone(tmp_path):
    (tmp_path / "small.jsonl.gz").write_bytes(b"records")
    outcome = compare({}, {}, not_repeated=("irm",))
    assert last_outcome("small", tmp_path) is None
    keep_outcome("small", outcome, tmp_path)
    assert last_outcome("small", tmp_path) == outcome
    (tmp_path / "small.jsonl.gz").write_bytes(b"others")
    assert last_outcome("small", tmp_path) is None


def test_every_file_of_records_has_a_check_of_its_own_bytes(capsys):
    """Records that were packed anew need `sfboost-lab results check NAME --keep`."""
    packed = {path.name.removesuffix(".jsonl.gz") for path in CHECKOUT.glob("*.jsonl.gz")}
    outcomes = {protocol: last_outcome(protocol) for protocol in sorted(packed)}
    assert packed == set(json.loads((CHECKOUT / "checks.json").read_text("utf-8")))
    assert [protocol for protocol, outcome in outcomes.items() if outcome is None] == []
    root = CHECKOUT.parents[1]
    if not (root / ".git").exists():  # an sdist has no history
        return
    changed = {}
    for protocol, outcome in outcomes.items():
        commit = outcome.made["commit"].rstrip("+")
        command = ["git", "-C", str(root), "rev-list", "--count", f"{commit}..HEAD", "--", "src", "lab/src"]
        counted = subprocess.run(command, capture_output=True, text=True, check=False)
        changed[protocol] = counted.stdout.strip() or "unknown"  # a shallow clone lacks the commit
    said = "; ".join(f"{protocol} ({n})" for protocol, n in changed.items() if n != "0")
    stale = [f"{protocol}: {outcome.words()}" for protocol, outcome in outcomes.items() if outcome.stale]
    with capsys.disabled():
        print(
            f"\nCommits that changed code since records were last checked: {said or 'none'}", *stale, sep="\n"
        )


@pytest.mark.long
@pytest.mark.parametrize("protocol", ["corrections", "sample-size"])
def test_a_few_committed_records_are_what_this_code_gives(protocol, tmp_path):
    """The short canary: `sfboost-lab results check` repeats more. Figures that differ: run them again."""
    records = committed_records(protocol)
    outcome = repeat(sample(planned_groups(protocol), records, seconds=4), records, tmp_path)
    assert outcome.runs >= 9
    assert not outcome.stale, outcome.words()
