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
    screen().print(make_table(measured))
    say(
        f"Used: permuting the part in a domain like the training ones costs more than {USED_FROM:g} standard "
        f"errors of accuracy. Robust: loses less than {ROBUST_BELOW:g} points where the unstable parts are "
        "reversed."
    )


def make_table(measured: list[MeasuredSystem]) -> Table:
    """Return the table, with the numbers behind each yes and no."""
    table = Table("system", title="Parts used, robustness, and what is asked of the test domain")
    for title in (*(part.replace("_", "-") for part in PARTS), "robust", "familiar", "reversed"):
        table.add_column(title, justify="center")
    table.add_column("test access")
    for row in measured:
        uses = [row.parts[part] for part in PARTS]
        cells = [f"{'yes' if use.used else 'no'} ({use.cost:.1f} ± {use.error:.1f})" for use in uses]
        cells += ["yes" if row.robust else "no", f"{row.familiar:.1f}", f"{row.reversed:.1f}"]
        asks = _ASKS[row.test_access] + (" (ORACLE)" if row.test_access == "labelled" else "")
        table.add_row(row.title, *cells, asks)
    return table
