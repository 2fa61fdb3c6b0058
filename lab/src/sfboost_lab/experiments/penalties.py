"""ColoredMNIST: SFB with other stability penalties."""

from __future__ import annotations

from itertools import zip_longest
from typing import Any

from sfboost_lab.experiments.cmnist import ORACLE_CHOICE
from sfboost_lab.experiments.cmnist_shared import (
    DATASET,
    FEW_SEEDS,
    MOVED,
    OUR_CHOICE,
    OUR_WAY,
    PAPER_ADAPTER,
    PROTOCOL,
    group,
    groups,
    models,
    our_adaptations,
    paper_runs,
    parts,
)
from sfboost_lab.experiments.experiment import Experiment
from sfboost_lab.experiments.figures import dots_of
from sfboost_lab.experiments.grouped_runs import Group
from sfboost_lab.experiments.paper import paper_table
from sfboost_lab.experiments.record import Records
from sfboost_lab.experiments.tables import Cell, Row, Table, TableColumn, make_table

ROUNDS = 5
#: Title → the penalty's name; λ is swept as for the baseline of the same penalty.
PENALTIES = {"IRM": "irm", "V-REx": "vrex", "EQRM": "eqrm", "CLOvE": "clove"}
#: EQRM's is a deviation, not a variance: its gradient does not fade where the risks are equal but for noise.
OUR_WEIGHTS: dict[str, dict[str, Any]] = {"eqrm": {"stability_weight": 0.1}}
_HERE = TableColumn("0.1", DATASET, "test-0.1")


def plan(seeds: int, quick: bool) -> list[Group]:
    """Return the groups of each seed: the paper's features, which share pretraining, and ours.

    Our features with another penalty than IRM have three seeds.
    """
    made = []
    for seed in range(seeds):
        theirs, ours = [], []
        for penalty in PENALTIES.values():
            theirs.append(paper_runs(models(penalty, seed, quick), parts(ROUNDS)))
            if penalty != "irm" and seed >= FEW_SEEDS:
                continue
            for model in models("sfb", seed, quick, [OUR_WEIGHTS.get(penalty, {}) | {"stability": penalty}]):
                ours.append(group([model, *our_adaptations(model, "sfb-flat")]))
        # In turns: what begins together should not pretrain the same twice.
        pairs = zip_longest(groups(theirs, quick), ours)
        made += [one for pair in pairs for one in pair if one is not None]
    return made


def _row(title: str, who: str, unadapted: bool) -> Row:
    options: dict[str, Any] = {"hyper": {"stability": PENALTIES[title], "split": "separate"}}
    options["unadapted"] = unadapted
    options["test_access"] = "none" if unadapted else "unlabelled"
    if who == "ours":
        return Row(f"{title}, SFB (ours)", "sfb", "sfb-flat", **OUR_CHOICE, **OUR_WAY, **options)
    options |= {"adapter_hyper": parts(ROUNDS), "remark": MOVED.get(PENALTIES[title], ""), **ORACLE_CHOICE}
    return Row(f"{title}, SFB (paper)", "sfb-paper", PAPER_ADAPTER, **options)


def tables(records: Records) -> list[Table]:
    """Return the table: without and with adaptation, side by side."""
    paper = paper_table("penalties")
    made = []
    for title in PENALTIES:
        for who in ("paper", "ours"):
            both = _row(title, who, True), _row(title, who, False)
            cells = []
            for row, column in zip(both, paper.columns, strict=True):
                cell = make_table("", [row], [_HERE], records).rows[0][1][0]
                cells.append(Cell(cell.values, paper.value(title, column)))
            made.append((both[1], tuple(cells)))
    return [Table(paper.title, paper.columns, tuple(made), paper.note)]


EXPERIMENT = Experiment(
    "penalties",
    "ColoredMNIST at agreement 0.1: SFB with IRM, V-REx, EQRM, CLOvE",
    seeds=10,
    quick_seeds=1,
    plan=plan,
    tables=tables,
    figure=dots_of(tables, ceiling=90.0),
    files_of=DATASET,
    protocol=PROTOCOL,
)
