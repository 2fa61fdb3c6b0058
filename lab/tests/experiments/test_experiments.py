"""Every experiment: its plan feeds its tables, and what shares a folder does not disturb each other."""

import pytest

pytest.importorskip("torch", reason="the [torch] extra brings the trainers")

from sfboost_lab.experiments import Measured, Record
from sfboost_lab.experiments.registry import EXPERIMENTS, planned_runs
from sfboost_lab.experiments.rendering import chosen_by, label

AGREEMENTS = [f"{k / 10}" for k in range(11)]


def pretended(run):
    """A record that has every place there is; what it says does not matter here."""
    places = [f"test-{a}" for a in AGREEMENTS]
    places += [f"test-{d}" for d in ("photo", "art_painting", "cartoon", "sketch", "hospital-2")]
    places += [
        "test-0.05",
        "validate-0.6",
        "held/train-0.9",
        "stress/0.1",
        "oracle/test-0.1",
        f"left-out/{run.left_out}",
    ]
    metrics = {place: {"accuracy": 0.5, "log_loss": 0.7} for place in places}
    trained_on = ("art_painting", "cartoon", "photo", "sketch")
    trained_on = tuple(d for d in trained_on if d != run.data.get("test"))
    return Record(run, Measured(metrics, trained_on=trained_on), 0.0)


@pytest.fixture(scope="module")
def folder():
    """The records of every experiment, full and quick, one seed, in one folder."""
    runs = [
        r for name in EXPERIMENTS for q in (False, True) for g in EXPERIMENTS[name].plan(1, q) for r in g.runs
    ]
    return {run.id: pretended(run) for run in runs}


@pytest.mark.parametrize("quick", [False, True])
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_cell_of_every_table_is_fed_by_the_plan(folder, name, quick):
    experiment = EXPERIMENTS[name]
    for table in experiment.tables(experiment.own(folder, quick=quick)):
        empty = [
            (row.label, c)
            for row, cells in table.rows
            for c, x in zip(table.columns, cells, strict=True)
            if not x.values
        ]
        assert empty == []
        assert all(len(cell.values) == 1 for _, cells in table.rows for cell in cells)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_row_that_the_paper_has_stands_beside_it(folder, name):
    experiment = EXPERIMENTS[name]
    tables = experiment.tables(experiment.own(folder, quick=False))
    named = [(row, cells) for table in tables for row, cells in table.rows if row.paper is not None]
    assert all(any(cell.paper is not None for cell in cells) for _, cells in named)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_the_paper_and_ours_are_two_rows(folder, name):
    experiment = EXPERIMENTS[name]
    labels = {
        row.label for table in experiment.tables(experiment.own(folder, quick=False)) for row, _ in table.rows
    }
    if any("SFB" in label for label in labels):
        assert any("(paper)" in label for label in labels)
        assert any("(ours)" in label for label in labels)


def shown(folder, name):
    """How each row of an experiment is called, and how it was chosen."""
    experiment = EXPERIMENTS[name]
    tables = experiment.tables(experiment.own(folder, quick=False))
    return {label(row): chosen_by(row) for table in tables for row, _ in table.rows}


def test_a_way_that_was_found_on_test_labels_is_an_oracle(folder):
    """Ours by the same standard as the paper's: what chooses is blind, the way itself is not."""
    pacs = shown(folder, "pacs")
    assert "SFB (ours)" not in pacs
    assert "found on test accuracies" in pacs["SFB (ours) (ORACLE)"]
    for name in ("cmnist", "cmnist-domains", "ablations"):  # here the training domains decide
        told = shown(folder, name)["SFB (ours) (ORACLE)"]
        assert told.startswith("stress domains; way found on test accuracies")
    synthetic = shown(folder, "synthetic")
    assert synthetic["SFB (ours) (ORACLE)"] == "validation domain; training found on test accuracies"
    assert "training and adaptation found" in synthetic["SFB (ours), always post-hoc (ORACLE)"]


def test_what_was_found_elsewhere_is_no_oracle(folder):
    """Components were found on PACS and the learned split on ColoredMNIST: Camelyon17 was not looked at."""
    hospital = shown(folder, "camelyon17")
    assert hospital["SFB (ours)"] == hospital["SFB (ours), learned split"] == "validation domain"
    assert shown(folder, "pacs")["SFB (ours), learned split"] == "leave one domain out"


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_an_oracle_says_why_and_what_was_found_on_test_labels_is_one(folder, name):
    experiment = EXPERIMENTS[name]
    for table in experiment.tables(experiment.own(folder, quick=False)):
        for row, _ in table.rows:
            why = (row.remark, row.test_access == "labelled", row.rule is not None and row.rule.oracle)
            assert any(why) or not row.oracle or "Oracle" in row.label, row.label
            if any(part in row.remark for part in ("found on", "moved towards")):
                assert row.oracle, row.label


def test_baselines_that_were_moved_towards_the_paper_say_so(folder):
    extended = shown(folder, "cmnist")
    for title in ("ERM", "GroupDRO", "IGA"):
        assert "moved towards the paper's value" in extended[f"{title} (ORACLE)"]
    for title in ("SD", "EQRM", "Fishr", "IRM"):
        assert "coloured like the test domain" in extended[f"{title} (ORACLE)"]
    assert "moved towards the paper's value" in shown(folder, "cmnist-domains")["ERM (ORACLE)"]


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_more_seeds_add_runs_and_change_none(name):
    plan = EXPERIMENTS[name].plan
    one, two = ({r.id for g in plan(seeds, True) for r in g.runs} for seeds in (1, 2))
    assert one < two
    assert len(two) == 2 * len(one)


def test_quick_and_full_runs_never_share_an_id():
    for name in EXPERIMENTS:
        full, quick = ({r.id for g in EXPERIMENTS[name].plan(1, q) for r in g.runs} for q in (False, True))
        assert not full & quick


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_the_figure_is_drawn_and_the_same_records_give_the_same_bytes(folder, name, tmp_path):
    pytest.importorskip("matplotlib", reason="the [app] extra brings the figure")
    experiment = EXPERIMENTS[name]
    own = experiment.own(folder, quick=True)
    one = experiment.figure(own, tmp_path / "1.png").read_bytes()
    assert one.startswith(b"\x89PNG")
    if name in ("pacs", "cmnist-domains"):  # one kind of figure each
        assert experiment.figure(own, tmp_path / "2.png").read_bytes() == one


@pytest.mark.long
@pytest.mark.parametrize("protocol", ["cmnist", "corrections", "pacs", "sample-size", "synthetic"])
def test_committed_records_are_whole_and_belong_to_todays_plan(protocol):
    """A changed default makes another run: then these must be made anew."""
    from sfboost_lab.experiments.committed import committed_records

    records = committed_records(protocol)
    assert set(records) == planned_runs(protocol)
    assert all(record.ok for record in records.values())
