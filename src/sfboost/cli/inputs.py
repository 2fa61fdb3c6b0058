"""Reading the tables that options name."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from sfboost.cli.options import ColumnOptions, CsvOptions
from sfboost.cli.project import Project
from sfboost.cli.sampling import sampled
from sfboost.encoding.cells import as_text
from sfboost.tables.preparing import NewTable, TrainingTable, csv_types, prepare_new, prepare_training
from sfboost.tables.reading import PIPE, Source, read, without_index
from sfboost.tables.roles import assign, pick, require_columns, split


def read_training(
    where: str,
    asked: ColumnOptions,
    csv: CsvOptions,
    hold_out: str | None = None,
) -> tuple[TrainingTable, pa.Table | None]:
    """Labelled rows, and those of the domain that is held out, if one is."""
    if asked.sample is not None:
        with sampled(where, asked.domain, asked.sample, csv) as (source, remark):
            training, held = _prepare(source, asked, hold_out)
        return replace(training, remarks=(remark, *training.remarks)), held
    if where != PIPE and Path(where).is_dir():
        raise ValueError(
            f"{where} is a folder: name one file in it, or say --sample 10000 to fit to at most so many rows "
            "of each domain of all its tables."
        )
    return _prepare(csv.find(where), asked, hold_out)


def _prepare(
    source: Source, asked: ColumnOptions, hold_out: str | None
) -> tuple[TrainingTable, pa.Table | None]:
    domain = asked.domain
    # Names and codes are text, so that 01 stays 01.
    names = (domain, *([] if asked.id is None else [asked.id]), *pick(source.header, asked.categorical))
    table = read(source, dict.fromkeys(names, pa.string()))
    # Rows to learn from need no id.
    id = asked.id if hold_out is not None or asked.id in table.column_names else None
    codes = pick(table.column_names, asked.categorical)
    named = {asked.target, domain, asked.id}.union(*map(split, (asked.stable, asked.unstable, asked.drop)))
    table, of_index = without_index(table, named)
    roles = assign(
        table.column_names,
        target=asked.target,
        domain=domain,
        stable=asked.stable,
        unstable=asked.unstable,
        id=id,
        drop=asked.drop,
        where=source.name,
    )
    require_columns(
        roles.features, codes, "--categorical names columns that are no features. The list of features"
    )
    held = None
    if hold_out is not None:
        where_from = as_text(table.column(domain), domain)
        inside = pc.equal(where_from, hold_out)
        held = table.filter(inside)
        if not held.num_rows:
            there = ", ".join(str(name) for name in pc.unique(where_from).drop_null().to_pylist()[:20])
            raise ValueError(f"No row of {source.name} has {domain} = {hold_out!r}; there are {there}.")
        table = table.filter(pc.fill_null(pc.invert(inside), True))
        if not table.num_rows:
            raise ValueError(f"{hold_out!r} is the only domain of {source.name}: none is left to train on.")
    roles = replace(roles, id=asked.id)
    training = prepare_training(table, roles, codes, source.name)
    remarks = [
        *([] if id == asked.id else [f"{source.name} has no column {asked.id!r}: the new rows need one."]),
        *of_index,
        *(
            f"Column {column.name!r} is written with leading zeros, as codes are, and taken for amounts: say "
            f"--categorical {column.name} if it holds codes."
            for column in training.encoder.columns
            if column.kind == "number" and column.name in source.zero_padded
        ),
    ]
    return replace(training, remarks=(*remarks, *training.remarks)), held


def require_in_file(where: str, columns: Iterable[str], csv: CsvOptions) -> None:
    """Refuse a CSV file that lacks columns, before the work; what else is read says so when it is."""
    wanted = list(columns)
    if wanted and where != PIPE and not Path(where).is_dir():
        source = csv.find(where)
        if source.header:
            require_columns(source.header, wanted, source.name)


def read_new(
    where: str, project: Project, csv: CsvOptions, labels: str | None = None, *, each: bool = False
) -> tuple[NewTable, str]:
    """Rows of a new domain, or of several with `each`, and the name of where they are from.

    `labels` names a column to adapt with.
    """
    source = csv.find(where)
    table = read(source, csv_types(project.roles, project.encoder, labels))
    return take_new(table, project, source.name, labels, each=each), source.name


def take_new(
    table: pa.Table,
    project: Project,
    name: str,
    labels: str | None = None,
    *,
    each: bool = False,
    whole: bool = True,
) -> NewTable:
    """Rows of a table that is already here as those of a new domain, or of several with `each`.

    Where they are a sample, the table is not `whole`.
    """
    roles = replace(project.roles, domain=None) if each else project.roles
    return prepare_new(table, roles, project.encoder, project.model.classes_, name, labels, whole=whole)
