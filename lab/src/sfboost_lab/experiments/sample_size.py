"""Ours: how many unlabelled rows adaptation needs, on Gaussian tables whose stable columns are known."""

from __future__ import annotations

from pathlib import Path

from sfboost_lab.experiments.experiment import Experiment
from sfboost_lab.experiments.figures import draw_panels
from sfboost_lab.experiments.grouped_runs import Group
from sfboost_lab.experiments.known_columns import group, rows
from sfboost_lab.experiments.record import Records
from sfboost_lab.experiments.tables import Table, TableColumn, make_table

SIZES = (30, 100, 300, 1000, 3000)
COLUMNS = tuple(TableColumn(f"n = {n}", "gaussian", "test-0.1", data={"n_test": n}) for n in SIZES)


def plan(seeds: int, quick: bool) -> list[Group]:
    """Return one group per number of rows and seed."""
    protocol = EXPERIMENT.protocols[quick]
    return [group("gaussian", seed, protocol, n_test=n) for n in SIZES for seed in range(seeds)]


def tables(records: Records) -> list[Table]:
    """Return the table."""
    title = "Unlabelled rows that adaptation needs: accuracy on those rows, Gaussian family"
    return [make_table(title, rows(), COLUMNS, records)]


def figure(records: Records, path: Path) -> Path:
    """Draw accuracy against the number of rows."""
    (table,) = tables(records)
    panels = {"Gaussian family": (table, tuple(row.label for row, _ in table.rows))}
    return draw_panels(panels, SIZES, path, xlabel="unlabelled rows of the new domain", rising=True)


EXPERIMENT = Experiment(
    "sample-size",
    "Ours: accuracy by the number of unlabelled rows, 30 to 3000",
    seeds=50,
    quick_seeds=5,
    plan=plan,
    tables=tables,
    figure=figure,
)
