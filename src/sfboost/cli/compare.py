"""`sfboost compare`: the paper's Table 1, measured."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer
from rich.table import Table

from sfboost.cli.console import complain, say, screen, speaking
from sfboost.lab.baselines.registry import ADAPTERS, TRAINERS
from sfboost.lab.baselines.table_one import (
    PARTS,
    ROBUST_BELOW,
    SYSTEMS,
    USED_FROM,
    ComparedSystem,
    MeasuredSystem,
    table_one,
)

_ASKS = {"none": "nothing", "unlabelled": "unlabelled rows", "labelled": "labels"}


@speaking
def compare(
    system: Annotated[
        list[str] | None,
        typer.Option(
            "--system",
            "-s",
            help="TRAINER or TRAINER+ADAPTER, such as irm+t3a; may be repeated. By default the rows of the "
            "paper's Table 1.",
        ),
    ] = None,
    numbers: Annotated[bool, typer.Option("--numbers", help="Show what was measured.")] = False,
    seeds: Annotated[int, typer.Option(min=1, help="Draws of the data to average over.")] = 1,
    rows: Annotated[int, typer.Option(min=100, help="Rows of each domain.")] = 4000,
    names: Annotated[bool, typer.Option("--list", help="List trainers and adapters, and stop.")] = False,
) -> None:
    """Measure which parts of X a system uses, whether it is robust, and what it asks of the test domain.

    On data with a stable, a complementary and another part. A part is used if permuting it costs more than 3
    standard errors of accuracy; robust is who loses less than 5 points where the unstable parts are reversed.
    """
    if names:
        say("trainers: " + ", ".join(TRAINERS), "adapters: " + ", ".join(ADAPTERS))
        return
    measured = []
    try:
        chosen = SYSTEMS if not system else tuple(_system(given) for given in system)
        with screen().status("") as status:
            for row in table_one(chosen, seeds=range(seeds), n_rows=rows):
                measured.append(row)
                status.update(f"{len(measured)} of {len(chosen)}: {row.title}")
    except ModuleNotFoundError as error:
        complain(f"{error}: learned systems need it. Install sfboost[torch], or name others with -s.")
        raise typer.Exit(1) from None
    except (KeyError, ValueError, ImportError) as error:
        complain(str(error.args[0]) if error.args else str(error))
        raise typer.Exit(1) from None
    screen().print(make_table(measured, numbers=numbers))
    say(
        f"Used: permuting the part in a domain like the training ones costs more than {USED_FROM:g} standard "
        f"errors of accuracy. Robust: loses less than {ROBUST_BELOW:g} points where the unstable parts are "
        "reversed."
    )


def _system(given: str) -> ComparedSystem:
    trainer, _, adapter = given.partition("+")
    known = {entry.trainer: entry for entry in SYSTEMS}
    adapter = adapter or "none"
    ADAPTERS[adapter], TRAINERS[trainer]  # an unknown name is said before anything is trained
    title = TRAINERS[trainer].title + (f" + {ADAPTERS[adapter].title}" if adapter != "none" else "")
    like = known.get(trainer, ComparedSystem(title, trainer))
    return replace(like, title=title, adapter=adapter)


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
        asks = _ASKS[row.test_access] + (" (ORACLE)" if row.oracle else "")
        table.add_row(row.title, *cells, asks)
    return table
