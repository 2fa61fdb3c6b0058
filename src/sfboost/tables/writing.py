"""Tables out: CSV, Parquet and Arrow, batch by batch, whole or not at all."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.ipc as ipc
import pyarrow.parquet as pq

from sfboost.tables.dialect import Kind
from sfboost.tables.reading import PIPE

Write = Callable[[pa.RecordBatch], None]


@contextmanager
def open_table(where: str, kind: Kind) -> Iterator[Write]:
    """A function that writes one batch after the other.

    The file appears under its name when all is written; if anything fails, what was there before stays.

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with open_table(f"{folder}/two.csv", "csv") as write:
    ...         write(pa.RecordBatch.from_pydict({"age": [40, 50]}))
    ...     Path(folder, "two.csv").read_text().split()
    ['"age"', '40', '50']
    """
    if where == PIPE:
        with _sink(sys.stdout.buffer, kind, seekable=False) as write:
            yield write
        sys.stdout.buffer.flush()
        return
    with whole_file(Path(where)) as part, _sink(part, kind) as write:
        yield write


@contextmanager
def whole_file(target: Path) -> Iterator[Path]:
    """A path to write to, beside `target`, that takes its name at the end."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".incoming-", dir=target.parent) as incoming:
        part = Path(incoming, "part")
        yield part
        part.replace(target)


@contextmanager
def _sink(where: Any, kind: Kind, *, seekable: bool = True) -> Iterator[Write]:
    where = str(where) if isinstance(where, Path) else where
    writer: Any = None

    def write(batch: pa.RecordBatch) -> None:
        nonlocal writer
        if writer is None:
            writer = _open(where, kind, batch.schema, seekable)
        writer.write_batch(batch)

    try:
        yield write
    finally:
        if writer is not None:
            writer.close()


def _open(where: Any, kind: Kind, schema: pa.Schema, seekable: bool) -> Any:
    if kind == "csv":
        return pacsv.CSVWriter(where, schema)
    if kind == "parquet":
        return pq.ParquetWriter(where, schema)
    return ipc.new_file(where, schema) if seekable else ipc.new_stream(where, schema)
