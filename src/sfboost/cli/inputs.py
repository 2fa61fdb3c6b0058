"""Tables that options name: labelled rows, and rows of a new domain; and files not to be written over.

A table that is long, or a folder, is sampled in one pass: of labelled rows some of each domain, if that is
asked for; of new rows some, and all are predicted block by block.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from sfboost.cli.options import AdaptOptions, ColumnOptions, CsvOptions, StreamOptions
from sfboost.cli.project import Project
from sfboost.encoding.cells import as_text
from sfboost.notices import left_out
from sfboost.tables.blocks import Block, find_blocks, sample_rows
from sfboost.tables.preparing import NewTable, TrainingTable, csv_types, prepare_new, prepare_training
from sfboost.tables.reading import PIPE, Source, read, source_of, without_index
from sfboost.tables.roles import assign, pick, require_columns, split
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
    if asked.sample is not None:
        source, remark = _sampled(where, asked.domain, asked.sample, csv)
        training, held = _prepare(source, asked, hold_out)
        return replace(training, remarks=(remark, *training.remarks)), held
    if where != PIPE and Path(where).is_dir():
        raise ValueError(
            f"{where} is a folder: name one file in it, or say --sample 10000 to fit to at most so many rows "
            "of each domain of all its tables."
        )
    return _prepare(csv.find(where), asked, hold_out)


def _sampled(where: str, domain: str, most: int, csv: CsvOptions) -> tuple[Source, str]:
    """At most so many rows of each domain of a file, a folder or a pipe, and a sentence that says so."""
    if most < 1:
        raise ValueError(f"--sample {most} leaves nothing to fit to: it is a number of rows of each domain.")
    if where == PIPE:
        raise ValueError("--sample reads files: write what comes from standard input to one first.")
    blocks = find_blocks(where, needed=[domain], as_text=True, **asdict(csv))
    sources = [csv.find(path) for path in dict.fromkeys(block.path for block in blocks)]
    if len({source.kind == "csv" for source in sources}) > 1:
        raise ValueError(f"{where} holds CSV and other tables: put those of one kind into a folder.")
    sample = sample_rows(blocks, most, by=domain)
    name = Path(where).name
    if sample.n_nowhere == sample.n_rows:
        raise ValueError(f"Every row of {name} lacks its {domain!r}: training needs the domain of each row.")
    table = sample.table
    nowhere = f" {left_out(sample.n_nowhere, domain)}" if sample.n_nowhere else ""
    return source_of(table, name, like=sources[0]), (
        f"Fitted to a sample: {table.num_rows} of the {sample.n_rows} rows of {name}, at most {most} of "
        f"each domain (--sample).{nowhere}"
    )


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


@dataclass(frozen=True, eq=False)
class NewRows:
    """What is known of a new domain.

    Attributes
    ----------
    rows : NewTable
        That are adapted to, and that reports look at: all, or a sample of a long table.
    name : str
        Of where they are from.
    n_rows : int
        Of the whole table.
    source : Table or list of Block
        All rows, to be predicted.
    remarks : tuple of str
    domain : array of shape (n,), or None
        Of each row, where there are several.
    """

    rows: NewTable
    name: str
    n_rows: int
    source: Any
    remarks: tuple[str, ...] = ()
    domain: npt.NDArray[np.object_] | None = None


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


def holds_many(where: str, stream: StreamOptions, domain: str, csv: CsvOptions) -> bool:
    """Whether a file is of several domains: it is then read at once. A folder, or an engine, is one."""
    if where == PIPE or stream.engine is not None or Path(where).is_dir():
        return False
    found: set[str] = set()
    for block in find_blocks(where, columns=[domain], types={domain: pa.string()}, **asdict(csv)):
        for batch in block.batches():
            if domain not in batch.schema.names:
                return False
            found |= set(pc.unique(as_text(batch.column(domain), domain)).drop_null().to_pylist())
            if len(found) > 1:
                return True
    return False


def refuse_for_many(asked: AdaptOptions) -> None:
    """What is of one new domain cannot be had for several."""
    if asked.labels is not None:
        raise ValueError(
            "--labels are of one new domain, and NEW holds several: give the rows of one at a time."
        )
    if asked.card is not None:
        raise ValueError(
            "A model card is of one new domain, and NEW holds several: leave --card out, or give the rows of "
            "one."
        )


def read_new(
    where: str,
    project: Project,
    csv: CsvOptions,
    stream: StreamOptions,
    labels: str | None = None,
    *,
    each: bool = False,
    whole: bool = False,
) -> NewRows:
    """Rows of a new domain, or with `each` of several; `labels` names a column to adapt with.

    A table that must be read as a `whole` is, however long.
    """
    if not whole and is_long(where, stream):
        return _sample_new(where, project, csv, stream, labels)
    source = csv.find(where)
    table = read(source, csv_types(project.roles, project.encoder, labels))
    return take_new(table, project, source.name, labels, each=each)


def take_new(
    table: pa.Table, project: Project, name: str, labels: str | None = None, *, each: bool = False
) -> NewRows:
    """Rows of a table that is already here as those of a new domain, or with `each` of several."""
    domain = _domain_of_rows(table, project, name) if each else None
    roles = project.roles if domain is None else replace(project.roles, domain=None)
    rows = prepare_new(table, roles, project.encoder, project.model.classes_, name, labels)
    return NewRows(rows, name, table.num_rows, table, domain=domain)


def _domain_of_rows(table: pa.Table, project: Project, name: str) -> npt.NDArray[np.object_] | None:
    """The domain of each new row, if the table names more than one."""
    column = project.roles.domain
    if column not in table.column_names:
        return None
    texts = as_text(table.column(column), str(column))
    if len(pc.unique(texts).drop_null()) < 2:
        return None
    if texts.null_count:
        raise ValueError(
            f"{texts.null_count} rows of {name} have no {column!r}, and the others are of several: fill it "
            "in, or drop those rows."
        )
    return np.array(texts.to_pylist(), dtype=object)


def _sample_new(
    where: str, project: Project, csv: CsvOptions, stream: StreamOptions, labels: str | None
) -> NewRows:
    """Some rows of a long table, and the blocks that hold all of them."""
    name, roles = Path(where).name, project.roles
    if labels is not None:
        raise ValueError(
            f"--labels is for tables that are read as a whole, and {name} is read block by block: put the "
            f"labelled rows and up to {_LONG_ROWS} others into a table, and adapt to that."
        )
    blocks = new_blocks(where, project, csv)
    skipped: list[str] | None = [] if stream.skip_unreadable else None
    sample = sample_rows(blocks, engine=stream.engine or "here", skipped=skipped)
    table, remarks = sample.table, [f"Left out: {why}" for why in skipped or ()]
    if sample.n_rows > table.num_rows:
        remarks.append(
            f"Adapted to {table.num_rows} of the {sample.n_rows} rows, chosen by a hash of the row: checks, "
            "examples and scores are of these, and every row is predicted."
        )
    rows = prepare_new(table, roles, project.encoder, project.model.classes_, name, whole=False)
    return NewRows(rows, name, sample.n_rows, blocks, tuple(remarks))


def new_blocks(where: str, project: Project, csv: CsvOptions, *, with_id: bool = False) -> list[Block]:
    """The blocks of a table of new rows, with the columns that adapting, predicting and reports read.

    Adapting needs no id; predicting does.
    """
    roles, features = project.roles, [column.name for column in project.encoder.columns]
    others = [name for name in (roles.id, roles.target, roles.domain) if name is not None]
    types = csv_types(roles, project.encoder)
    needed = [*features, roles.id] if with_id and roles.id is not None else features
    return find_blocks(where, columns=[*features, *others], needed=needed, types=types, **asdict(csv))
