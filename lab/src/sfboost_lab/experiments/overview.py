"""What tables say in one line, and which of their figures is the best: what the page opens with."""

from __future__ import annotations

import math
from collections.abc import Sequence

from sfboost_lab.experiments.rendering import label, number
from sfboost_lab.experiments.tables import Cell, Row, Table

# A difference within so many of its standard errors is none.
_ERRORS = 2.0


def in_one_line(tables: Sequence[Table]) -> str:
    """Say how the figures stand to the paper's and to their targets.

    Examples
    --------
    >>> from sfboost_lab.experiments.paper import PaperValue
    >>> near, far = PaperValue(88.5, 0.5, "se", 100), PaperValue(9.0, 0.5, "se", 100)
    >>> cells = (Cell((88.0, 90.0), near), Cell((1.0, 1.2), far))
    >>> in_one_line([Table("T", ("AC", "CE"), ((Row("ERM", "erm"), cells),))])
    '1 of 2 within two standard errors of the paper; farthest -7.9 (ERM, CE)'
    """
    every = [
        (row, column, cell)
        for table in tables
        for row, cells in table.rows
        for column, cell in zip(table.columns, cells, strict=True)
        if cell.values
    ]
    told = []
    beside = [(row, column, cell) for row, column, cell in every if not math.isnan(cell.difference)]
    if beside:
        judged = [cell for _, _, cell in beside if not math.isnan(cell.difference_error)]
        near = sum(abs(cell.difference) <= _ERRORS * cell.difference_error for cell in judged)
        row, column, far = max(beside, key=lambda part: abs(part[2].difference))
        if judged:
            told.append(f"{near} of {len(judged)} within two standard errors of the paper")
        told.append(f"farthest {number(far.difference, signed=True)} ({label(row)}, {column})")
    aims = [(c.target.missed_by(c.mean), row, column) for row, column, c in every if c.target is not None]
    if aims:
        reached = sum(number(missed) == "0.0" for missed, _, _ in aims)
        told.append(f"{reached} of {len(aims)} targets reached")
        worst, row, column = max(aims, key=lambda part: part[0])
        if number(worst) != "0.0":
            told.append(f"the farthest is {number(worst)} short ({label(row)}, {column})")
    return "; ".join(told) or "nothing to compare with"


def best_of(table: Table) -> list[float]:
    """The best figure of each column that no ORACLE has; NaN where less is better, or nothing is there."""
    best = []
    for k in range(len(table.columns)):
        column: list[tuple[Row, Cell]] = [(row, cells[k]) for row, cells in table.rows if cells[k].values]
        less_is_better = any(c.target is not None and not c.target.at_least for _, c in column)
        honest = [cell.mean for row, cell in column if not row.oracle]
        best.append(math.nan if less_is_better else max(honest, default=math.nan))
    return best
