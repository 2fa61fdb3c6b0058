"""Figures of tables and curves: ours filled, the paper's hollow."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sfboost.figures import new_figure
from sfboost.whole_files import whole_file
from sfboost_lab.experiments.rendering import label
from sfboost_lab.experiments.store import Records
from sfboost_lab.experiments.tables import Table

_OURS, _ORACLE = "#2166ac", "#1b7837"
_COLOURS = (
    *("#2166ac", "#b2182b", "#1b7837", "#762a83", "#e08214", "#555555", "#35978f", "#c51b7d"),
    *("#8c510a", "#000000"),
)


def draw_dots(table: Table, path: Path, *, ceiling: float | None = None) -> Path:
    """Draw one panel per column: a dot per row with its standard error, the paper's as a ring.

    Parameters
    ----------
    table : Table
    path : Path
        Where to write; .png, .pdf or .svg.
    ceiling : float, optional
        What nobody can pass, as a line.
    """
    n = len(table.rows)
    figure = new_figure((3.2 + 3.2 * len(table.columns), 1.5 + 0.34 * n))
    panels: Any = figure.subplots(1, len(table.columns), sharey=True, squeeze=False)[0]
    for k, (axes, name) in enumerate(zip(panels, table.columns, strict=True)):
        for height, (row, cells) in enumerate(table.rows):
            cell, ours = cells[k], _ORACLE if row.oracle else _OURS
            if cell.values:
                error = np.nan_to_num(cell.standard_error)
                axes.errorbar(cell.mean, n - height, xerr=error, fmt="o", color=ours, capsize=2)
            if cell.paper is not None:
                axes.plot(cell.paper.mean, n - height, "o", mfc="none", mec="#b2182b", ms=9)
        if ceiling is not None:
            axes.axvline(ceiling, color="#999999", linestyle=":", zorder=0)
        axes.margins(x=0.08)  # from the least to the most: differences are what is looked for
        axes.set(title=name, xlabel="accuracy (%)")
        axes.set_yticks(range(n, 0, -1), [label(row) for row, _ in table.rows])
        axes.grid(alpha=0.3)
    panels[0].plot([], [], "o", color=_OURS, label="measured here, ± standard error")
    if any(row.oracle for row, _ in table.rows):
        panels[0].plot([], [], "o", color=_ORACLE, label="the same, ORACLE")
    if any(cell.paper is not None for _, cells in table.rows for cell in cells):
        panels[0].plot([], [], "o", mfc="none", mec="#b2182b", ms=9, label="paper")
    if ceiling is not None:
        panels[0].plot([], [], ":", color="#999999", label="what nobody can pass")
    figure.legend(fontsize="small", loc="outside lower center", ncols=min(4, 2 * len(panels)))
    return _save(figure, path)


def dots_of(
    tables: Callable[[Records], list[Table]], *, ceiling: float | None = None
) -> Callable[[Records, Path], Path]:
    """Return the figure of an experiment that draws its first table."""
    return lambda records, path: draw_dots(tables(records)[0], path, ceiling=ceiling)


def draw_panels(
    panels: Mapping[str, tuple[Table, Sequence[str]]],
    x: Sequence[float],
    path: Path,
    *,
    xlabel: str,
    ceiling: Sequence[float] | None = None,
    rising: bool = False,
) -> Path:
    """Draw rows of tables as curves over their columns: ours as lines, the paper's as crosses.

    Parameters
    ----------
    panels : mapping of title to (table, labels)
        Which rows of which table each panel shows.
    x : sequence of float
        Where the columns stand.
    path : Path
    xlabel : str
    ceiling : sequence of float, optional
        What nobody can pass, at each x.
    rising : bool
        Draw x from small to large, in powers of ten.
    """
    figure = new_figure((5.5 * len(panels), 5))
    every: Any = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    for axes, (title, (table, labels)) in zip(every, panels.items(), strict=True):
        shown = [(row, cells) for row, cells in table.rows if row.label in labels]
        for k, (row, cells) in enumerate(shown):
            colour = _COLOURS[k % len(_COLOURS)]
            errors = [np.nan_to_num(cell.standard_error) for cell in cells]
            style = "--" if row.oracle else "-"
            means = [cell.mean for cell in cells]
            axes.errorbar(x, means, yerr=errors, color=colour, linestyle=style, label=label(row))
            theirs = [np.nan if cell.paper is None else cell.paper.mean for cell in cells]
            axes.plot(x, theirs, "x", color=colour, alpha=0.7)
        if ceiling is not None:
            axes.plot(x, ceiling, ":", color="#999999", label="the better of shape and colour", zorder=0)
        if any(cell.paper is not None for _, cells in shown for cell in cells):
            axes.plot([], [], "x", color="#555555", label="the paper's values")
        axes.set(title=title, xlabel=xlabel)
        if rising:
            axes.set_xscale("log")
        else:
            axes.invert_xaxis()
        axes.legend(fontsize="x-small")
        axes.grid(alpha=0.3)
    every[0].set_ylabel("accuracy (%)")
    return _save(figure, path)


def _save(figure: Any, path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    # No date in the file: the same records give the same bytes.
    metadata = {"Software": None} if path.suffix == ".png" else {}
    with whole_file(path) as part:
        figure.savefig(part, dpi=150, metadata=metadata)
    return path
