"""Tables that options name: labelled rows, and rows of target domains; and files not to be written over.

New rows that are many, or a folder of them, are sampled in one pass, and all are predicted block by block.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from sfboost.cli.options import ColumnOptions, CsvOptions, StreamOptions
from sfboost.cli.project import Project
from sfboost.frames import Encoder
from sfboost.frames.blocks import Block, find_blocks, sample_rows
from sfboost.frames.cells import as_text
from sfboost.frames.preparing import NewTable, TrainingTable, csv_types, prepare_new, prepare_training
from sfboost.frames.reading import PIPE, Source, read, without_index
from sfboost.frames.roles import AUTO, Roles, assign, pick, require_columns, split
from sfboost.whole_files import refuse_unwritable

# Longer new tables are sampled.
_LONG_ROWS = 200_000
_LONG_BYTES = 1 << 26


def refuse_collisions(read: dict[str, str | Path | None], written: dict[str, str | Path | None]) -> None:
    """Raise `ValueError` where writing one of the named files would destroy another, under whatever name.

    Or where it cannot be written: that is to be known before the work, not after it.

    Examples
    --------
    >>> refuse_collisions({"TRAIN": "a.csv"}, {"-o": "b.csv", "--report": "./a.csv"})
    Traceback (most recent call last):
    ...
    ValueError: --report and TRAIN are the same file (a.csv): give --report a name of its own.
    """
    others = _files(read)
    for option, path in _files(written).items():
        for name, other in others.items():
            if is_same_file(path, other):
                raise ValueError(
                    f"{option} and {name} are the same file ({path}): give {option} a name of its own."
                )
        others[option] = path
    for option, target in written.items():
        if target is not None and str(target) != PIPE:
            try:
                refuse_unwritable(target)
            except IsADirectoryError:
                raise  # it says so itself
            except OSError as error:
                raise ValueError(
                    f"{option} {target} cannot be written ({error.strerror or error}): name a file in a "
                    "folder that can."
                ) from None


def _files(paths: dict[str, str | Path | None]) -> dict[str, Path]:
    """Those that are (or will be) files: a pipe or a device loses nothing."""
    given = {name: Path(path) for name, path in paths.items() if path is not None and str(path) != PIPE}
    return {name: path for name, path in given.items() if path.is_file() or not path.exists()}


def is_same_file(first: Path, second: Path) -> bool:
    """Whether two paths lead to one file, there or not there yet."""
    if first.exists() and second.exists():
        return first.samefile(second)
    # A link to a file that is not there yet leads to the same place; so do two spellings of it.
    return first.resolve() == second.resolve()


def read_training(
    where: str, asked: ColumnOptions, csv: CsvOptions, hold_out: str | None = None
) -> tuple[TrainingTable, pa.Table | None]:
    """Labelled rows, and those of the domain that is held out, if one is."""
    if where != PIPE and Path(where).is_dir():
        raise ValueError(f"{where} is a folder: name one file in it.")
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
    unnamed = asked.stable is None and asked.unstable is None
    roles = assign(
        table.column_names,
        target=asked.target,
        domain=domain,
        stable=AUTO if unnamed else asked.stable,
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
        *["No stable columns are named: they are searched for."] * unnamed,
        *(
            f"Column {column.name!r} is written with leading zeros, as codes are, and taken for amounts: say "
            f"--categorical {column.name} if it holds codes."
            for column in training.encoder.columns
            if column.kind == "number" and column.name in source.zero_padded
        ),
    ]
    return replace(training, remarks=(*remarks, *training.remarks)), held


@dataclass(frozen=True, eq=False)
class NewSource:
    """What is known of new rows before anything is made of them.

    Attributes
    ----------
    table : Table
        That is adapted to, and that reports look at: all rows, or a sample of a long table.
    name : str
        Of where they are from.
    n_rows : int
        Of the whole table.
    source : Table or list of Block
        All rows, to be predicted.
    remarks : tuple of str
    """

    table: pa.Table
    name: str
    n_rows: int
    source: Any
    remarks: tuple[str, ...] = ()

    def prepare(self, project: Project, labels: str | None = None, *, each: bool = False) -> NewTable:
        """As the model takes them: those of one domain, or with `each` of several."""
        roles = replace(project.roles, domain=None) if each else project.roles
        return prepare_new(self.table, roles, project.encoder, project.model.classes_, self.name, labels)

    def domains(self, column: str | None) -> npt.NDArray[np.object_] | None:
        """The domain of each row, if the table is here and names more than one."""
        if column not in self.table.column_names or self.source is not self.table:
            return None
        texts = as_text(self.table.column(column), str(column))
        if len(pc.unique(texts).drop_null()) < 2:
            return None
        if texts.null_count:
            raise ValueError(
                f"{texts.null_count} rows of {self.name} have no {column!r}, and the others are of several: "
                "fill it in, or drop those rows."
            )
        return np.array(texts.to_pylist(), dtype=object)


def read_new(
    where: str,
    roles: Roles,
    encoder: Encoder,
    csv: CsvOptions,
    stream: StreamOptions,
    labels: str | None = None,
    *,
    predict: bool = False,
) -> NewSource:
    """New rows, or a sample of them and the blocks that hold all, where the table is long.

    A long file of several domains is read as a whole, since each is adapted to by itself. Adapting needs no
    id; to `predict` does.
    """
    needed = _needed(roles, encoder, with_id=predict)
    if is_long(where, stream):
        found = _sample_new(where, roles, encoder, csv, stream, needed)
        several = predict and replace(found, source=found.table).domains(roles.domain) is not None
        if stream.engine is not None or Path(where).is_dir() or not several:
            if labels is not None:
                raise ValueError(
                    f"--labels is for tables that are read as a whole, and {found.name} is read block by "
                    f"block: put the labelled rows and up to {_LONG_ROWS} others into a table, and adapt to "
                    "that."
                )
            return found
    source = csv.find(where)
    if source.header:  # before the rows are read
        require_columns(source.header, needed, source.name)
    table = read(source, csv_types(roles, encoder, labels))
    require_columns(table.column_names, needed, source.name)
    return NewSource(table, source.name, table.num_rows, table)


def is_long(where: str, stream: StreamOptions) -> bool:
    """Whether a table is sampled and predicted in blocks: a folder, a long file, or if an engine is named."""
    path = Path(where)
    if where == PIPE or not path.exists():
        return False
    if stream.engine is not None or path.is_dir():
        return True
    if path.suffix.lower() in (".parquet", ".pq") and path.is_file():
        try:
            return bool(pq.read_metadata(path).num_rows > _LONG_ROWS)
        except (OSError, pa.ArrowException):
            return False  # whoever reads it will say so
    return path.stat().st_size > _LONG_BYTES


def _sample_new(
    where: str,
    roles: Roles,
    encoder: Encoder,
    csv: CsvOptions,
    stream: StreamOptions,
    needed: list[str],
) -> NewSource:
    blocks = new_blocks(where, roles, encoder, csv, needed)
    skipped: list[str] | None = [] if stream.skip_unreadable else None
    sample = sample_rows(blocks, engine=stream.engine or "here", skipped=skipped)
    table, remarks = sample.table, [f"Left out: {why}" for why in skipped or ()]
    if sample.n_rows > table.num_rows:
        remarks.append(
            f"Adapted to {table.num_rows} of the {sample.n_rows} rows, chosen by a hash of the row: checks, "
            "examples and scores are of these, and every row is predicted."
        )
    return NewSource(table, Path(where).name, sample.n_rows, blocks, tuple(remarks))


def new_blocks(
    where: str, roles: Roles, encoder: Encoder, csv: CsvOptions, needed: Sequence[str] = ()
) -> list[Block]:
    """The blocks of a table of new rows, with the columns that adapting, predicting and reports read."""
    needed = needed or _needed(roles, encoder, with_id=True)
    others = [name for name in (roles.id, roles.target, roles.domain) if name is not None]
    types = csv_types(roles, encoder)
    return find_blocks(where, columns=[*needed, *others], needed=needed, types=types, **asdict(csv))


def _needed(roles: Roles, encoder: Encoder, *, with_id: bool) -> list[str]:
    features = list(encoder.sources)
    return [*features, roles.id] if with_id and roles.id is not None else features
