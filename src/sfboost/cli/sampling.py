"""A training table that does not fit into memory: a sample of the rows of each domain, in one pass."""

from __future__ import annotations

from collections.abc import Iterator
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
from sfboost.cli.options import CsvOptions
from sfboost.encoding.cells import as_text
from sfboost.notices import left_out
from sfboost.streaming import find_blocks
from sfboost.streaming.blocks import BATCH_ROWS
from sfboost.tables.reading import PIPE, Source, open_batches
from sfboost.tables.roles import require_columns

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
        self._limits: dict[str, np.uint64] = {}

    def add(self, batch: pa.RecordBatch) -> None:
        """Look at some more rows."""
        self.n_rows += batch.num_rows
        known = pc.is_valid(as_text(batch.column(self.domain), self.domain))
        batch = batch.filter(known)
        self.n_nowhere += len(known) - batch.num_rows
        if not batch.num_rows:
            return
        keys = _keys(batch)
        names = as_text(batch.column(self.domain), self.domain).dictionary_encode()
        codes = names.indices.to_numpy(zero_copy_only=False)
        highest = np.uint64(2**64 - 1)
        limits = [self._limits.get(name, highest) for name in names.dictionary.to_pylist()]
        low = keys <= np.array(limits, dtype=np.uint64)[codes]
        self._parts.append(pa.Table.from_batches([batch]).filter(pa.array(low)))
        self._keys.append(keys[low])
        self._gathered += int(low.sum())
        if self._gathered > _GATHERED:
            self.table()
            self._gathered = 0

    def table(self) -> pa.Table:
        """The sample so far, in an order that its rows decide."""
        table = pa.concat_tables(self._parts, promote_options="permissive")
        keys = np.concatenate(self._keys)
        names = np.array(as_text(table.column(self.domain), self.domain).to_pylist(), dtype=object)
        order = np.lexsort((keys, names))
        first = np.flatnonzero(np.append(True, names[order][1:] != names[order][:-1]))
        rank = np.arange(len(order)) - np.repeat(first, np.diff(np.append(first, len(order))))
        kept = order[rank < self.most]
        for last in order[rank == self.most - 1].tolist():
            self._limits[names[last]] = keys[last]
        table = table.take(pa.array(kept))
        self._parts, self._keys = [table], [keys[kept]]
        return table


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
