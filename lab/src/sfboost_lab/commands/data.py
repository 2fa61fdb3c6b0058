"""``sfboost-lab data``: list, show, fetch, path, export. Words in, words out; the work is done elsewhere."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Column, Table

from sfboost.cli.console import cell, give, say, screen, speaking
from sfboost.datasets import Dataset
from sfboost.foreign_text import plain
from sfboost.notices import first_names
from sfboost_lab.datasets import export, find, load, names
from sfboost_lab.datasets.export import column_names
from sfboost_lab.datasets.registry import fetch_all, held

app = typer.Typer(
    help="Data sets: list, show, fetch, path, export.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)

Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of a data set; `list` shows them.")]
DataDir = Annotated[
    Path | None, typer.Option(help="Folder with the files; by default the one SFBOOST_DATA names.")
]
Seed = Annotated[int, typer.Option(help="The same seed gives the same rows.")]
Options = Annotated[
    list[str] | None,
    typer.Option("--option", "-o", help="Option of the data set as name=value, for example size=28."),
]
FEATURES = ("efficientnet_lite0",)
_LISTED = 20


@app.command("list")
@speaking
def list_command(data_dir: DataDir = None) -> None:
    """List the data sets, what they need, and whether it is here."""
    table = Table("name", "kind", "what", "needs", "here")
    for name in names():
        entry = find(name)
        here = held(name, data_dir)
        state = "yes" if all(holding.path for holding in here) else "no"
        table.add_row(*map(cell, (entry.name, entry.kind, entry.summary, entry.needs, state)))
    screen().print(table)


@app.command()
@speaking
def show(name: Name, data_dir: DataDir = None, seed: Seed = 0, option: Options = None) -> None:
    """Print rows and class shares of each domain, source, licence, stable and unstable columns."""
    with _sentences():
        dataset = load(name, data_dir=data_dir, random_state=seed, **_parse(option))
    screen().print(_summary(dataset))
    say(*_about(dataset))


@app.command()
@speaking
def fetch(name: Name, data_dir: DataDir = None) -> None:
    """Get the files of a data set and check them.

    They come from the folder, the cache or a mirror.
    """
    with _sentences(), _progress() as progress:
        tasks: dict[str, Any] = {}

        def told(file: str, done: int, total: int) -> None:
            if file not in tasks:
                tasks[file] = progress.add_task(plain(file), total=total or None)
            progress.update(tasks[file], completed=done)

        got = fetch_all(name, data_dir, told)
    if not got:
        say(f"{find(name).name} needs no file.")
    for holding in got:
        say(f"{holding.path}  {_verdict(holding.genuine)}")
    if any(holding.genuine is False for holding in got):
        raise ValueError(
            "A file differs from the known one. Remove it and fetch again, or keep it if it is meant to."
        )


@app.command()
@speaking
def path(name: Name, data_dir: DataDir = None) -> None:
    """Print where the files of a data set are, one per line.

    It fails if one is missing.
    """
    with _sentences():
        here = held(name, data_dir)
    for holding in here:
        if holding.path:
            give(f"{holding.path}\n")
    missing = [holding.name for holding in here if holding.path is None]
    if missing:
        raise ValueError(
            f"Not here: {', '.join(missing)}. `sfboost-lab data fetch {name}` gets them or says more."
        )


@app.command("export")
@speaking
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
    """Write a data set as one Parquet file.

    Its columns: domain, label, then the features.
    """
    with _sentences():
        options = _parse(option)
        if "view" in find(name).options():
            options.setdefault("view", "table")
        dataset = load(name, data_dir=data_dir, random_state=seed, **options)
        if features is not None:
            dataset = _with_features(dataset, features, feature_size, jobs or os.cpu_count() or 1)
        written = export(dataset, out or Path(f"{dataset.name}.parquet"))
    n_rows = sum(len(domain) for domain in dataset.domains)
    say(f"Wrote {written}: {n_rows} rows of {len(dataset.domains)} domains")


def _with_features(dataset: Dataset, features: str, size: int, jobs: int) -> Dataset:
    from sfboost.datasets.features import EfficientNetFeatures
    from sfboost_lab.datasets.picture_features import with_features

    if features not in FEATURES:
        raise ValueError(f"Got --features {features!r}; there are {', '.join(FEATURES)}.")
    with _progress() as progress:
        task = progress.add_task("pictures", total=None)

        def told(done: int, total: int) -> None:
            progress.update(task, completed=done, total=total)

        return with_features(dataset, EfficientNetFeatures(size), n_jobs=jobs, progress=told)


def _summary(dataset: Dataset) -> Table:
    names = (Column(cell(str(label))) for label in dataset.classes)
    table = Table("domain", "role", "rows", *names, title=cell(dataset.name))
    for domain in dataset.domains:
        roles = [r for r in ("train", "validate", "oracle", "test") if domain.name in getattr(dataset, r)]
        counts = np.bincount(domain.y[domain.y >= 0], minlength=len(dataset.classes))
        shares = counts / max(counts.sum(), 1)  # of the rows that have labels
        row = (cell(domain.name), ", ".join(roles), str(len(domain)))
        table.add_row(*row, *(f"{share:.3f}" for share in shares))
    return table


def _about(dataset: Dataset) -> list[str]:
    """Source, licence, and which columns are taken to be stable: what is known of them."""
    names = column_names(dataset) if dataset.stable_features or dataset.unstable_features else []

    def listed(columns: Sequence[Any] | None) -> str:
        words = [str(names[column]) if isinstance(column, int) else str(column) for column in columns or []]
        return first_names(words, _LISTED)

    known = {
        "Source": dataset.citation,
        "Licence": dataset.licence,
        "Stable": listed(dataset.stable_features),
        "Unstable": listed(dataset.unstable_features),
    }
    return [plain(f"{what}: {words}") for what, words in known.items() if words]


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
    """A name or an option that is not known is the user's to mend."""
    try:
        yield
    except (KeyError, TypeError) as error:
        raise ValueError(str(error.args[0]) if error.args else str(error)) from error


def _progress() -> Progress:
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    return Progress(*columns, console=screen(error=True))
