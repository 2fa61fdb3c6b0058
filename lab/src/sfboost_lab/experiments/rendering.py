"""Tables as Markdown, CSV, LaTeX and figures, and one page of all, which loads nothing from outside.

Whatever used test labels says ORACLE in each. In figures ours is filled, the paper's hollow.
"""

from __future__ import annotations

import base64
import csv
import io
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from sfboost.figures import new_figure
from sfboost.whole_files import whole_file, write_whole
from sfboost_lab.experiments.experiment import Experiment
from sfboost_lab.experiments.store import Record, Records
from sfboost_lab.experiments.tables import Cell, Row, Table

_CSV = (
    *("table", "method", "test_access", "chosen_by", "oracle", "column", "mean", "standard_error", "seeds"),
    *("paper_mean", "paper_spread", "paper_spread_is", "difference", "difference_error"),
)


def number(value: float, *, signed: bool = False) -> str:
    """Return a percentage with one digit, or a dash where there is none.

    Examples
    --------
    >>> number(88.06), number(-0.44, signed=True), number(float("nan"))
    ('88.1', '-0.4', '–')
    """
    if math.isnan(value):
        return "–"
    return f"{value:+.1f}" if signed else f"{value:.1f}"


def label(row: Row) -> str:
    """Return the name of a row, with ORACLE where it is one.

    Examples
    --------
    >>> label(Row("Oracle", "erm", test_access="labelled"))
    'Oracle (ORACLE)'
    """
    return f"{row.label} (ORACLE)" if row.oracle and "ORACLE" not in row.label else row.label


def chosen_by(row: Row) -> str:
    """Return how a row's hyper-parameters were chosen, and what was fixed before that in no blind way.

    Examples
    --------
    >>> chosen_by(Row("ERM", "erm")), chosen_by(Row("ERM", "erm", remark="steps moved"))
    ('fixed', 'fixed; steps moved')
    """
    rule = "fixed" if row.rule is None else row.rule.name
    return f"{rule}; {row.remark}" if row.remark else rule


def words(cell: Cell) -> str:
    """Return a cell as people read it: ours ± error (seeds); the paper's; the difference ± its error.

    Examples
    --------
    >>> from sfboost_lab.experiments.paper import PaperValue
    >>> words(Cell((88.0, 90.0), PaperValue(88.5, 0.5, "se", 100)))
    '89.0 ± 1.0 (2); paper 88.5 ± 0.5, +0.5 ± 1.1'
    """
    if not cell.values:
        ours = "–"
    elif len(cell.values) == 1:
        ours = f"{number(cell.mean)} (1)"
    else:
        ours = f"{number(cell.mean)} ± {number(cell.standard_error)} ({len(cell.values)})"
    if cell.paper is None:
        return ours
    theirs = f"paper {number(cell.paper.mean)}"
    if not math.isnan(cell.paper.spread):
        theirs += f" ± {number(cell.paper.spread)}"
    if not cell.values:
        return f"{ours}; {theirs}"
    difference = number(cell.difference, signed=True)
    if not math.isnan(cell.difference_error):
        difference += f" ± {number(cell.difference_error)}"
    return f"{ours}; {theirs}, {difference}"


def to_markdown(table: Table) -> str:
    """Return the table in Markdown.

    Examples
    --------
    >>> print(to_markdown(Table("T", ("AC",), ((Row("ERM", "erm"), (Cell((10.0,)),)),))))
    **T**
    <BLANKLINE>
    | method | test labels | chosen by | AC |
    |---|---|---|---|
    | ERM | none | fixed | 10.0 (1) |
    <BLANKLINE>
    """
    head = ["method", "test labels", "chosen by", *table.columns]
    lines = [f"**{table.title}**", "", _pipes(head), "|" + "---|" * len(head)]
    for row, cells in table.rows:
        lines.append(_pipes([label(row), row.test_access, chosen_by(row), *map(words, cells)]))
    return "\n".join([*lines, "", table.note] if table.note else [*lines, ""])


def _pipes(cells: list[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def to_csv(table: Table) -> str:
    """Return the table as CSV, one line per row and column, every number on its own.

    Examples
    --------
    >>> to_csv(Table("T", ("AC",), ((Row("ERM", "erm"), (Cell((10.0,)),)),))).splitlines()[1]
    'T,ERM,none,fixed,False,AC,10.0,,1,,,,,'
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(_CSV)
    for row, cells in table.rows:
        for column, cell in zip(table.columns, cells, strict=True):
            theirs = (
                ("", "", "") if cell.paper is None else (cell.paper.mean, cell.paper.spread, cell.paper.kind)
            )
            values = [table.title, row.label, row.test_access, chosen_by(row), row.oracle, column, cell.mean]
            values += [cell.standard_error, len(cell.values), *theirs, cell.difference, cell.difference_error]
            writer.writerow(["" if isinstance(v, float) and math.isnan(v) else v for v in values])
    return out.getvalue()


def to_latex(table: Table) -> str:
    r"""Return the table as a LaTeX tabular: ours ± standard error and, small, the paper's and the difference.

    Examples
    --------
    >>> print(to_latex(Table("T", ("AC",), ((Row("A & B", "erm"), (Cell((10.0,)),)),))))
    % T
    \begin{tabular}{llrr}
    \hline
    method & chosen by & seeds & AC \\
    \hline
    A \& B & fixed & 1 & $10.0$ \\
    \hline
    \end{tabular}
    <BLANKLINE>
    """
    lines = [f"% {table.title}", r"\begin{tabular}{llr" + "r" * len(table.columns) + "}", r"\hline"]
    lines += [" & ".join(["method", "chosen by", "seeds", *map(_tex, table.columns)]) + r" \\", r"\hline"]
    for row, cells in table.rows:
        seeds = str(max((len(cell.values) for cell in cells), default=0))
        parts = [_tex(label(row)), _tex(chosen_by(row)), seeds, *map(_tex_cell, cells)]
        lines.append(" & ".join(parts) + r" \\")
    lines += [r"\hline", r"\end{tabular}"]
    return "\n".join([*lines, *([f"% {table.note}"] if table.note else []), ""])


def _tex_cell(cell: Cell) -> str:
    if not cell.values:
        ours = "--"
    elif math.isnan(cell.standard_error):
        ours = f"${number(cell.mean)}$"
    else:
        ours = rf"${number(cell.mean)} \pm {number(cell.standard_error)}$"
    if cell.paper is None:
        return ours
    spread = "" if math.isnan(cell.paper.spread) else rf" \pm {number(cell.paper.spread)}"
    beside = f"{number(cell.paper.mean)}{spread}"
    if cell.values:
        beside += f",\\ {number(cell.difference, signed=True)}"
        if not math.isnan(cell.difference_error):
            beside += rf" \pm {number(cell.difference_error)}"
    return rf"{ours} {{\scriptsize (${beside}$)}}"


def _tex(text: str) -> str:
    for character in "&%_#$":
        text = text.replace(character, "\\" + character)
    return text


FORMATS: dict[str, Callable[[Table], str]] = {"md": to_markdown, "csv": to_csv, "tex": to_latex}


def to_text(tables: Sequence[Table], format: str, *, quick: bool = False) -> str:
    """Return some tables as one file of a format; those of quick runs say so.

    Examples
    --------
    >>> table = Table("T", ("AC",), ((Row("ERM", "erm"), (Cell((10.0,)),)),))
    >>> to_text([table, table], "csv", quick=True).splitlines()[1:]
    ['T (QUICK),ERM,none,fixed,False,AC,10.0,,1,,,,,', 'T (QUICK),ERM,none,fixed,False,AC,10.0,,1,,,,,']
    """
    if quick:
        tables = [replace(table, title=f"{table.title} (QUICK)") for table in tables]
    parts = [FORMATS[format](table) for table in tables]
    if format == "csv":  # one head for all tables
        return "".join([parts[0], *(part.partition("\n")[2] for part in parts[1:])])
    return "\n".join(parts)


def best_of(table: Table) -> list[float]:
    """Return the best figure of each column that no ORACLE has; NaN where there is none."""
    honest = [
        [cells[k].mean for row, cells in table.rows if cells[k].values and not row.oracle]
        for k in range(len(table.columns))
    ]
    return [max(column, default=math.nan) for column in honest]


def write_tables(
    experiment: Experiment,
    tables: Sequence[Table],
    records: Mapping[str, Record],
    out: Path,
    *,
    quick: bool = False,
) -> list[Path]:
    """Write the tables in every format and the figure; return the files."""
    stem = experiment.name + ("-quick" if quick else "")
    out.mkdir(parents=True, exist_ok=True)
    written = []
    for suffix in FORMATS:
        path = out / f"{stem}.{suffix}"
        write_whole(path, to_text(tables, suffix, quick=quick).encode())
        written.append(path)
    if experiment.figure is not None:
        good = {name: record for name, record in records.items() if record.ok}
        written.append(experiment.figure(good, out / f"{stem}.png"))
    return written


def write_page(
    experiments: Sequence[Experiment], records: Mapping[str, Record], out: Path, *, quick: bool = False
) -> Path:
    """Write ``index.html``: a summary, then every experiment's figure and tables."""
    from jinja2 import Environment

    parts = []
    for experiment in experiments:
        own = {i: r for i, r in experiment.own(records, quick=quick).items() if r.ok}
        figure = out / f"{experiment.name}{'-quick' if quick else ''}.png"
        parts.append(
            {
                "name": experiment.name,
                "summary": experiment.summary,
                "tables": experiment.tables(own),
                "figure": base64.b64encode(figure.read_bytes()).decode() if figure.exists() else None,
            }
        )
    source = (files("sfboost_lab.experiments") / "page.html.j2").read_text(encoding="utf-8")
    template = Environment(autoescape=True).from_string(source)
    page = template.render(
        parts=parts, quick=quick, label=label, words=words, chosen_by=chosen_by, best_of=best_of
    )
    path = out / "index.html"
    write_whole(path, page.encode())
    return path


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
