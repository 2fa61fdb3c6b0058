"""Ours: what the rule of choice costs. The runs of `synthetic`, chosen by each rule in turn."""

from __future__ import annotations

from pathlib import Path

from sfboost.experiments.experiment import Experiment, Records
from sfboost.experiments.figures import draw_dots
from sfboost.experiments.paper import paper_table
from sfboost.experiments.rules import LEAVE_ONE_OUT, RULES
from sfboost.experiments.synthetic import COLUMNS, NAME, plan, sfb_rows
from sfboost.experiments.tables import Table, make_table


def tables(records: Records) -> list[Table]:
    """Return SFB under every rule."""
    # With two training domains, leaving one out leaves one, and no penalty can tell what is stable in it.
    rules = [rule for rule in RULES.values() if rule is not LEAVE_ONE_OUT]
    rows = [row for rule in rules for row in sfb_rows(rule) if not row.unadapted]
    return [
        make_table("SFB on synthetic data, chosen by each rule", rows, COLUMNS, records, paper_table(NAME))
    ]


def figure(records: Records, path: Path) -> Path:
    """Draw the table."""
    return draw_dots(tables(records)[0], path, ceiling=90.0)


EXPERIMENT = Experiment(
    "selection",
    "Ours: the runs of `synthetic`, chosen by each rule in turn",
    seeds=100,
    quick_seeds=3,
    plan=plan,
    tables=tables,
    figure=figure,
    protocol=NAME,
)
