"""Camelyon17: three hospitals to learn from, one to choose on, one that is new."""

from __future__ import annotations

from dataclasses import replace

from sfboost_lab.experiments.experiment import Experiment
from sfboost_lab.experiments.figures import dots_of
from sfboost_lab.experiments.frozen_features import NOTE, groups, rows
from sfboost_lab.experiments.grouped_runs import Group
from sfboost_lab.experiments.paper import paper_table
from sfboost_lab.experiments.record import Records
from sfboost_lab.experiments.rules import VALIDATION_DOMAIN
from sfboost_lab.experiments.tables import Table, TableColumn, make_table

DATASET = "camelyon17"
TRAIN, TEST = ("hospital-0", "hospital-3", "hospital-4"), "hospital-2"


def _data(quick: bool) -> dict[str, object]:
    # All 450 000 patches would take hours to look at; these are more than a linear layer can use.
    return {"feature_size": 96, "most": 250 if quick else 10_000}


def plan(seeds: int, quick: bool) -> list[Group]:
    """Return one group per trainer and seed."""
    return groups(
        DATASET,
        seeds,
        quick,
        EXPERIMENT.protocols[quick],
        rule=VALIDATION_DOMAIN,
        train=TRAIN,
        data=_data(quick),
    )


def tables(records: Records) -> list[Table]:
    """Return the table."""
    paper = paper_table(DATASET)
    # The paper has no pseudo-labelling here.
    made = [replace(row, paper=None) if "PL" in row.label else row for row in rows(VALIDATION_DOMAIN)]
    quick = any(record.run.data == _data(True) for record in records.values())
    column = TableColumn("hospital 2", DATASET, f"test-{TEST}", data=_data(quick))
    return [make_table(paper.title, made, [column], records, paper, note=NOTE)]


EXPERIMENT = Experiment(
    "camelyon17",
    "Camelyon17 on frozen features: ERM, IRM, pseudo-labels, ACTIR, SFB",
    seeds=5,
    quick_seeds=1,
    plan=plan,
    tables=tables,
    figure=dots_of(tables),
    files_of=DATASET,
)
