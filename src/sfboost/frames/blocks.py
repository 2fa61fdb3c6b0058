"""Tables of any length: a sample of the rows decides, all rows are predicted block by block.

`find_blocks` cuts a file or a folder into blocks, `sample_rows` draws rows in one pass over them, and
`over_blocks` applies a function to each block: in this process, or as tasks of Ray Data, which sees to ranks,
lost workers and spilling. Memory does not grow with the table.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.ipc as ipc
import pyarrow.parquet as pq

from sfboost.frames.cells import as_text
from sfboost.frames.reading import ENDINGS, PIPE, find, kind_of_bytes, open_batches
from sfboost.frames.roles import require_columns

#: Rows that are adapted to, of a table that has more.
SAMPLE_ROWS = 50_000
#: Rows of a record batch that is computed with.
BATCH_ROWS = 1 << 16
#: Who may work on blocks.
ENGINES = ("here", "ray")
# About so many rows of one Parquet file make a block.
_BLOCK_ROWS = 1 << 20
# Rows that are gathered before those with high hashes are let go.
_GATHERED = 1 << 18
# Columns of a sample beside those of the table, and the note that a part of it travels with.
_KEY, _COUNT, _NOTE = "sfboost key", "sfboost count", b"sfboost note"

KeyArray = npt.NDArray[np.uint64]


class UnreadableBlockError(ValueError):
    """A block that cannot be read; the message names it."""


class Readable(Protocol):
    """Rows that are read a batch at a time."""

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows."""


#: What is made of the rows of a block.
Work = Callable[[Iterator[pa.RecordBatch]], Iterable[pa.RecordBatch]]


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
    needed : tuple of str
        Those that must be there.
    types : mapping
        Types of CSV columns by name.
    as_text : bool
        Whether all CSV columns are read as text: what a block holds says little of the others.
    dialect : mapping
        `delimiter`, `decimal` and `encoding` of CSV, where they are not to be guessed.
    """

    path: str
    groups: tuple[int, ...] = ()
    columns: tuple[str, ...] = ()
    needed: tuple[str, ...] = ()
    types: Mapping[str, pa.DataType] = field(default_factory=dict, hash=False)
    as_text: bool = False
    dialect: Mapping[str, str | None] = field(default_factory=dict, hash=False)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows; what cannot be read is an `UnreadableBlockError`."""
        for batch in self._batches():
            require_columns(batch.schema.names, self.needed, Path(self.path).name)
            yield batch

    def _batches(self) -> Iterator[pa.RecordBatch]:
        try:
            source = find(self.path, **self.dialect)
            types = dict.fromkeys(source.header, pa.string()) if self.as_text else self.types
            columns = self.columns or None
            with open_batches(source, BATCH_ROWS, types, columns, self.groups) as batches:
                for batch in batches:
                    yield from _pieces(batch)
        except (OSError, ValueError, pa.ArrowException) as error:
            raise UnreadableBlockError(str(error)) from error


def _pieces(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    return (batch.slice(first, BATCH_ROWS) for first in range(0, batch.num_rows, BATCH_ROWS))


@dataclass(frozen=True, eq=False)
class ArrowStream:
    """Rows that another library hands over, and that are read once."""

    source: Any

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows, with texts as Arrow computes with them: Polars hands over views of them."""
        for batch in pa.RecordBatchReader.from_stream(self.source):
            types = [pa.large_string() if t == pa.string_view() else t for t in batch.schema.types]
            yield from _pieces(batch.cast(pa.schema(zip(batch.schema.names, types, strict=True))))


def find_blocks(
    where: str | Path,
    *,
    columns: Collection[str] = (),
    needed: Collection[str] = (),
    types: Mapping[str, pa.DataType] | None = None,
    as_text: bool = False,
    **dialect: str | None,
) -> list[Block]:
    """The blocks of a file, or of all tables in a folder and the folders in it, in order of name."""
    path = Path(where)
    if str(where) != PIPE and not path.exists():
        raise ValueError(f"There is no file or folder {where}: check the name.")
    files = [path]
    if path.is_dir():
        files = sorted(p for p in path.rglob("*") if p.suffix.lower() in ENDINGS and not _hidden(p, path))
        if not files:
            raise ValueError(f"{where} holds no table: files ending in {', '.join(ENDINGS)} are looked for.")
    how = (tuple(columns), tuple(needed), dict(types or {}), as_text, dialect)
    return [part for file in files for part in _parts(Block(str(file), (), *how))]


def _hidden(path: Path, folder: Path) -> bool:
    return any(part.startswith((".", "_")) for part in path.relative_to(folder).parts)


def _parts(block: Block) -> list[Block]:
    """Some row groups each of a long Parquet file; any other file is one block."""
    if not Path(block.path).is_file():
        return [block]
    with Path(block.path).open("rb") as file:
        if kind_of_bytes(file.read(8)) != "parquet":
            return [block]
    try:
        about = pq.read_metadata(block.path)
    except (OSError, pa.ArrowException):
        return [block]  # whoever reads it will say so
    ends = np.cumsum([about.row_group(i).num_rows for i in range(about.num_row_groups)])
    numbers = (ends - 1) // _BLOCK_ROWS
    parts = [tuple(np.flatnonzero(numbers == number).tolist()) for number in np.unique(numbers)]
    return [replace(block, groups=part) for part in parts] if len(parts) > 1 else [block]


def as_blocks(source: Any) -> Sequence[Readable]:
    """Blocks of a path, of what Arrow's streams are read from, or blocks as they are."""
    if isinstance(source, str | Path):
        return find_blocks(source)
    return [ArrowStream(source)] if hasattr(source, "__arrow_c_stream__") else list(source)


# -- who works -------------------------------------------------------------------------------------


def over_blocks(
    work: Work, source: Any, *, engine: str = "here", skipped: list[str] | None = None
) -> Iterator[pa.RecordBatch]:
    """What a function makes of the rows of each block, in order.

    Parameters
    ----------
    work : callable
        Takes the batches of a block, gives batches. Ray sends it to its workers.
    source : path, list of Block, or Arrow stream
        A file (CSV, Parquet, Arrow), a folder of them, the blocks of `find_blocks`; or anything with
        `__arrow_c_stream__` (DuckDB, Polars, a `RecordBatchReader`), which is read here.
    engine : {"here", "ray"}
        Ray Data joins the cluster that RAY_ADDRESS names, or starts on this machine; its workers must see the
        files.
    skipped : list, optional
        Takes a sentence for each block that cannot be read (to its end), in place of an error that names it.
    """
    if engine not in ENGINES:
        raise ValueError(f"There is no engine {engine!r}: use one of {', '.join(ENGINES)}.")
    blocks = as_blocks(source)
    results = _by_ray(work, blocks) if engine == "ray" else (r for b in blocks for r in _attempt(work, b))
    for result in results:
        if not isinstance(result, str):
            yield result
        elif skipped is not None:
            skipped.append(result)
        else:
            hint = " Mend or remove that file, or say --skip-unreadable to go on without it."
            raise ValueError(result + hint * (len(blocks) > 1))


def _attempt(work: Work, block: Readable) -> Iterator[pa.RecordBatch | str]:
    """What is made of a block, and at the end the sentence why it cannot be read, if it cannot."""
    try:
        yield from work(block.batches())
    except UnreadableBlockError as error:
        yield str(error)


def _by_ray(work: Work, blocks: Sequence[Readable]) -> Iterator[pa.RecordBatch | str]:
    try:
        import ray
    except ImportError as error:
        raise ImportError("The ray engine needs Ray. Install it with: pip install 'sfboost[ray]'.") from error
    if not ray.is_initialized():
        # Unless a cluster is named we start our own, whatever another one has left on this machine.
        where = os.environ.get("RAY_ADDRESS", "local")
        quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
        ray.init(address=where, include_dashboard=False, **quiet)
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    context.execution_options.preserve_order = True
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    shared = ray.put((list(blocks), work))

    def one(numbers: Any) -> Iterator[Any]:
        every, function = ray.get(shared)
        try:
            for result in _attempt(function, every[int(numbers["id"][0])]):
                yield _as_row("unreadable" if isinstance(result, str) else "rows", result)
        except ValueError as error:  # a sentence, not the traceback of a worker
            yield _as_row("refused", str(error))

    data = ray.data.range(len(blocks), override_num_blocks=len(blocks)).map_batches(one, batch_size=1)
    for row in data.iter_rows():
        if row["kind"] == "refused":
            raise ValueError(row["result"].decode())
        if row["kind"] == "unreadable":
            yield row["result"].decode()
        else:
            yield from ipc.open_stream(row["result"])


def _as_row(kind: str, result: pa.RecordBatch | str) -> pa.Table:
    """Batches of any schema, and sentences, as rows of one schema."""
    if isinstance(result, str):
        data = result.encode()
    else:
        sink = pa.BufferOutputStream()
        with ipc.new_stream(sink, result.schema) as writer:
            writer.write_batch(result)
        data = sink.getvalue().to_pybytes()
    return pa.table({"kind": [kind], "result": pa.array([data], pa.binary())})


# -- the sample ------------------------------------------------------------------------------------


def sample_rows(
    source: Any,
    most: int = SAMPLE_ROWS,
    *,
    by: str | None = None,
    engine: str = "here",
    skipped: list[str] | None = None,
) -> RowSample:
    """At most so many rows of a table (or of each value of the column `by`), in one pass.

    They are those with the lowest hash of all that is in them, with their copies: the same ones whatever the
    order of the rows, the blocks and the engine. `source`, `engine` and `skipped` are as in `over_blocks`.

    Examples
    --------
    >>> table = pa.table({"age": np.arange(1000.0)})
    >>> mixed = table.take(np.random.default_rng(0).permutation(1000))
    >>> sample = sample_rows(table, 10)
    >>> sample.n_rows, sample.table.equals(sample_rows(mixed, 10).table)
    (1000, True)
    """
    sample = RowSample(most, by)

    def part(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        # What is known so far spares work here; a worker elsewhere begins anew.
        some = sample if engine == "here" else RowSample(most, by)
        for batch in batches:
            some.add(batch)
        if some is not sample:
            yield from some.packed()

    for packed in over_blocks(part, source, engine=engine, skipped=skipped):
        sample.merge(packed)
    if not sample.n_rows:
        raise ValueError("There are no rows in the table: at least one row is needed.")
    return sample


class RowSample:
    """The rows with the lowest hashes, each once with the number of its copies; see `sample_rows`.

    Attributes
    ----------
    n_rows : int
        That were looked at.
    n_nowhere : int
        Those of them that lack their `by`.
    """

    def __init__(self, most: int, by: str | None = None) -> None:
        self.most, self.by = most, by
        self.n_rows = self.n_nowhere = self._gathered = 0
        # By value of `by`: rows, and the hash that all rows to be kept are below.
        self._parts: dict[str, list[pa.Table]] = {}
        self._bounds: dict[str, Any] = {}

    def add(self, batch: pa.RecordBatch) -> None:
        """Look at some more rows."""
        self.n_rows += batch.num_rows
        rows = pa.Table.from_batches([batch]).append_column(_KEY, pa.array(row_keys(batch)))
        rows = rows.append_column(_COUNT, pa.array(np.ones(batch.num_rows, dtype=np.int64)))
        if self.by is None:
            self._gather("", rows)
            return
        texts = as_text(batch.column(self.by), self.by)
        self.n_nowhere += texts.null_count
        for name in texts.unique().drop_null().to_pylist():
            self._gather(name, rows.filter(pc.equal(texts, name)))

    def packed(self) -> Iterator[pa.RecordBatch]:
        """The sample so far as batches that travel: `merge` takes them."""
        note = f"{self.n_rows} {self.n_nowhere}"
        yield pa.RecordBatch.from_arrays([], schema=pa.schema([], metadata={_NOTE: note}))
        for name in self._parts:
            table = self._lowest(name)
            columns = [column.combine_chunks() for column in table.columns]
            yield pa.RecordBatch.from_arrays(columns, schema=table.schema.with_metadata({_NOTE: name}))

    def merge(self, packed: pa.RecordBatch) -> None:
        """Take the sample of other rows."""
        note = packed.schema.metadata[_NOTE].decode()
        if packed.num_columns:
            self._gather(note, pa.Table.from_batches([packed]).replace_schema_metadata())
        else:
            n_rows, n_nowhere = map(int, note.split())
            self.n_rows, self.n_nowhere = self.n_rows + n_rows, self.n_nowhere + n_nowhere

    @property
    def table(self) -> pa.Table:
        """The sampled rows with their copies, in an order that their content decides."""
        rng, taken = np.random.default_rng(0), []
        for name in sorted(self._parts):
            rows = self._lowest(name)
            places = np.repeat(np.arange(rows.num_rows), rows[_COUNT].to_numpy())
            if len(places) > self.most:
                places = np.sort(rng.choice(places, self.most, replace=False))
            taken.append(rows.drop_columns([_KEY, _COUNT]).take(pa.array(places)))
        return _joined(taken)

    def _gather(self, name: str, rows: pa.Table) -> None:
        if name in self._bounds:
            rows = rows.filter(pc.less_equal(rows[_KEY], self._bounds[name]))
        self._parts.setdefault(name, []).append(rows)
        self._gathered += rows.num_rows
        if self._gathered > _GATHERED:
            for each in self._parts:
                self._lowest(each)
            self._gathered = 0

    def _lowest(self, name: str) -> pa.Table:
        """Let go of all rows but those of the lowest hashes, and keep these once, in order of hash."""
        rows = _joined(self._parts[name])
        _, first, copy_of = np.unique(rows[_KEY].to_numpy(), return_index=True, return_inverse=True)
        counts = np.bincount(copy_of, rows[_COUNT].to_numpy(), len(first)).astype(np.int64)
        rows = rows.take(pa.array(first[: self.most]))
        rows = rows.set_column(rows.num_columns - 1, _COUNT, pa.array(counts[: self.most]))
        if rows.num_rows == self.most:
            self._bounds[name] = rows[_KEY][-1]
        self._parts[name] = [rows]
        return rows


def _joined(tables: list[pa.Table]) -> pa.Table:
    try:
        return pa.concat_tables(tables, promote_options="permissive").combine_chunks()
    except pa.ArrowException as error:
        raise ValueError(f"The files of the table hold columns of different types: {error}") from error


def row_keys(batch: pa.RecordBatch) -> KeyArray:
    """A hash of the cells of each row; a whole number is hashed as any other one, a category as its text.

    Examples
    --------
    >>> keys = row_keys(pa.RecordBatch.from_pydict({"age": [40, 50], "town": ["a", None]}))
    >>> bool(keys[1] == row_keys(pa.RecordBatch.from_pydict({"age": [50.0], "town": [None]}))[0])
    True
    """
    keys = np.zeros(batch.num_rows, dtype=np.uint64)
    names = sorted(batch.schema.names)
    factors = np.random.default_rng(0).integers(1, 2**63, len(names), dtype=np.uint64) | np.uint64(1)
    for name, factor in zip(names, factors, strict=True):
        keys += _hashes(batch.column(name)) * factor
    # Every bit spread over all (the finaliser of SplitMix64).
    for shift, factor in ((30, np.uint64(0xBF58476D1CE4E5B9)), (27, np.uint64(0x94D049BB133111EB))):
        keys = (keys ^ (keys >> np.uint64(shift))) * factor
    return np.asarray(keys ^ (keys >> np.uint64(31)))


def _hashes(column: Any) -> KeyArray:
    kind = column.type
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind):
        numbers = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        bits = (numbers + 0.0).view(np.uint64)  # 0 and -0 are one number
        bits ^= bits >> np.uint64(32)  # whole numbers fill the upper half alone
        return np.asarray(bits)
    if not pa.types.is_dictionary(kind) and not pa.types.is_string(kind):
        column = pa.array([None if cell is None else str(cell) for cell in column.to_pylist()], pa.string())
    cells = column if pa.types.is_dictionary(kind) else column.dictionary_encode()
    texts = [*map(str, cells.dictionary.to_pylist()), "\0 missing"]
    places = pc.fill_null(cells.indices.cast(pa.int64()), len(texts) - 1)
    return np.asarray(pd.util.hash_array(np.array(texts, dtype=object))[places.to_numpy()])
