"""``sfboost-lab reproduce``: the paper's tables by one command. Stopped, it goes on where it was."""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table as RichTable

from sfboost.cli.console import Console, cell, say, screen, speaking
from sfboost_lab.commands.results import print_tables
from sfboost_lab.datasets.registry import fetch_all
from sfboost_lab.datasets.sources import MissingDataError
from sfboost_lab.experiments.engines import SweepEngine, make_engine
from sfboost_lab.experiments.experiment import Experiment
from sfboost_lab.experiments.registry import EXPERIMENTS
from sfboost_lab.experiments.rendering import write_page, write_tables
from sfboost_lab.experiments.store import Contents, FolderInUseError, Store, Tail
from sfboost_lab.experiments.sweep import Progress, sweep

_LINE_EVERY = 30.0  # seconds between two lines
STOPPED = 130  # what a shell expects after Ctrl-C


@speaking
def reproduce(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="LIST|NAME…",
            help="Experiments; `list` shows them, `all` is all, `here` those whose data is here.",
        ),
    ] = None,
    seeds: Annotated[int | None, typer.Option(min=1, help="Repetitions; by default as in the paper.")] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Minutes, not hours: few seeds, short training, small grids.")
    ] = False,
    jobs: Annotated[int | None, typer.Option(min=1, help="Runs at a time; by default one per core.")] = None,
    threads: Annotated[int, typer.Option(min=1, help="Threads of each.")] = 1,
    out: Annotated[Path, typer.Option(help="Folder of records, tables and figures.")] = Path("results"),
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Do failed runs again.")] = False,
) -> None:
    """Reproduce the paper's tables, ours beside the paper's.

    Every finished run is on the disk at once. Stop with Ctrl-C, or pull the plug; the same command does what
    is left.
    """
    names = [name.lower() for name in names or ["list"]]
    if "list" in names:
        _list()
        return
    try:
        experiments = _find(names)
    except (KeyError, ValueError, ImportError, MissingDataError) as error:
        raise ValueError(str(error.args[0])) from error
    try:
        engine = make_engine(jobs, threads)
        failed = _run(experiments, engine, out, seeds=seeds, quick=quick, retry_failed=retry_failed)
    except KeyboardInterrupt:
        say("", f"Stopped. What was finished is in {out}; the same command goes on from there.", error=True)
        raise typer.Exit(STOPPED) from None
    except FolderInUseError as error:
        raise ValueError(str(error)) from error
    raise typer.Exit(1 if failed else 0)


def _run(
    experiments: list[Experiment],
    engine: SweepEngine,
    out: Path,
    *,
    seeds: int | None,
    quick: bool,
    retry_failed: bool,
) -> int:
    """Do the runs and write tables, figures and the page; return how many failed."""
    failed, done = 0, {}
    for experiment in experiments:
        try:
            groups = experiment.plan(seeds or (experiment.quick_seeds if quick else experiment.seeds), quick)
            with watching(experiment.name, Store(out)) as told, stopped_politely(out):
                contents = sweep(groups, out, engine, retry_failed=retry_failed, on_start=told)
        except ModuleNotFoundError as error:
            raise ImportError(
                f"{experiment.name} needs {error.name}: pip install 'sfboost[all]' brings every extra."
            ) from error
        failed += _finish(experiment, contents, out, quick)
        done.update(contents.records)  # the folder may hold runs of an earlier plan as well
    write_page(experiments, done, out, quick=quick)
    say(f"Page of all: {out / 'index.html'}")
    return failed


def _find(names: list[str]) -> list[Experiment]:
    if "here" in names:
        every = list(EXPERIMENTS.values())
        for experiment in every:
            if not experiment.here():
                say(f"Left out: {experiment.name}, which needs {experiment.needs}.", error=True)
        return [experiment for experiment in every if experiment.here()]
    found = [EXPERIMENTS[name] for name in (EXPERIMENTS if "all" in names else names)]
    for experiment in found:
        if not experiment.here():
            for name in experiment.data_sets:
                fetch_all(name)
    return found


def _finish(experiment: Experiment, contents: Contents, out: Path, quick: bool) -> int:
    records = experiment.own(contents.records, quick=quick)
    tables = experiment.tables({name: record for name, record in records.items() if record.ok})
    print_tables(tables, quick=quick)
    for path in write_tables(experiment, tables, records, out, quick=quick):
        say(f"Wrote {path}")
    for line in contents.damaged:
        say(f"The record at {line} was changed after it was written; its run was done again.", error=True)
    failures = [record for record in records.values() if not record.ok]
    if failures:
        last = (failures[0].error or "").strip().splitlines()[-1]
        say(
            f"{len(failures)} of {len(records)} runs failed, the first with: {last}",
            "Their tracebacks are in the records; --retry-failed does them again.",
            error=True,
        )
    return len(failures)


def _list() -> None:
    table = RichTable("name", "what", "seeds", "needs", "here")
    for name in EXPERIMENTS:
        experiment = EXPERIMENTS[name]
        here = "yes" if experiment.here() else "no"
        table.add_row(name, experiment.summary, str(experiment.seeds), cell(experiment.needs), here)
    screen().print(table)


@contextmanager
def watching(name: str, store: Store) -> Iterator[Callable[[Progress], None]]:
    """Say how far the sweep is, now and then; the lines that reach the folder are what is counted."""
    console, tail, over = Console(stderr=True), Tail(store), threading.Event()
    start = Progress(0, 0)

    def told(progress: Progress) -> None:
        nonlocal start
        start = progress
        if progress.before:
            console.print(cell(f"{progress.before} of {progress.total} runs are in {store.folder} already."))

    def watch() -> None:
        done, began = 0, time.monotonic()
        while not over.wait(_LINE_EVERY):
            done += tail.new_lines()
            if start.total:
                console.print(_line(name, start, done, time.monotonic() - began))

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield told
    finally:
        over.set()
        thread.join()


@contextmanager
def stopped_politely(out: Path) -> Iterator[None]:
    """Let a request to end (a batch system's, a service's) act like Ctrl-C: the workers stop as well.

    What is done by then is in `out`, and the last words say so.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    except KeyboardInterrupt as stop:
        stop.kept = out  # type: ignore[attr-defined]
        raise
    finally:
        signal.signal(signal.SIGTERM, before)


def _line(name: str, start: Progress, done: int, seconds: float) -> str:
    left = start.total - start.before - done
    eta = f"about {math.ceil(left * seconds / done / 60)} min left" if done else "no run finished yet"
    return f"{name}: {start.before + done} of {start.total} runs, {seconds / 60:.1f} min, {eta}"
