"""Tables in: CSV, Parquet and Arrow, from a file or a pipe, whole or batch by batch."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.ipc as ipc
import pyarrow.parquet as pq

from sfboost.tables.dialect import Dialect, Kind, is_arrow_stream, kind_of_bytes, sniff

#: What stands for a missing cell in CSV, beside what Arrow knows.
_MISSING = (*pacsv.ConvertOptions().null_values, "?")
_HEAD = 1 << 20
_ROWS = 1 << 16
# Bytes of CSV at a time: some blocks are read ahead, so larger ones pile up in memory.
_BLOCK = 1 << 20
PIPE = "-"


@dataclass(frozen=True)
class Source:
    """A table that is there to be read.

    Attributes
    ----------
    name : str
        For sentences: the file's name, or "standard input".
    path : Path or None
        None is standard input.
    pipe : stream or None
        Standard input from its beginning.
    """

    name: str
    path: Path | None
    kind: Kind
    head: bytes
    dialect: Dialect
    pipe: Any = None

    @property
    def size(self) -> int | None:
        """Bytes, where they are known before reading."""
        return None if self.path is None else self.path.stat().st_size


def find(where: str, *, delimiter: str | None = None, decimal: str | None = None) -> Source:
    """Look at the beginning of a file, or of standard input for `-`."""
    pipe = None
    if where == PIPE:
        head = sys.stdin.buffer.read(_HEAD)
        pipe = io.BufferedReader(_Rewound(head, sys.stdin.buffer), _HEAD)
        name, path = "standard input", None
    else:
        path = Path(where)
        if path.is_dir():
            raise ValueError(f"{where} is a folder: name one file in it.")
        if not path.exists():
            raise ValueError(f"There is no file {where}: check the name, or pass - for standard input.")
        with path.open("rb") as file:
            head = file.read(_HEAD)
        name = path.name
    if not head.strip():
        raise ValueError(f"{name} is empty: a table with a header and rows is needed.")
    kind = kind_of_bytes(head)
    if kind == "csv" and b"\x00" in head and not head.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise ValueError(f"{name} is no table we can read: CSV, Parquet and Arrow are.")
    return Source(name, path, kind, head, sniff(head, delimiter, decimal), pipe)


def read(source: Source, types: Mapping[str, pa.DataType] | None = None) -> pa.Table:
    """The whole table; `types` sets the types of CSV columns, the others are inferred."""
    with _sentences(source):
        if source.kind == "csv":
            table = pacsv.read_csv(_stream(source), **_csv_options(source, types))
        else:
            with _batches(source) as (_, batches):
                table = _joined(batches, source)
    names = table.column_names
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"{source.name} has several columns named {twice}: give each its own name.")
    if not table.num_rows:
        raise ValueError(f"{source.name} has a header but no rows: at least one row is needed.")
    return table


@contextmanager
def open_batches(
    source: Source,
    rows: int,
    types: Mapping[str, pa.DataType] | None = None,
    columns: Collection[str] | None = None,
) -> Iterator[tuple[int | None, Iterator[pa.RecordBatch]]]:
    """Number of rows, where the file says so, and batches of about `rows` rows.

    With `columns` others may be left out; one that is not in the table is not asked for.
    """
    with _sentences(source), _batches(source, rows, types, columns) as opened:
        yield opened


class _Rewound(io.RawIOBase):
    """A stream whose first bytes were read to look at them, and are given again."""

    def __init__(self, head: bytes, rest: Any) -> None:
        self._head, self._rest = head, rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        chunk = self._head[: len(buffer)] or self._rest.read(len(buffer))
        self._head = self._head[len(chunk) :]
        buffer[: len(chunk)] = chunk
        return len(chunk)


def _stream(source: Source) -> Any:
    return str(source.path) if source.pipe is None else source.pipe


def _seekable(source: Source) -> Any:
    """The file without a copy of it in memory, or all that a pipe brings."""
    return pa.memory_map(str(source.path)) if source.pipe is None else pa.BufferReader(source.pipe.read())


def _csv_options(
    source: Source, types: Mapping[str, pa.DataType] | None, columns: Collection[str] | None = None
) -> dict[str, Any]:
    dialect = source.dialect
    # A column that nobody wants must not fail for changing its type halfway.
    wanted = [] if columns is None else [name for name in _header(source) if name in columns]
    return {
        "read_options": pacsv.ReadOptions(encoding=dialect.encoding, block_size=_BLOCK),
        "parse_options": pacsv.ParseOptions(delimiter=dialect.delimiter, newlines_in_values=True),
        "convert_options": pacsv.ConvertOptions(
            column_types=dict(types or {}),
            include_columns=wanted,
            null_values=list(_MISSING),
            strings_can_be_null=True,
            decimal_point=dialect.decimal,
        ),
    }


def _header(source: Source) -> list[str]:
    text = source.head.decode(source.dialect.encoding, errors="ignore").lstrip("\ufeff")
    return next(csv.reader(io.StringIO(text), delimiter=source.dialect.delimiter), [])


@contextmanager
def _batches(
    source: Source,
    rows: int | None = None,
    types: Mapping[str, pa.DataType] | None = None,
    columns: Collection[str] | None = None,
) -> Iterator[tuple[int | None, Iterator[pa.RecordBatch]]]:
    if source.kind == "csv":
        with pacsv.open_csv(_stream(source), **_csv_options(source, types, columns)) as reader:
            yield None, iter(reader)
    elif source.kind == "parquet":
        # Buffering ahead would keep every column chunk until the end.
        where = _seekable(source) if source.path is None else source.path
        with pq.ParquetFile(where, pre_buffer=False) as file:
            names = file.schema_arrow.names
            chosen = None if columns is None else [name for name in names if name in columns]
            yield file.metadata.num_rows, file.iter_batches(rows or _ROWS, columns=chosen)
    elif is_arrow_stream(source.head):
        with ipc.open_stream(source.pipe or _seekable(source)) as reader:
            yield None, iter(reader)
    else:
        with ipc.open_file(_seekable(source)) as reader:
            yield None, (reader.get_batch(i) for i in range(reader.num_record_batches))


def _joined(batches: Iterator[pa.RecordBatch], source: Source) -> pa.Table:
    parts = list(batches)
    if not parts:
        raise ValueError(f"{source.name} has no rows: at least one row is needed.")
    return pa.Table.from_batches(parts)


@contextmanager
def _sentences(source: Source) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        what = str(error).splitlines()[0]
        raise ValueError(f"{source.name} cannot be read as {source.kind}: {what}") from error
