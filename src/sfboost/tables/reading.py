"""Tables in: CSV, Parquet and Arrow, from a file or a pipe, whole or batch by batch."""

from __future__ import annotations

import io
import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.ipc as ipc
import pyarrow.parquet as pq

from sfboost.encoding.frames import refuse_twin_names
from sfboost.tables.complaints import explain_arrow
from sfboost.tables.csvtext import CsvText
from sfboost.tables.dialect import is_arrow_stream
from sfboost.tables.sources import PIPE, Source, find

__all__ = ["PIPE", "Source", "find", "open_batches", "read", "without_index"]

#: What stands for a missing cell in CSV, beside what Arrow knows.
_MISSING = (*pacsv.ConvertOptions().null_values, "?")
#: Truth values, where a column is known to hold them; a missing one had turned the others into 1.0 and 0.0.
_TRUE = (*pacsv.ConvertOptions().true_values, "1.0")
_FALSE = (*pacsv.ConvertOptions().false_values, "0.0")
_ROWS = 1 << 16
# Bytes of CSV at a time: some blocks are read ahead, so larger ones pile up in memory.
_BLOCK = 1 << 20
# What pandas calls an index: nothing when it writes CSV, and this when it reads that again.
_NAMELESS = re.compile(r"|Unnamed: \d+(_level_\d+)?|__index_level_\d+__")


def read(source: Source, types: Mapping[str, pa.DataType] | None = None) -> pa.Table:
    """The whole table; `types` sets the types of CSV columns, the others are inferred."""
    with _sentences(source):
        if source.kind == "csv":
            refuse_twin_names(source.header, source.name)
            with _text(source) as text:
                table = pacsv.read_csv(text, **_csv_options(source, types))
        else:
            with _batches(source) as (_, batches):
                table = _joined(batches, source)
    if not table.num_rows:
        raise ValueError(f"{source.name} has a header but no rows: at least one row is needed.")
    return table


def without_index(table: pa.Table, named: Collection[str | None] = ()) -> tuple[pa.Table, list[str]]:
    """The table without columns that hold the index of a pandas table, and what is said of them.

    They are what Parquet says, and what CSV has no name for; those that somebody `named` stay.

    Examples
    --------
    >>> table, remarks = without_index(pa.table({"": [0, 1], "age": [40, 50]}))
    >>> table.column_names, remarks
    (['age'], ["Column '' looks like the index of a pandas table and is left out."])
    """
    try:
        described = (table.schema.pandas_metadata or {}).get("index_columns", [])
    except (ValueError, AttributeError):  # a note of pandas that is not one is none
        described = []
    known = {name for name in described if isinstance(name, str)}
    index = [name for name in table.column_names if name in known or _NAMELESS.fullmatch(name)]
    index = [name for name in index if name not in named]
    said = [f"Column {name!r} looks like the index of a pandas table and is left out." for name in index]
    return table.drop_columns(index) if index else table, said


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


@contextmanager
def _text(source: Source) -> Iterator[Any]:
    """CSV as UTF-8, checked on the way."""
    with nullcontext(source.pipe) if source.path is None else source.path.open("rb") as raw:
        text = CsvText(raw, source.name, source.dialect.encoding, source.dialect.delimiter)
        try:
            yield io.BufferedReader(text, _BLOCK)
        except pa.ArrowInvalid as error:
            if "CSV parse error" in str(error):
                text.look_ahead()
            raise


def _seekable(source: Source) -> Any:
    """The file without a copy of it in memory, or all that a pipe brings."""
    return pa.memory_map(str(source.path)) if source.pipe is None else pa.BufferReader(source.pipe.read())


def _csv_options(
    source: Source, types: Mapping[str, pa.DataType] | None, columns: Collection[str] | None = None
) -> dict[str, Any]:
    dialect = source.dialect
    # A column that nobody wants must not fail for changing its type halfway.
    wanted = [] if columns is None else [name for name in source.header if name in columns]
    # Not where types are inferred: numbers that are 0.0 and 1.0 would be taken for truth values.
    known = pa.bool_() in (types or {}).values()
    truth = {"true_values": _TRUE, "false_values": _FALSE} if known else {}
    # Threads that read ahead must not outlive a small table: one that does when Python ends aborts it.
    threads = len(source.head) >= _BLOCK
    return {
        "read_options": pacsv.ReadOptions(block_size=_BLOCK, use_threads=threads),
        "parse_options": pacsv.ParseOptions(delimiter=dialect.delimiter, newlines_in_values=True),
        "convert_options": pacsv.ConvertOptions(
            column_types=dict(types or {}),
            include_columns=wanted,
            null_values=list(_MISSING),
            strings_can_be_null=True,
            decimal_point=dialect.decimal,
            **truth,
        ),
    }


@contextmanager
def _batches(
    source: Source,
    rows: int | None = None,
    types: Mapping[str, pa.DataType] | None = None,
    columns: Collection[str] | None = None,
) -> Iterator[tuple[int | None, Iterator[pa.RecordBatch]]]:
    if source.kind == "csv":
        refuse_twin_names(source.header, source.name)
        with _text(source) as text, pacsv.open_csv(text, **_csv_options(source, types, columns)) as reader:
            yield None, iter(reader)
    elif source.kind == "parquet":
        # Buffering ahead would keep every column chunk until the end.
        where = _seekable(source) if source.path is None else source.path
        with pq.ParquetFile(where, pre_buffer=False) as file:
            names = file.schema_arrow.names
            refuse_twin_names(names, source.name)
            chosen = None if columns is None else [name for name in names if name in columns]
            yield file.metadata.num_rows, file.iter_batches(rows or _ROWS, columns=chosen)
    elif is_arrow_stream(source.head):
        with ipc.open_stream(source.pipe or _seekable(source)) as reader:
            refuse_twin_names(reader.schema.names, source.name)
            yield None, iter(reader)
    else:
        with ipc.open_file(_seekable(source)) as reader:
            refuse_twin_names(reader.schema.names, source.name)
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
        raise ValueError(explain_arrow(str(error), source.name, source.kind, source.header)) from error
