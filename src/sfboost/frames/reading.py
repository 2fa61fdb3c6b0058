"""Tables in: CSV, Parquet and Arrow, from a file or a pipe, whole or batch by batch.

`find` looks at the first bytes: the kind of table, and how a CSV file is written. `read` and `open_batches`
give what pyarrow makes of it, and refuse what it lets pass in silence: two columns of one name, text of
another encoding, and lines that a quote swallowed which is never closed.
"""

from __future__ import annotations

import codecs
import gzip
import io
import os
import re
import shutil
import sys
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from tempfile import mkstemp
from typing import Any, Literal
from weakref import finalize

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.ipc as ipc
import pyarrow.parquet as pq

from sfboost.frames.cells import refuse_twin_names

Kind = Literal["csv", "parquet", "arrow"]
Types = Mapping[str, pa.DataType]

PIPE = "-"
#: Endings of file names.
ENDINGS: dict[str, Kind] = {
    **dict.fromkeys((".csv", ".tsv", ".txt"), "csv"),
    **dict.fromkeys((".parquet", ".pq"), "parquet"),
    **dict.fromkeys((".arrow", ".feather", ".ipc", ".arrows"), "arrow"),
}
#: What stands for a missing cell in CSV, beside what Arrow knows.
_MISSING = (*pacsv.ConvertOptions().null_values, "?")
#: Truth values, where a column is known to hold them; a missing one had turned the others into 1.0 and 0.0.
_TRUE = (*pacsv.ConvertOptions().true_values, "1.0")
_FALSE = (*pacsv.ConvertOptions().false_values, "0.0")
_DELIMITERS = ",;\t|"
_ARROW_FILE, _ARROW_STREAM, _PARQUET, _GZIP = b"ARROW1", b"\xff\xff\xff\xff", b"PAR1", b"\x1f\x8b"
#: Bytes that are looked at before reading.
_HEAD = 1 << 20
_ROWS = 1 << 16
# Bytes of CSV at a time: some blocks are read ahead, so larger ones pile up in memory.
_BLOCK = 1 << 20
# What pandas calls an index: nothing when it writes CSV, and this when it reads that again.
_NAMELESS = re.compile(r"|Unnamed: \d+(_level_\d+)?|__index_level_\d+__")
_RAGGED = re.compile(r"Expected (\d+) columns, got (\d+): (.*)")
_SPOILT = re.compile(r"In CSV column #(\d+): .*conversion error to (\w+): invalid value '(.*)'", re.DOTALL)
_HELD = {"double": "numbers", "bool": "truth values"}
_SHOWN = 60


@dataclass(frozen=True)
class Dialect:
    """How a CSV file is written."""

    delimiter: str = ","
    decimal: str = "."
    encoding: str = "utf-8"


def kind_of_bytes(head: bytes) -> Kind:
    """The kind of table by its first bytes; what is neither Parquet nor Arrow is taken for CSV.

    Examples
    --------
    >>> kind_of_bytes(b"PAR1..."), kind_of_bytes(b"age,sick")
    ('parquet', 'csv')
    """
    if head.startswith(_PARQUET):
        return "parquet"
    return "arrow" if head.startswith((_ARROW_FILE, _ARROW_STREAM)) else "csv"


def kind_of_name(path: Path) -> Kind:
    """The kind of table that a file name asks for."""
    try:
        return ENDINGS[path.suffix.lower()]
    except KeyError:
        raise ValueError(
            f"{path.name} ends in none of {', '.join(ENDINGS)}: give the file one of these endings."
        ) from None


def sniff(
    head: bytes, delimiter: str | None = None, decimal: str | None = None, encoding: str | None = None
) -> Dialect:
    r"""The dialect of a CSV file from its first bytes; what is given is not guessed.

    Examples
    --------
    >>> sniff(b"age;height\n40;1,82\n50;1,75\n")
    Dialect(delimiter=';', decimal=',', encoding='utf-8')
    """
    encoding = _encoding(head) if encoding is None else _check_encoding(encoding)
    text = head.decode(encoding, errors="ignore").lstrip("\ufeff")
    lines = [line for line in text.splitlines() if line.strip()][:200]
    header = re.sub(r'"[^"]*"', "", lines[0]) if lines else ""
    if delimiter is not None:
        delimiter = _check_delimiter(delimiter)
    else:
        delimiter = max(_DELIMITERS, key=lambda mark: (header.count(mark), mark == ","))
    if decimal not in (None, ".", ","):
        raise ValueError(f"Got --decimal {decimal!r}: it is . or ,")
    if decimal is None:
        cells = [cell.strip().strip('"') for line in lines[1:] for cell in line.split(delimiter)]
        commas = sum(bool(re.fullmatch(r"[+-]?\d+,\d+", cell)) for cell in cells)
        points = sum(bool(re.fullmatch(r"[+-]?\d+\.\d+", cell)) for cell in cells)
        decimal = "," if delimiter != "," and commas > points else "."
    return Dialect(delimiter, decimal, encoding)


def _check_delimiter(delimiter: str) -> str:
    delimiter = "\t" if delimiter == r"\t" else delimiter
    if len(delimiter) != 1 or not delimiter.isascii() or delimiter in '"\r\n\0':
        raise ValueError(f"Got --delimiter {delimiter!r}: it is one ASCII character, such as ; or |")
    return delimiter


def _check_encoding(encoding: str) -> str:
    try:
        "a".encode(encoding)
    except (LookupError, ValueError):
        raise ValueError(
            f"Got --encoding {encoding!r}: it is one that Python knows, such as utf-8, cp1252 or latin-1."
        ) from None
    return encoding


def _encoding(head: bytes) -> str:
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)  # the last character may be cut in two
    except UnicodeDecodeError:
        return "cp1252"  # what spreadsheets write where they do not write UTF-8
    return "utf-8"


class TemporaryFile:
    """A file that is there as long as this object is, and holds what a stream brings."""

    def __init__(self, stream: Any = None) -> None:
        number, name = mkstemp(prefix="sfboost-")
        self.path = Path(name)
        finalize(self, self.path.unlink, missing_ok=True)
        with os.fdopen(number, "wb") as file:
            if stream is not None:
                shutil.copyfileobj(stream, file, _HEAD)


@dataclass(frozen=True)
class Source:
    """A table that is there to be read.

    Attributes
    ----------
    name : str
        For sentences: the file's name, or "standard input".
    path : Path
    held : TemporaryFile or None
        What came from a pipe, or was unpacked; it goes with this.
    """

    name: str
    path: Path
    kind: Kind
    head: bytes
    dialect: Dialect
    held: TemporaryFile | None = None

    @cached_property
    def header(self) -> list[str]:
        """Names of the columns of a CSV file; none of another kind, and of what cannot be read."""
        if self.kind == "csv":
            with suppress(pa.ArrowInvalid, UnicodeError), pacsv.open_csv(self.path, **_csv(self)) as reader:
                return list(reader.schema.names)
        return []

    @property
    def zero_padded(self) -> tuple[str, ...]:
        """CSV columns that begin with whole numbers written like 007, as codes are and amounts are not."""
        if not self.header:
            return ()
        with pacsv.open_csv(self.path, **_csv(self, dict.fromkeys(self.header, pa.string()))) as reader:
            first = next(reader)
        found = (pc.match_substring_regex(column, r"^\s*0\d+\s*$") for column in first.columns)
        return tuple(name for name, cells in zip(self.header, found, strict=True) if pc.any(cells).as_py())


def find(
    where: str, *, delimiter: str | None = None, decimal: str | None = None, encoding: str | None = None
) -> Source:
    """Look at the beginning of a file, or of standard input for `-`.

    What flows by can be read once, and is kept in a temporary file, as is what is unpacked.
    """
    path, held = Path(where), None
    if where != PIPE and path.is_dir():
        raise ValueError(f"{where} is a folder: name one file in it.")
    if where != PIPE and not path.exists():
        raise ValueError(f"There is no file {where}: check the name, or pass - for standard input.")
    name = "standard input" if where == PIPE else path.name
    if where == PIPE or not path.is_file():
        with nullcontext(sys.stdin.buffer) if where == PIPE else path.open("rb") as stream:
            held = TemporaryFile(stream)
            path = held.path
    if _head_of(path).startswith(_GZIP):
        try:
            with gzip.open(path) as unpacked:
                held = TemporaryFile(unpacked)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise ValueError(
                f"{name} is cut short or damaged ({error}): compress or copy it again."
            ) from error
        path = held.path
    head = _head_of(path)
    if not head.strip():
        raise ValueError(f"{name} is empty: a table with a header and rows is needed.")
    kind = kind_of_bytes(head)
    dialect = sniff(head, delimiter, decimal, encoding)
    if kind == "csv" and b"\x00" in head and "\0" in head.decode(dialect.encoding, errors="ignore"):
        raise ValueError(f"{name} is no table we can read: CSV, Parquet and Arrow are.")
    return Source(name, path, kind, head, dialect, held)


def _head_of(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(_HEAD)


def read(source: Source, types: Types | None = None) -> pa.Table:
    """The whole table; `types` sets the types of CSV columns, the others are inferred."""
    if source.kind == "csv":  # the types of all rows, not of the first ones
        with _sentences(source), pa.OSFile(str(source.path)) as text:
            refuse_twin_names(source.header, source.name)
            table = _checked(pacsv.read_csv(text, **_csv(source, types)), source)
    else:
        with open_batches(source) as batches:
            parts = list(batches)
        table = pa.Table.from_batches(parts) if parts else pa.table({})
    if not table.num_rows:
        raise ValueError(f"{source.name} has a header but no rows: at least one row is needed.")
    return table


@contextmanager
def open_batches(
    source: Source,
    rows: int = _ROWS,
    types: Types | None = None,
    columns: Collection[str] | None = None,
    groups: Sequence[int] = (),
) -> Iterator[Iterator[pa.RecordBatch]]:
    """Batches of about `rows` rows; with `groups`, of these row groups of a Parquet file.

    With `columns` others may be left out; one that is not in the table is not asked for.
    """
    with _sentences(source):
        if source.kind == "csv":
            refuse_twin_names(source.header, source.name)
            options = _csv(source, types, columns)
            with pa.OSFile(str(source.path)) as text, pacsv.open_csv(text, **options) as reader:
                yield (_checked(batch, source) for batch in reader)
        elif source.kind == "parquet":
            # Buffering ahead would keep every column chunk until the end.
            with pq.ParquetFile(source.path, pre_buffer=False) as file:
                names = file.schema_arrow.names
                refuse_twin_names(names, source.name)
                chosen = None if columns is None else [name for name in names if name in columns]
                yield file.iter_batches(rows, row_groups=list(groups) or None, columns=chosen)
        else:
            streamed, mapped = source.head.startswith(_ARROW_STREAM), pa.memory_map(str(source.path))
            with (ipc.open_stream if streamed else ipc.open_file)(mapped) as reader:
                refuse_twin_names(reader.schema.names, source.name)
                batches = (
                    iter(reader) if streamed else map(reader.get_batch, range(reader.num_record_batches))
                )
                yield map(_validated, batches)


def source_of(table: pa.Table, name: str, like: Source) -> Source:
    """A table that is here, to be read as what it was taken from: text of CSV gets its types then."""
    held = TemporaryFile()
    if like.kind == "csv":
        pacsv.write_csv(table, held.path)
    else:
        with ipc.new_file(held.path, table.schema) as writer:
            writer.write_table(table)
    kind: Kind = "csv" if like.kind == "csv" else "arrow"
    return Source(name, held.path, kind, _head_of(held.path), Dialect(decimal=like.dialect.decimal), held)


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


def _csv(
    source: Source, types: Types | None = None, columns: Collection[str] | None = None
) -> dict[str, Any]:
    """How pyarrow is to read a CSV file."""
    dialect = source.dialect
    # A column that nobody wants must not fail for changing its type halfway.
    wanted = [] if columns is None else [name for name in source.header if name in columns]
    # Not where types are inferred: numbers that are 0.0 and 1.0 would be taken for truth values.
    known = pa.bool_() in (types or {}).values()
    truth = {"true_values": _TRUE, "false_values": _FALSE} if known else {}
    # Threads that read ahead must not outlive a small table: one that does when Python ends aborts it.
    threads = len(source.head) >= _BLOCK
    return {
        "read_options": pacsv.ReadOptions(block_size=_BLOCK, use_threads=threads, encoding=dialect.encoding),
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


def _validated(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch, unless its offsets lead outside of its bytes: compiled code follows them without looking."""
    batch.validate(full=True)
    return batch


def _checked(rows: Any, source: Source) -> Any:
    """The rows, unless pyarrow took bytes for no text, or many lines for one cell since a quote was open."""
    for name, column in zip(rows.schema.names, rows.columns, strict=True):
        if pa.types.is_binary(column.type):
            raise ValueError(_no_text(source.name, source.dialect.encoding))
        if not pa.types.is_string(column.type):
            continue
        for cell in column.filter(pc.match_substring_regex(column, "[\r\n]")).to_pylist():
            if _holds_rows(cell, source.header.index(name), rows.schema, source):
                raise ValueError(
                    f"A cell of column {name!r} in {source.name} begins with {cell[:_SHOWN]!r} and holds "
                    'lines of the table: is the quote (") before it never closed? Close it, or remove it.'
                )
    return rows


def _holds_rows(cell: str, place: int, schema: pa.Schema, source: Source) -> bool:
    """Whether a cell of several lines is the end of a row, more rows, and perhaps the beginning of another.

    It is if pyarrow reads it as such: as many cells in each and, where the table has numbers, numbers.
    """
    names, mark = source.header, source.dialect.delimiter
    if len(names) == 1 or cell.count(mark) < len(names) - 1:
        return False
    numbers = {field.name: field.type for field in schema if field.type in (pa.int64(), pa.float64())}
    options = _csv(source, dict.fromkeys(names, pa.string()) | numbers)
    options["read_options"] = pacsv.ReadOptions(column_names=names, use_threads=False)
    whole = mark * place + cell[: _BLOCK // 2].replace('"', "")
    for text in (whole, whole + mark * (len(names) - 1 - place)):  # the last row may end with the cell
        with suppress(pa.ArrowInvalid):
            return bool(pacsv.read_csv(io.BytesIO(text.encode()), **options).num_rows > 1)
    return False


@contextmanager
def _sentences(source: Source) -> Iterator[None]:
    """Errors of those who read, as sentences that say what to mend."""
    try:
        yield
    except UnicodeError as error:
        raise ValueError(_no_text(source.name, source.dialect.encoding)) from error
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ValueError(
            f"{source.name} is cut short or damaged ({error}): compress or copy it again."
        ) from error
    except pa.ArrowException as error:
        raise ValueError(explain_arrow(str(error), source.name, source.kind, source.header)) from error


def explain_arrow(complaint: str, name: str, kind: str, header: Sequence[str] = ()) -> str:
    """A sentence for a complaint of Arrow about the table `name`.

    Examples
    --------
    >>> explain_arrow("CSV parse error: Expected 2 columns, got 3: 1,2,3", "a.csv", "csv")
    'A line of a.csv has 3 cells where the header has 2, and begins with 1,2,3: mend that line.'
    """
    quote = '(is a quote (") before it never closed?)'
    if ragged := _RAGGED.search(complaint):
        columns, cells, line = ragged.groups()
        return (
            f"A line of {name} has {cells} cells where the header has {columns}, and begins with "
            f"{line[:_SHOWN]}: mend that line" + (f" {quote}." if '"' in line else ".")
        )
    if "straddles two block" in complaint:
        return f"A line of {name} is longer than a million bytes {quote}: shorten its cells, or pass Parquet."
    if "Empty CSV" in complaint:  # a header that does not even end
        return f"{name} has a header but no rows {quote}: at least one row is needed."
    if "invalid UTF8" in complaint:
        return _no_text(name, "utf-8")
    spoilt = _SPOILT.search(complaint)
    if spoilt and int(spoilt[1]) < len(header) and spoilt[2] in _HELD:
        column = header[int(spoilt[1])]
        return (
            f"Column {column!r} of {name} held {_HELD[spoilt[2]]} in training, and here it holds "
            f"{spoilt[3][:_SHOWN]!r}: mend such cells, or leave them empty."
        )
    return f"{name} cannot be read as {kind}: {complaint.splitlines()[0] if complaint else 'it is broken'}"


def _no_text(name: str, encoding: str) -> str:
    return (
        f"{name} is not {encoding}: name the encoding of the file with --encoding, such as utf-8, cp1252 or "
        "latin-1."
    )
