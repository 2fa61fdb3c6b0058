"""ColoredMNIST: SFB with other stability penalties."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sfboost.experiments.colored import DATASET, NEEDS, PROTOCOL, adapted, group, models
from sfboost.experiments.experiment import Experiment, Records
from sfboost.experiments.figures import draw_dots
from sfboost.experiments.paper import paper_table
from sfboost.experiments.rules import TEST_DOMAIN
from sfboost.experiments.tables import Cell, Column, Row, Table, make_table
from sfboost.experiments.work import Group

ROUNDS = 5
_WEIGHTS = (50, 100, 500, 1000, 5000)
#: Title → the penalty's name and its sweep; EQRM is swept by the weight of what it adds to the mean risk.
PENALTIES: dict[str, tuple[str, tuple[float, ...]]] = {
    "IRM": ("irm", _WEIGHTS),
    "V-REx": ("vrex", _WEIGHTS),
    "EQRM": ("eqrm", (1, 5, 10)),
    "CLOvE": ("clove", _WEIGHTS),
}
_HERE = Column("0.1", DATASET, "test-0.1")


def plan(seeds: int, quick: bool) -> list[Group]:
    """Return one group per seed."""
    groups = []
    for seed in range(seeds):
        runs = []
        for penalty, weights in PENALTIES.values():
            sweep = [{"stability": penalty, "stability_weight": weight} for weight in weights]
            for model in models("sfb-paper", seed, quick, sweep):
                runs += [model, adapted(model, "sfb-paper", rounds=ROUNDS)]
            for model in models("sfb", seed, quick, [{"stability": penalty}]):
                runs += [model, adapted(model, "sfb", correction="posthoc")]
        groups.append(group(runs))
    return groups


def _row(title: str, who: str, adapter: str, **more: Any) -> Row:
    trainer = "sfb-paper" if who == "paper" else "sfb"
    if who == "paper":
        more |= {"rule": TEST_DOMAIN, "across_seeds": True}
    if adapter == "none":
        more |= {"chosen_with": trainer} if who == "paper" else {}
    else:
        more |= {"adapter_hyper": {"rounds": ROUNDS} if who == "paper" else {}}
    more["test_access"] = "none" if adapter == "none" else "unlabelled"
    hyper = {"stability": PENALTIES[title][0]}
    return Row(f"{title}, SFB ({who})", trainer, adapter, paper=title, hyper=hyper, **more)


def tables(records: Records) -> list[Table]:
    """Return the table: without and with adaptation, side by side."""
    paper = paper_table("penalties")
    made = []
    for title in PENALTIES:
        for who, adapter in (("paper", "sfb-paper"), ("ours", "sfb")):
            without, adapted_row = _row(title, who, "none"), _row(title, who, adapter)
            cells = []
            for row, column in zip((without, adapted_row), paper.columns, strict=True):
                cell = make_table("", [row], [_HERE], records).rows[0][1][0]
                cells.append(Cell(cell.values, paper.value(title, column)))
            made.append((adapted_row, tuple(cells)))
    return [Table(paper.title, paper.columns, tuple(made), paper.note)]


def figure(records: Records, path: Path) -> Path:
    """Draw ours beside the paper's."""
    return draw_dots(tables(records)[0], path, ceiling=90.0)


EXPERIMENT = Experiment(
    "penalties",
    "ColoredMNIST at agreement 0.1: SFB with IRM, V-REx, EQRM, CLOvE",
    seeds=10,
    quick_seeds=1,
    plan=plan,
    tables=tables,
    figure=figure,
    needs=NEEDS,
    protocol=PROTOCOL,
)
