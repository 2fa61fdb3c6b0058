"""Tables that options name: read in training and as new rows; and files that must not be written over.

A training table that does not fit into memory is sampled: some rows of each domain, in one pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.feather as feather

from sfboost.adaptation.row_sample import row_keys
from sfboost.cli.options import ColumnOptions, CsvOptions
from sfboost.cli.project import Project
from sfboost.encoding.cells import as_text
from sfboost.notices import left_out
from sfboost.streaming import find_blocks
from sfboost.streaming.blocks import BATCH_ROWS
from sfboost.tables.preparing import NewTable, TrainingTable, csv_types, prepare_new, prepare_training
from sfboost.tables.reading import PIPE, Source, open_batches, read, without_index
from sfboost.tables.roles import assign, pick, require_columns, split
from sfboost.whole_files import refuse_unwritable


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


# Rows that are gathered before those with high hashes are let go.
_GATHERED = 1 << 18


class DomainSample:
    """Of each domain at most so many rows, those with the lowest hash: the same ones whatever their order.

    Parameters
    ----------
    domain : str
        Column with the domain.
    most : int
    """

    def __init__(self, domain: str, most: int) -> None:
        self.domain, self.most = domain, most
        self.n_rows = self.n_nowhere = self._gathered = 0
        self._parts: list[pa.Table] = []
        self._keys: list[npt.NDArray[np.uint64]] = []

    def add(self, batch: pa.RecordBatch) -> None:
        """Look at some more rows."""
        self.n_rows += batch.num_rows
        known = pc.is_valid(as_text(batch.column(self.domain), self.domain))
        batch = batch.filter(known)
        self.n_nowhere += len(known) - batch.num_rows
        if not batch.num_rows:
            return
        self._parts.append(pa.Table.from_batches([batch]))
        self._keys.append(_keys(batch))
        self._gathered += batch.num_rows
        if self._gathered > _GATHERED:
            self.table()

    def table(self) -> pa.Table:
        """The sample so far, in an order that its rows decide."""
        table, keys = pa.concat_tables(self._parts, promote_options="permissive"), np.concatenate(self._keys)
        names = np.array(as_text(table.column(self.domain), self.domain).to_pylist(), dtype=object)
        order = np.lexsort((keys, names))
        first = np.flatnonzero(np.append(True, names[order][1:] != names[order][:-1]))
        rank = np.arange(len(order)) - np.repeat(first, np.diff(np.append(first, len(order))))
        kept = order[rank < self.most]
        self._parts, self._keys, self._gathered = [table.take(pa.array(kept))], [keys[kept]], 0
        return self._parts[0]


def _keys(batch: pa.RecordBatch) -> npt.NDArray[np.uint64]:
    """A hash of each row; whole numbers as others, since a gap in their batch turns them into such."""
    columns = []
    for column in batch.columns:
        kind = column.type
        if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind):
            numbers = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        else:
            cells = column.to_pylist()
            texts = np.array([None if cell is None else str(cell) for cell in cells], dtype=object)
            numbers = (pd.util.hash_array(texts) >> np.uint64(12)).astype(np.float64)
        columns.append(numbers)
    X, n_rows = np.column_stack(columns), batch.num_rows
    return row_keys(np.zeros((n_rows, 1)), X, np.zeros(n_rows, dtype=np.intp), np.ones(n_rows))


@contextmanager
def sampled(where: str, domain: str, most: int, csv: CsvOptions) -> Iterator[tuple[Source, str]]:
    """At most so many rows of each domain of a file, a folder or a pipe, and a sentence that says so."""
    if most < 1:
        raise ValueError(f"--sample {most} leaves nothing to fit to: it is a number of rows of each domain.")
    paths = [where]
    if where != PIPE and Path(where).is_dir():
        paths = list(dict.fromkeys(block.path for block in find_blocks(where)))
    sample, kinds, decimal = DomainSample(domain, most), set(), "."
    for path in paths:
        source = csv.find(path)
        kinds.add(source.kind == "csv")
        decimal = source.dialect.decimal
        # Types of CSV columns are found in the sample: what a block holds says little of the others.
        types = dict.fromkeys(source.header, pa.string())
        with open_batches(source, BATCH_ROWS, types) as (_, batches):
            for batch in batches:
                require_columns(batch.schema.names, [domain], source.name)
                sample.add(batch)
    if len(kinds) > 1:
        raise ValueError(f"{where} holds CSV and other tables: put those of one kind into a folder.")
    if not sample.n_rows:
        raise ValueError(f"{where} has no rows: at least one row is needed.")
    name = Path(where).name if where != PIPE else "standard input"
    if sample.n_nowhere == sample.n_rows:
        raise ValueError(f"Every row of {name} lacks its {domain!r}: training needs the domain of each row.")
    table = sample.table()
    nowhere = f" {left_out(sample.n_nowhere, domain)}" if sample.n_nowhere else ""
    with TemporaryDirectory(prefix="sfboost-") as folder:
        if kinds == {True}:
            place = Path(folder) / "sample.csv"
            pacsv.write_csv(table, place)
            found = replace(csv, delimiter=",", decimal=decimal, encoding="utf-8").find(str(place))
        else:
            place = Path(folder) / "sample.arrow"
            feather.write_feather(table, str(place), compression="uncompressed")
            found = csv.find(str(place))
        yield (
            replace(found, name=name),
            f"Fitted to a sample: {table.num_rows} of the {sample.n_rows} rows of {name}, at most {most} of "
            f"each domain (--sample).{nowhere}",
        )


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
