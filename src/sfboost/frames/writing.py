"""Tables out: CSV, Parquet and Arrow, batch by batch, whole or not at all."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.ipc as ipc
import pyarrow.parquet as pq

from sfboost.foreign_text import plain
from sfboost.frames.reading import PIPE, Kind
from sfboost.whole_files import whole_file

Write = Callable[[pa.RecordBatch], None]


@contextmanager
def open_table(where: str, kind: Kind) -> Iterator[Write]:
    """A function that writes one batch after the other.

    The file appears under its name when all is written; if anything fails, what was there before stays.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with open_table(f"{folder}/two.csv", "csv") as write:
    ...         write(pa.RecordBatch.from_pydict({"age": [40, 50]}))
    ...     Path(folder, "two.csv").read_text().split()
    ['"age"', '40', '50']
    """
    if where == PIPE:
        if sys.stdout.isatty() and kind != "csv":
            raise ValueError(f"A terminal shows no {kind} table: use --format csv, or write to a file.")
        with _sink(sys.stdout.buffer, kind, seekable=False) as write:
            yield (lambda batch: write(_shown(batch))) if sys.stdout.isatty() else write
        sys.stdout.buffer.flush()
        return
    with whole_output(Path(where)) as part, _sink(part, kind) as write:
        yield write


@contextmanager
def whole_output(target: Path) -> Iterator[Path]:
    """A path to write to that is put in place at the end; folders are made."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(target) as part:
        yield part


def resolve(output: str) -> str:
    """`-` where the output is the same as standard output, as /dev/stdout is: words must not get into it."""
    with suppress(OSError, ValueError):  # not there yet, or standard output is no file
        here, there = os.fstat(sys.stdout.fileno()), Path(output).stat()
        if os.path.samestat(here, there) and not Path(output).samefile(os.devnull):
            return PIPE
    return output


def is_stream(path: Path) -> bool:
    """Whether a pipe or a device is there, whose name says nothing of what it takes."""
    return path.exists() and not path.is_file() and not path.is_dir()


def _shown(batch: pa.RecordBatch) -> pa.RecordBatch:
    """A batch for a terminal: names and cells must not write to it what it would obey."""

    def harmless(column: pa.Array) -> pa.Array:
        if pa.types.is_primitive(column.type):
            return column
        return pa.array([None if c is None else plain(str(c)) for c in column.to_pylist()], pa.string())

    columns = list(map(harmless, batch.columns))
    return pa.RecordBatch.from_arrays(columns, [plain(name) for name in batch.schema.names])


@contextmanager
def _sink(where: Any, kind: Kind, *, seekable: bool = True) -> Iterator[Write]:
    """A function that opens a writer for the first batch, and writes each to it."""
    where = str(where) if isinstance(where, Path) else where
    arrow = ipc.new_file if seekable else ipc.new_stream
    make = {"csv": pacsv.CSVWriter, "parquet": pq.ParquetWriter, "arrow": arrow}[kind]
    writers: list[Any] = []

    def write(batch: pa.RecordBatch) -> None:
        if not writers:
            writers.append(make(where, batch.schema))
        writers[0].write_batch(batch)

    try:
        yield write
    finally:
        for writer in writers:
            writer.close()
