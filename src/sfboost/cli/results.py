"""``sfboost results``: show, export, pack. Tables from records, without running anything."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from sfboost.cli.speech import cell, give, say, speaking
from sfboost.experiments.committed import committed_records
from sfboost.experiments.experiment import Experiment
from sfboost.experiments.record import Record
from sfboost.experiments.registry import find_experiment, planned_runs
from sfboost.experiments.rendering import FORMATS, chosen_by, label, to_text, words
from sfboost.experiments.store import Store, write_records
from sfboost.experiments.tables import Table
from sfboost.persistence.whole import write_whole

app = typer.Typer(help="Results: show, export, pack.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="Name of an experiment; `sfboost reproduce list` shows them.")]
Folder = Annotated[
    Path | None, typer.Option("--from", help="Results folder; by default the records that come with sfboost.")
]
Quick = Annotated[bool, typer.Option("--quick", help="The quick version.")]


@app.command()
@speaking
def show(name: Name, folder: Folder = None, quick: Quick = False) -> None:
    """Print the tables of an experiment, ours beside the paper's."""
    experiment, records = _records(name, folder, quick)
    print_tables(experiment.tables(records), quick=quick)


@app.command()
@speaking
def export(
    name: Name,
    folder: Folder = None,
    quick: Quick = False,
    format: Annotated[str, typer.Option("--format", "-f", help=f"{', '.join(FORMATS)}.")] = "md",
    out: Annotated[Path | None, typer.Option("--out", "-o", help="File; by default the screen.")] = None,
) -> None:
    """Write the tables of an experiment as Markdown, CSV or LaTeX."""
    format = {"latex": "tex", "markdown": "md"}.get(format, format)
    if format not in FORMATS:
        raise ValueError(f"Got --format {format!r}; there are {', '.join(FORMATS)}.")
    experiment, records = _records(name, folder, quick)
    text = to_text(experiment.tables(records), format, quick=quick)
    if out is None:
        give(text)
        return
    write_whole(out, text.encode())
    say(f"Wrote {out}")


@app.command()
@speaking
def pack(
    name: Name,
    folder: Annotated[Path, typer.Option("--from", help="Results folder.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="File, for example synthetic.jsonl.gz.")],
    quick: Quick = False,
) -> None:
    """Write the records of an experiment, and of those that share its runs, as one small file.

    Runs that the experiments of today no longer plan are left out.
    """
    experiment, found = _records(name, folder, quick)
    planned = planned_runs(experiment.protocols[0], quick=quick)
    records = {name: record for name, record in found.items() if name in planned}
    write_records(records.values(), out)
    say(f"Wrote {out}: {len(records)} records, {out.stat().st_size / 1e6:.2f} MB")


def print_tables(tables: Sequence[Table], *, quick: bool = False) -> None:
    """Print tables for people."""
    terminal = Console()
    for table in tables:
        # A file is as wide as the table wants to be.
        console = terminal if terminal.is_terminal else Console(width=max(160, 90 + 32 * len(table.columns)))
        title = f"{table.title} (QUICK: few seeds, short training, small grids)" if quick else table.title
        shown = RichTable("method", "test labels", "chosen by", title=cell(title), caption=cell(table.note))
        for column in table.columns:
            shown.add_column(cell(column))
        for row, cells in table.rows:
            texts = [Text("\n").join(map(cell, words(value).split("; "))) for value in cells]
            shown.add_row(*map(cell, (label(row), row.test_access, chosen_by(row))), *texts)
        console.print(shown)


def _records(name: str, folder: Path | None, quick: bool) -> tuple[Experiment, dict[str, Record]]:
    try:
        experiment = find_experiment(name)
    except KeyError as error:
        raise ValueError(str(error.args[0])) from None
    records = committed_records(experiment.protocols[0]) if folder is None else Store(folder).read().records
    found = {i: r for i, r in experiment.own(records, quick=quick).items() if r.ok}
    seeds = 1 + max((record.run.seed for record in found.values()), default=0)
    planned = planned_runs(experiment.protocols[0], quick=quick, seeds=seeds)
    found = {i: record for i, record in found.items() if i in planned}
    if not found:
        where = "come with sfboost" if folder is None else f"are in {folder}"
        command = f"sfboost reproduce {name}{' --quick' * quick}"
        raise ValueError(
            f"No {'quick ' * quick}records of {name!r} {where}. `{command}` makes them; then give its folder "
            "with --from."
        )
    return experiment, found
