"""`sfboost-lab compare`: a researcher's table of systems on one's own data, each domain left out."""

from __future__ import annotations

import warnings
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any

import typer

from sfboost.cli import options as o
from sfboost.cli.console import say, speaking
from sfboost.frames import EncodingWarning
from sfboost.frames.roles import split
from sfboost.whole_files import write_whole
from sfboost_lab.baselines.registry import ADAPTERS, TRAINERS
from sfboost_lab.commands.reproduce import stopped_politely, watching
from sfboost_lab.commands.results import print_tables
from sfboost_lab.experiments.comparison import (
    DEFAULT,
    WITH_COLUMNS,
    WITHOUT_COLUMNS,
    ChosenSystem,
    SystemComparison,
    table_options,
)
from sfboost_lab.experiments.engines import make_engine
from sfboost_lab.experiments.rendering import chosen_by, label, to_text
from sfboost_lab.experiments.store import Store
from sfboost_lab.experiments.sweep import sweep
from sfboost_lab.experiments.tables import Table

_ON_WHAT = (
    "Compare on which data? Name a table (with --target and --domain) or a data set "
    "of `sfboost-lab data list`."
)
_UNLIKE = (
    "These are not the figures of `sfboost evaluate`: here each draw has four fifths of the training rows, "
    "and what a system leaves open is tuned unless --quick is given; there all rows train, nothing is tuned."
)


@speaking
def compare(
    *,
    data: Annotated[
        str | None, typer.Argument(metavar="DATA", help="CSV or Parquet file, or the name of a data set.")
    ] = None,
    target: Annotated[str | None, typer.Option("--target", help="Column with the class.")] = None,
    domain: Annotated[
        str | None, typer.Option("--domain", help="Column that says where a row is from.")
    ] = None,
    stable: Annotated[
        str | None, typer.Option("--stable", help="Features to trust, comma-separated.")
    ] = None,
    unstable: Annotated[
        str | None, typer.Option("--unstable", help="Features that may change; by default all others.")
    ] = None,
    drop: Annotated[str | None, typer.Option("--drop", help="Columns to leave out.")] = None,
    id_: Annotated[str | None, typer.Option("--id", help="Columns that name rows; left out, too.")] = None,
    system: Annotated[
        list[str] | None,
        typer.Option(
            "--system",
            "-s",
            help="TRAINER or TRAINER+ADAPTER, such as irm+t3a; may be repeated. The first is what the others "
            f"are compared with. By default {', '.join(DEFAULT)} and, where stable columns are known, "
            f"{', '.join(WITH_COLUMNS)}, else {', '.join(WITHOUT_COLUMNS)}.",
        ),
    ] = None,
    seeds: Annotated[
        int | None, typer.Option(min=1, help="Draws of the training rows, and of training; by default 5.")
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="One draw, and every system with its defaults: nothing is chosen.")
    ] = False,
    jobs: Annotated[int | None, typer.Option(min=1, help="Runs at a time; by default one per core.")] = None,
    out: Annotated[Path, typer.Option("--out", help="Folder of records: a stopped run goes on.")] = Path(
        "results"
    ),
    latex: Annotated[Path | None, typer.Option("--latex", help="Write the tables as LaTeX, too.")] = None,
    names: Annotated[bool, typer.Option("--list", help="List trainers and adapters, and stop.")] = False,
    talk: o.VoiceOptions,
) -> None:
    """Compare systems on your own domains: each is new in turn, its labels hidden.

    What a system leaves open is chosen without the new domain. Accuracy, mean and standard error over draws,
    and paired differences from the first system. Stop it with Ctrl-C; the same command goes on.
    """
    if names:
        say(
            "trainers: " + ", ".join(TRAINERS),
            "adapters: " + ", ".join(ADAPTERS),
            "What each is, what it sees of the new domain, and which to choose: docs/methods.md.",
        )
        return
    if data is None:
        raise ValueError(_ON_WHAT)
    try:
        unused = (*split(drop), *split(id_))
        with warnings.catch_warnings():
            # A command of the library keeps quiet of them, since its remarks say it: there are none here.
            warnings.simplefilter("always", EncodingWarning)
            comparison = _comparison(data, target, domain, split(stable), split(unstable), unused, system)
            comparison.tell_gaps()
        comparison, draws = comparison.among(comparison.systems, quick), seeds or (1 if quick else 5)
        groups = comparison.plan(draws)
    except KeyError as error:
        raise ValueError(str(error.args[0])) from None
    except ModuleNotFoundError as error:
        raise ValueError(
            f"Learned systems need {error.name}: install sfboost[torch], or name others."
        ) from None
    voice = talk.voice()
    if not talk.quiet:
        brief = comparison.among(comparison.systems, quick=True)
        say(comparison.cost(draws) + ("." if quick else f". With --quick: {brief.cost(1)}."), error=True)
    told_progress = nullcontext(None) if talk.quiet else watching("compare", Store(out))
    with told_progress as told, stopped_politely(out):
        contents = sweep(groups, out, make_engine(jobs), on_start=told)
    done = {name: record for name, record in contents.records.items() if record.ok}
    tables = comparison.tables(done)
    failed = [record for record in contents.records.values() if not record.ok]
    if not (talk.quiet or talk.as_json):
        print_tables(tables, quick=quick)
    voice.result({"tables": [_values(table) for table in tables], "failed": len(failed)}, _UNLIKE)
    if latex is not None:
        write_whole(latex, to_text(tables, "tex", quick=quick).encode())
        voice.note(f"wrote {latex}")
    if failed:
        last = (failed[0].error or "").strip().splitlines()[-1]
        say(f"{len(failed)} of {len(contents.records)} runs failed, the first with: {last}", error=True)
        raise typer.Exit(1)


def _values(table: Table) -> dict[str, Any]:
    """A table as plain values: accuracies in percent."""
    return {
        "title": table.title,
        "note": table.note,
        "rows": [
            {"system": label(row), "sees_of_the_new_domain": row.test_access, "chosen_by": chosen_by(row)}
            | {
                "cells": {
                    name: {"mean": one.mean, "standard_error": one.standard_error, "draws": len(one.values)}
                    for name, one in zip(table.columns, cells, strict=True)
                }
            }
            for row, cells in table.rows
        ],
    }


def _comparison(
    data: str,
    target: str | None,
    domain: str | None,
    stable: tuple[str, ...],
    unstable: tuple[str, ...],
    drop: tuple[str, ...],
    system: list[str] | None,
) -> SystemComparison:
    known, options = bool(stable or unstable), {}
    name = data
    if Path(data).is_file():
        if target is None or domain is None:
            raise ValueError(
                "A table needs --target and --domain: which columns hold the class and the domain?"
            )
        if stable == ("auto",):
            raise ValueError(
                "compare wants stable columns by name: `sfboost fit … --stable auto` searches for them."
            )
        name, path = "table", Path(data)
        named = {"stable_features": stable, "unstable_features": unstable, "drop": drop}
        options = table_options(path, target, domain, **named)
    elif Path(data).suffix:
        raise ValueError(f"There is no file {data}.")
    elif target or domain or known or drop:
        raise ValueError(f"{data!r} is a data set by name, which has its columns: leave the options out.")
    comparison = SystemComparison(name, options)
    if name == "table":
        comparison.refuse()
    known = known or comparison.data.stable_features is not None
    wanted = system or [*DEFAULT, *(WITH_COLUMNS if known else WITHOUT_COLUMNS)]
    return comparison.among(ChosenSystem.named(one) for one in wanted)
