"""`sfboost-lab table-one`: the paper's Table 1, measured."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table

from sfboost.cli.console import say, screen, speaking
from sfboost_lab.baselines.table_one import (
    PARTS,
    ROBUST_BELOW,
    SYSTEMS,
    USED_FROM,
    MeasuredSystem,
    table_one,
)

_ASKS = {"none": "nothing", "unlabelled": "unlabelled rows", "labelled": "labels"}


@speaking
def show(
    seeds: Annotated[int, typer.Option(min=1, help="Draws of the rows.")] = 3,
    rows: Annotated[int, typer.Option(min=1, help="Rows of each domain.")] = 4000,
) -> None:
    """Measure which parts of X a system uses, whether it is robust, and what it asks of the test domain."""
    measured = []
    with screen().status("") as status:
        for row in table_one(seeds=range(seeds), n_rows=rows):
            measured.append(row)
            status.update(f"{len(measured)} of {len(SYSTEMS)}: {row.title}")
    screen().print(make_table(measured, numbers=True))
    say(
        f"Used: permuting the part in a domain like the training ones costs more than {USED_FROM:g} standard "
        f"errors of accuracy. Robust: loses less than {ROBUST_BELOW:g} points where the unstable parts are "
        "reversed."
    )


def make_table(measured: list[MeasuredSystem], *, numbers: bool) -> Table:
    """Return the table: ticks, or the numbers behind them."""
    table = Table("system", title="Parts used, robustness, and what is asked of the test domain")
    for part in PARTS:
        table.add_column(part.replace("_", "-"), justify="center")
    for title in ("robust", *(("familiar", "reversed") if numbers else ())):
        table.add_column(title, justify="center")
    table.add_column("test access")
    for row in measured:
        uses = [row.parts[part] for part in PARTS]
        cells = [
            f"{'yes' if use.used else 'no'} ({use.cost:.1f} ± {use.error:.1f})"
            if numbers
            else ("yes" if use.used else "-")
            for use in uses
        ]
        cells.append("yes" if row.robust else "no")
        if numbers:
            cells += [f"{row.familiar:.1f}", f"{row.reversed:.1f}"]
        asks = _ASKS[row.test_access] + (" (ORACLE)" if row.test_access == "labelled" else "")
        table.add_row(row.title, *cells, asks)
    return table
