"""Ours: the corrections side by side, on tables whose stable columns are known."""

from __future__ import annotations

from sfboost_lab.experiments.experiment import Experiment
from sfboost_lab.experiments.figures import dots_of
from sfboost_lab.experiments.grouped_runs import Group
from sfboost_lab.experiments.known_columns import ADAPTERS, LEAK, group, rows
from sfboost_lab.experiments.record import Records
from sfboost_lab.experiments.tables import Table, TableColumn, make_table

COLUMNS = (
    TableColumn("AC", "ac", "test-0.1"),
    TableColumn("Gaussian", "gaussian", "test-0.1"),
    # Leak correction needs rows of each class in each cell.
    TableColumn("AC, four classes", "multiclass_ac", "test-0.05", data={"n_rows": 16_384}),
)


def plan(seeds: int, quick: bool) -> list[Group]:
    """Return one group per data set and seed."""
    protocol = EXPERIMENT.protocols[quick]
    return [
        group(column.dataset, seed, protocol, {**ADAPTERS, **LEAK}, **column.data)
        for column in COLUMNS
        for seed in range(seeds)
    ]


def tables(records: Records) -> list[Table]:
    """Return the table."""
    title = "Corrections on known columns: accuracy on 1000 unlabelled rows of the test domain"
    return [make_table(title, rows({**ADAPTERS, **LEAK}), COLUMNS, records)]


EXPERIMENT = Experiment(
    "corrections",
    "Ours: corrections of the pseudo-labels' bias on known columns",
    seeds=50,
    quick_seeds=5,
    plan=plan,
    tables=tables,
    figure=dots_of(tables),
)
