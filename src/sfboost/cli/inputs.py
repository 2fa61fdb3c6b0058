"""Reading the tables that options name."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from sfboost.cli.project import Project, csv_types
from sfboost.tables.encoding import as_text
from sfboost.tables.preparing import NewRows, TrainingTable, prepare_new, prepare_training
from sfboost.tables.reading import find, read
from sfboost.tables.roles import assign, pick, require_columns, split


def read_training(
    where: str,
    *,
    target: str,
    domain: str,
    stable: str | None,
    unstable: str | None,
    id: str | None = None,
    drop: str | None = None,
    categorical: str | None = None,
    delimiter: str | None = None,
    decimal: str | None = None,
    hold_out: str | None = None,
) -> tuple[TrainingTable, pa.Table | None]:
    """Labelled rows, and those of the domain that is held out, if one is."""
    source = find(where, delimiter=delimiter, decimal=decimal)
    # Codes are to be read as text, so that 01 stays 01; a pattern is known only when the columns are.
    table = read(source, dict.fromkeys(split(categorical), pa.string()))
    codes = pick(table.column_names, categorical)
    roles = assign(
        table.column_names, target=target, domain=domain, stable=stable, unstable=unstable, id=id, drop=drop
    )
    require_columns(
        roles.features, codes, "--categorical names columns that are no features. The list of features"
    )
    held = None
    if hold_out is not None:
        inside = pc.equal(as_text(table.column(domain)), hold_out)
        held = table.filter(inside)
        if not held.num_rows:
            there = ", ".join(str(name) for name in pc.unique(as_text(table.column(domain))).to_pylist()[:20])
            raise ValueError(f"No row of {source.name} has {domain} = {hold_out!r}; there are {there}.")
        table = table.filter(pc.invert(inside))
        if not table.num_rows:
            raise ValueError(f"{hold_out!r} is the only domain of {source.name}: none is left to train on.")
    return prepare_training(table, roles, codes, source.name), held


def read_new(
    where: str, project: Project, *, delimiter: str | None = None, decimal: str | None = None
) -> tuple[NewRows, str]:
    """Rows of a new domain, and the name of where they are from."""
    source = find(where, delimiter=delimiter, decimal=decimal)
    table = read(source, csv_types(project))
    return take_new(table, project, source.name), source.name


def take_new(table: pa.Table, project: Project, name: str) -> NewRows:
    """Rows of a table that is already here as those of a new domain."""
    return prepare_new(table, project.roles, project.encoder, project.model.classes_, name)
