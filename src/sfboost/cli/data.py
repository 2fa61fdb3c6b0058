"""``sfboost data``: list, show, fetch, path, export. Words in, words out; the work is done elsewhere."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from sfboost.cli.console import BAD_INPUT
from sfboost.cli.pipes import Console
from sfboost.datasets import Dataset
from sfboost.lab.datasets import export, find, load, names, write_sheet
from sfboost.lab.datasets.local_files import fetch_all, held
from sfboost.lab.datasets.sheet import label_rates

app = typer.Typer(help="Data sets: list, show, fetch, path, export.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="Name of a data set; `list` shows them.")]
DataDir = Annotated[
    Path | None, typer.Option(help="Folder with the files; by default the one SFBOOST_DATA names.")
]
Seed = Annotated[int, typer.Option(help="The same seed gives the same rows.")]
Options = Annotated[
    list[str] | None,
    typer.Option("--option", "-o", help="Option of the data set as name=value, for example size=28."),
]
FEATURES = ("efficientnet_lite0",)


@app.command("list")
def list_command(data_dir: DataDir = None) -> None:
    """List the data sets, what they need, and whether it is here."""
    table = Table("name", "kind", "what", "needs", "here")
    for name in names():
        entry = find(name)
        here = held(name, data_dir)
        state = "yes" if all(holding.path for holding in here) else "no"
        table.add_row(entry.name, entry.kind, escape(entry.summary), escape(entry.needs), state)
    _console().print(table)


@app.command()
def show(
    name: Name,
    out: Annotated[Path | None, typer.Option(help="Where to write; .png, .pdf or .svg.")] = None,
    examples: Annotated[int, typer.Option(help="Images per domain.")] = 14,
    data_dir: DataDir = None,
    seed: Seed = 0,
    option: Options = None,
) -> None:
    """Write a sheet of examples (images) or of marginals and label rates (tables), by domain."""
    with _sentences():
        dataset = load(name, data_dir=data_dir, random_state=seed, **_parse(option))
        _console().print(_summary(dataset))
        written = write_sheet(
            dataset, out or Path(f"{dataset.name}.png"), n_examples=examples, random_state=seed
        )
    typer.echo(f"Wrote {written}")


@app.command()
def fetch(name: Name, data_dir: DataDir = None) -> None:
    """Get the files of a data set, from the folder, the cache or a mirror, and check them."""
    with _sentences(), _progress() as progress:
        tasks: dict[str, Any] = {}

        def told(file: str, done: int, total: int) -> None:
            if file not in tasks:
                tasks[file] = progress.add_task(file, total=total or None)
            progress.update(tasks[file], completed=done)

        got = fetch_all(name, data_dir, told)
    if not got:
        typer.echo(f"{find(name).name} needs no file.")
    for holding in got:
        typer.echo(f"{holding.path}  {_verdict(holding.genuine)}")
    if any(holding.genuine is False for holding in got):
        _stop("A file differs from the known one. Remove it and fetch again, or keep it if it is meant to.")


@app.command()
def path(name: Name, data_dir: DataDir = None) -> None:
    """Print where the files of a data set are, one per line; fail if one is missing."""
    with _sentences():
        here = held(name, data_dir)
    for holding in here:
        if holding.path:
            typer.echo(holding.path)
    missing = [holding.name for holding in here if holding.path is None]
    if missing:
        _stop(f"Not here: {', '.join(missing)}. `sfboost data fetch {name}` gets them or says more.")


@app.command("export")
def export_command(
    name: Name,
    out: Annotated[Path | None, typer.Option(help="Parquet file; by default NAME.parquet.")] = None,
    features: Annotated[
        str | None, typer.Option(help=f"Features in place of pictures: {', '.join(FEATURES)}.")
    ] = None,
    feature_size: Annotated[int, typer.Option(help="Side pictures are resized to for features.")] = 224,
    jobs: Annotated[int | None, typer.Option(help="Processes for features; by default all cores.")] = None,
    data_dir: DataDir = None,
    seed: Seed = 0,
    option: Options = None,
) -> None:
    """Write a data set as one Parquet file: domain, label, then the features."""
    with _sentences():
        options = _parse(option)
        if "view" in find(name).options():
            options.setdefault("view", "table")
        dataset = load(name, data_dir=data_dir, random_state=seed, **options)
        if features is not None:
            dataset = _with_features(dataset, features, feature_size, jobs or os.cpu_count() or 1)
        written = export(dataset, out or Path(f"{dataset.name}.parquet"))
    n_rows = sum(len(domain) for domain in dataset.domains)
    typer.echo(f"Wrote {written}: {n_rows} rows of {len(dataset.domains)} domains")


def _with_features(dataset: Dataset, features: str, size: int, jobs: int) -> Dataset:
    from sfboost.datasets.features import EfficientNetLite0, with_features

    if features not in FEATURES:
        raise ValueError(f"Got --features {features!r}; there are {', '.join(FEATURES)}.")
    with _progress() as progress:
        task = progress.add_task("pictures", total=None)

        def told(done: int, total: int) -> None:
            progress.update(task, completed=done, total=total)

        return with_features(dataset, EfficientNetLite0(size), n_jobs=jobs, progress=told)


def _summary(dataset: Dataset) -> Table:
    table = Table("domain", "role", "rows", *(str(label) for label in dataset.classes), title=dataset.name)
    for domain, rates in label_rates(dataset).items():
        roles = [r for r in ("train", "validate", "oracle", "test") if domain in getattr(dataset, r)]
        table.add_row(
            domain, ", ".join(roles), str(len(dataset.domain(domain))), *(f"{rate:.3f}" for rate in rates)
        )
    return table


def _verdict(genuine: bool | None) -> str:
    return {True: "sha256 as known", False: "sha256 DIFFERS", None: "found"}[genuine]


def _parse(options: list[str] | None) -> dict[str, Any]:
    parsed: dict[str, Any] = {}
    for given in options or []:
        key, equals, value = given.partition("=")
        if not equals:
            raise ValueError(f"Got --option {given!r}; write it as name=value.")
        try:
            parsed[key] = json.loads(value)
        except json.JSONDecodeError:
            parsed[key] = value
    return parsed


@contextmanager
def _sentences() -> Iterator[None]:
    """Turn an error that a user can mend into one sentence."""
    try:
        yield
    except (ValueError, KeyError, TypeError, OSError, ImportError) as error:
        _stop(str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error))


def _stop(sentence: str) -> None:
    typer.echo(sentence, err=True)
    raise typer.Exit(BAD_INPUT)


def _console() -> Console:
    # A pipe is not a screen of 80 columns: tables for scripts are not cut.
    return Console() if Console().is_terminal else Console(width=160)


def _progress() -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return Progress(*columns, console=Console(stderr=True))
