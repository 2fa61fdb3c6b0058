"""``sfboost-lab results``: tables from records, without running anything, whether the records still hold."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer
from rich.measure import Measurement
from rich.table import Table as RichTable
from rich.text import Text

from sfboost.cli.console import Console, cell, give, say, speaking
from sfboost.whole_files import write_whole
from sfboost_lab.experiments.committed import (
    CHECKOUT,
    committed_records,
    keep_outcome,
    last_outcome,
    repeat,
    sample,
    when,
)
from sfboost_lab.experiments.engines import make_engine
from sfboost_lab.experiments.experiment import Experiment
from sfboost_lab.experiments.registry import EXPERIMENTS, planned_groups, planned_runs
from sfboost_lab.experiments.rendering import FORMATS, chosen_by, label, to_text, words
from sfboost_lab.experiments.store import Record, Store, write_records
from sfboost_lab.experiments.tables import Table

app = typer.Typer(
    help="Results: show, export, pack, check.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)

Name = Annotated[
    str,
    typer.Argument(metavar="NAME", help="Name of an experiment; `sfboost-lab reproduce list` shows them."),
]
Folder = Annotated[
    Path | None, typer.Option("--from", help="Results folder; by default the records of the repository.")
]
Records = Annotated[
    Path, typer.Option("--records", help="Folder of committed records; by default that of the checkout.")
]
Quick = Annotated[bool, typer.Option("--quick", help="The quick version.")]


@app.command()
@speaking
def show(name: Name, folder: Folder = None, kept: Records = CHECKOUT, quick: Quick = False) -> None:
    """Print the tables of an experiment, ours beside the paper's."""
    experiment, records = _records(name, folder, kept, quick)
    print_tables(experiment.tables(records), quick=quick)
    say(_made(records.values()))
    if folder is None:
        outcome = last_outcome(experiment.protocols[0], kept)
        say(outcome.words() if outcome else f"`sfboost-lab results check {name}` repeats some of them.")


@app.command()
@speaking
def export(
    name: Name,
    folder: Folder = None,
    kept: Records = CHECKOUT,
    quick: Quick = False,
    format: Annotated[str, typer.Option("--format", "-f", help=f"{', '.join(FORMATS)}.")] = "md",
    out: Annotated[Path | None, typer.Option("--out", "-o", help="File; by default the screen.")] = None,
) -> None:
    """Write the tables of an experiment as Markdown, CSV or LaTeX."""
    format = {"latex": "tex", "markdown": "md"}.get(format, format)
    if format not in FORMATS:
        raise ValueError(f"Got --format {format!r}; there are {', '.join(FORMATS)}.")
    experiment, records = _records(name, folder, kept, quick)
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
    """Write the records of an experiment as one small file.

    Those of experiments that share its runs are in it, too.

    Runs that the experiments of today no longer plan are left out.
    """
    experiment, found = _records(name, folder, CHECKOUT, quick)
    planned = planned_runs(experiment.protocols[0], quick=quick)
    records = {name: record for name, record in found.items() if name in planned}
    write_records(records.values(), out)
    say(f"Wrote {out}: {len(records)} records, {out.stat().st_size / 1e6:.2f} MB")


@app.command()
@speaking
def unpack(
    name: Name,
    out: Annotated[Path, typer.Option("--out", "-o", help="Results folder.")],
    kept: Records = CHECKOUT,
    without: Annotated[
        str,
        typer.Option(
            help="Trainers or adapters, with commas, whose records are left out: they are to be run again."
        ),
    ] = "",
) -> None:
    """Write the committed records of an experiment to a folder.

    From there `sfboost-lab reproduce` does the rest.
    """
    _, records = _records(name, None, kept, False)
    left_out = set(without.split(","))
    wanted = [
        record for record in records.values() if not {record.run.trainer, record.run.adapter} & left_out
    ]
    Store(out).append(wanted)
    say(f"Wrote {len(wanted)} of {len(records)} records to {out}")


@app.command()
@speaking
def check(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME]…", help="Experiments; by default all that have records and data."),
    ] = None,
    seconds: Annotated[
        float, typer.Option(min=0, help="Repeat runs that took about this long in all, for each protocol.")
    ] = 600,
    jobs: Annotated[int | None, typer.Option(min=1, help="Runs at a time; by default one per core.")] = None,
    kept: Records = CHECKOUT,
    keep: Annotated[
        bool, typer.Option("--keep", help="Keep the outcome beside the records, for `results show`.")
    ] = False,
) -> None:
    """Do some of the recorded runs again.

    Figures that differ mean that the records are stale.

    A sample of each trainer and adapter on each data set, as far as the seconds go. Ends with 1 if any
    differ.
    """
    try:
        experiments = [EXPERIMENTS[name] for name in names or EXPERIMENTS]
    except KeyError as error:
        raise ValueError(str(error.args[0])) from None
    if not names:
        experiments = [experiment for experiment in experiments if experiment.here()]
    stale = False
    for protocol in dict.fromkeys(experiment.protocols[0] for experiment in experiments):
        records = committed_records(protocol, kept)
        if not records:
            say(f"{protocol}: no records in {kept}")
            continue
        groups = sample(planned_groups(protocol), records, seconds)
        with tempfile.TemporaryDirectory() as folder:
            outcome = repeat(groups, records, Path(folder), make_engine(jobs))
        say(f"{protocol}: {outcome.words()}")
        stale |= outcome.stale
        if keep:
            say(f"Wrote {keep_outcome(protocol, outcome, kept)}")
    raise typer.Exit(1 if stale else 0)


def _made(records: Iterable[Record]) -> str:
    """Which code made the records, the largest part first."""
    found = Counter(when(record.made) for record in records)
    return "Records: " + "; ".join(f"{n} {words}" for words, n in found.most_common()) + "."


def print_tables(tables: Sequence[Table], *, quick: bool = False) -> None:
    """Print tables for people; a terminal that is too narrow for one gets it method by method."""
    terminal = Console()
    for table in tables:
        # A file is as wide as the table wants to be.
        console = terminal if terminal.is_terminal else Console(width=max(160, 90 + 32 * len(table.columns)))
        title = f"{table.title} (QUICK)" if quick else table.title
        shown = RichTable(title=cell(title), caption=cell(table.note))
        for name, width in (("method", 24), ("test labels", 11), ("chosen by", 11)):
            shown.add_column(name, min_width=width)
        for column in table.columns:
            shown.add_column(cell(column), no_wrap=True)
        for row, cells in table.rows:
            texts = [Text("\n").join(map(cell, words(value).split("; "))) for value in cells]
            shown.add_row(*map(cell, (label(row), row.test_access, chosen_by(row))), *texts)
        least = Measurement.get(console, console.options.update(width=10_000), shown).minimum
        console.print(shown if least <= console.width else _by_method(table, title))


def _by_method(table: Table, title: str) -> Text:
    lines, widest = [cell(((title, "bold"),))], max(map(len, table.columns))
    for row, cells in table.rows:
        lines.append(cell(((label(row), "bold"), f" (test labels: {row.test_access}; {chosen_by(row)})")))
        numbers = zip(table.columns, cells, strict=True)
        lines += [cell(f"  {name:<{widest}}  {words(value)}") for name, value in numbers]
    return Text("\n").join([*lines, cell(table.note), Text()])


def _records(name: str, folder: Path | None, kept: Path, quick: bool) -> tuple[Experiment, dict[str, Record]]:
    try:
        experiment = EXPERIMENTS[name]
    except KeyError as error:
        raise ValueError(str(error.args[0])) from None
    protocol = experiment.protocols[0]
    stored = committed_records(protocol, kept) if folder is None else Store(folder).read().records
    found = {i: r for i, r in experiment.own(stored, quick=quick).items() if r.ok}
    if folder is not None:  # it may hold runs of an earlier plan; what is committed was packed without them
        seeds = 1 + max((record.run.seed for record in found.values()), default=0)
        with suppress(ModuleNotFoundError):  # without torch nobody knows the plan: all that is there is shown
            planned = planned_runs(experiment.protocols[0], quick=quick, seeds=seeds)
            found = {i: record for i, record in found.items() if i in planned}
    if not found:
        where = f"are in {kept if folder is None else folder}"
        command = f"sfboost-lab reproduce {name}{' --quick' * quick}"
        raise ValueError(
            f"No {'quick ' * quick}records of {name!r} {where}. `{command}` makes them; then give its folder "
            "with --from."
        )
    return experiment, found
