"""Blocks: parts of a table that are read, lost, found unreadable and done again one by one."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.ipc as ipc
import pyarrow.parquet as pq

from sfboost.tables.reading import ENDINGS, find, kind_of_bytes, open_batches

#: Rows of a record batch that is computed with.
BATCH_ROWS = 1 << 16
# About so many rows of one Parquet file make a block.
_BLOCK_ROWS = 1 << 20


class UnreadableBlockError(ValueError):
    """A block that cannot be read; the message names it."""


@dataclass(frozen=True)
class Block:
    """A file, or some row groups of a Parquet file, and how to read it.

    Attributes
    ----------
    path : str
    groups : tuple of int
        Row groups of a Parquet file; all if empty.
    columns : tuple of str
        Those that are wanted; others may be left out. All if empty.
    types : mapping
        Types of CSV columns by name.
    dialect : mapping
        `delimiter`, `decimal` and `encoding` of CSV, where they are not to be guessed.
    """

    path: str
    groups: tuple[int, ...] = ()
    columns: tuple[str, ...] = ()
    types: Mapping[str, pa.DataType] = field(default_factory=dict, hash=False)
    dialect: Mapping[str, str | None] = field(default_factory=dict, hash=False)

    @property
    def name(self) -> str:
        """For sentences."""
        part = f" (row groups {self.groups[0]} to {self.groups[-1]})" if self.groups else ""
        return f"{self.path}{part}"

    @property
    def stamp(self) -> str:
        """What changes when the file does."""
        there = Path(self.path).stat()
        return f"{self.path}|{there.st_size}|{there.st_mtime_ns}|{self.groups}|{self.columns}"

    def columns_and_rows(self) -> tuple[list[str], bool] | None:
        """Names of the columns, and whether there are rows; None if the file does not say, or is broken."""
        if not Path(self.path).is_file():
            return None  # what a pipe brings can be read once
        try:
            source = find(self.path, **self.dialect)
            if source.kind == "csv":
                return source.header, not source.is_header_alone
            if source.kind == "parquet":
                about = pq.read_metadata(self.path)
                return about.schema.to_arrow_schema().names, about.num_rows > 0
        except (OSError, ValueError, pa.ArrowException):
            pass  # whoever reads it will say so
        return None

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows, a batch at a time; what cannot be read is an `UnreadableBlockError`."""
        try:
            yield from map(_without_views, self._batches())
        except (OSError, ValueError, pa.ArrowException) as error:
            raise UnreadableBlockError(f"{self.name} cannot be read: {error}") from error

    def _batches(self) -> Iterator[pa.RecordBatch]:
        if self.groups:
            with pq.ParquetFile(self.path, pre_buffer=False) as file:
                names = [name for name in file.schema_arrow.names if name in self.columns] or None
                yield from file.iter_batches(BATCH_ROWS, row_groups=list(self.groups), columns=names)
            return
        source = find(self.path, **self.dialect)
        with open_batches(source, BATCH_ROWS, self.types, self.columns or None) as (_, batches):
            for batch in batches:
                for first in range(0, batch.num_rows, BATCH_ROWS):
                    yield batch.slice(first, BATCH_ROWS)


def find_blocks(
    where: str | Path,
    *,
    columns: Collection[str] = (),
    types: Mapping[str, pa.DataType] | None = None,
    **dialect: str | None,
) -> list[Block]:
    """The blocks of a file, or of all tables in a folder and the folders in it, in order of name."""
    path = Path(where)
    if not path.exists():
        raise ValueError(f"There is no file or folder {where}: check the name.")
    files = [path]
    if path.is_dir():
        files = sorted(p for p in path.rglob("*") if p.suffix.lower() in ENDINGS and not _hidden(p, path))
        if not files:
            raise ValueError(f"{where} holds no table: files ending in {', '.join(ENDINGS)} are looked for.")
    whole = [Block(str(file), (), tuple(columns), dict(types or {}), dialect) for file in files]
    return [part for block in whole for part in _parts(block)]


def _hidden(path: Path, folder: Path) -> bool:
    return any(part.startswith((".", "_")) for part in path.relative_to(folder).parts)


def _parts(block: Block) -> list[Block]:
    """Some row groups each of a long Parquet file; any other file is one block."""
    with Path(block.path).open("rb") as file:
        if kind_of_bytes(file.read(8)) != "parquet":
            return [block]
    try:
        with pq.ParquetFile(block.path) as table:
            sizes = [table.metadata.row_group(i).num_rows for i in range(table.num_row_groups)]
    except (OSError, pa.ArrowException):
        return [block]  # whoever reads it will say so
    parts: list[list[int]] = []
    rows = 0
    for i, size in enumerate(sizes):
        if not parts or rows + size > _BLOCK_ROWS:
            parts.append([])
            rows = 0
        parts[-1].append(i)
        rows += size
    return [replace(block, groups=tuple(part)) for part in parts] if len(parts) > 1 else [block]


def _without_views(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Texts as Arrow computes with them; Polars hands over views of them."""
    if pa.string_view() not in batch.schema.types:
        return batch
    types = (pa.large_string() if t == pa.string_view() else t for t in batch.schema.types)
    return batch.cast(pa.schema(zip(batch.schema.names, types, strict=True)))


def count_rows(blocks: Iterable[Block]) -> int | None:
    """Rows of Parquet files, which say so; None if there are others."""
    rows = 0
    for path in dict.fromkeys(block.path for block in blocks):
        try:
            rows += pq.read_metadata(path).num_rows
        except (OSError, pa.ArrowException):
            return None
    return rows


def spill(source: Any, folder: str | Path) -> list[Block]:
    """Write what can be read only once to Arrow files, so that several passes can read it.

    Parameters
    ----------
    source : RecordBatchReader, iterable of record batches, or anything with `__arrow_c_stream__`
        As DuckDB and Polars hand over.
    folder : path
        Must have room for all of it.
    """
    if hasattr(source, "__arrow_c_stream__"):
        source = pa.RecordBatchReader.from_stream(source)
    blocks: list[Block] = []
    writer: Any = None
    rows = 0
    try:
        for batch in source:
            if writer is None or rows >= _BLOCK_ROWS:
                if writer is not None:
                    writer.close()
                path = Path(folder) / f"rows-{len(blocks):06d}.arrow"
                writer, rows = ipc.new_file(str(path), batch.schema), 0
                blocks.append(Block(str(path)))
            writer.write_batch(batch)
            rows += batch.num_rows
    finally:
        if writer is not None:
            writer.close()
    if not blocks:
        raise ValueError("The stream has no rows: at least one row is needed.")
    return blocks
