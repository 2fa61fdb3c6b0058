"""Ours: what the rule of choice costs. The runs of `synthetic`, chosen by each rule in turn."""

from __future__ import annotations

from dataclasses import replace

from sfboost_lab.experiments.experiment import Experiment
from sfboost_lab.experiments.figures import dots_of
from sfboost_lab.experiments.paper import paper_table
from sfboost_lab.experiments.record import Records
from sfboost_lab.experiments.rules import LEAVE_ONE_OUT, RULES, TEST_DOMAIN, Rule
from sfboost_lab.experiments.synthetic import COLUMNS, NAME, plan, sfb_rows
from sfboost_lab.experiments.tables import Row, Table, make_table, paired_table


def tables(records: Records) -> list[Table]:
    """Return SFB under every rule, and what an ORACLE's choice would have more."""
    # With two training domains, leaving one out leaves one, and no penalty can tell what is stable in it.
    by_rule = {rule: _rows(rule) for rule in RULES.values() if rule is not LEAVE_ONE_OUT}
    rows = [row for rows in by_rule.values() for row in rows]
    title = "SFB on synthetic data, chosen by each rule"
    pairs = {
        row.label: (replace(row, paper=None), replace(best, paper=None))
        for rule, rows in by_rule.items()
        for row, best in zip(rows, by_rule[TEST_DOMAIN], strict=True)
        if rule is not TEST_DOMAIN
    }
    return [
        make_table(title, rows, COLUMNS, records, paper_table(NAME)),
        paired_table("What an ORACLE's choice has more than each rule's", pairs, COLUMNS, records),
    ]


def _rows(rule: Rule) -> list[Row]:
    """Adapted rows in which nothing but the rule chooses, named by it."""
    rows = (row for row in sfb_rows(rule) if not row.unadapted and "tuned_on" not in row.adapter_hyper)
    return [replace(row, label=f"{row.label}; {rule.name}") for row in rows]


EXPERIMENT = Experiment(
    "selection",
    "Ours: the runs of `synthetic`, chosen by each rule in turn",
    seeds=100,
    quick_seeds=3,
    plan=plan,
    tables=tables,
    figure=dots_of(tables, ceiling=90.0),
    protocol=NAME,
)
