"""The one function of a record batch: rows → f_S and X_U → statistics, gradients, counts or predictions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from sfboost.adaptation.checks import LARGEST, SMALLEST
from sfboost.adaptation.fitting import START_ROWS
from sfboost.adaptation.problem import UNKNOWN
from sfboost.adaptation.row_sample import IntArray, KeyArray, RowSketch, row_keys
from sfboost.adaptation.standardize import Standardizer
from sfboost.boosting import StableFeatureBoosting
from sfboost.boosting.parts import both_parts
from sfboost.marginal import PseudoLabelStatistics
from sfboost.marginal.probabilities import FloatArray

#: What is made of one record batch, given the sum so far, which may spare work; results add up.
BatchFunction = Callable[[pa.RecordBatch, Any], Any]


@dataclass(frozen=True, eq=False)
class SumOver:
    """A function of (stable, X) as one of a record batch."""

    model: StableFeatureBoosting
    function: Callable[[FloatArray, FloatArray], Any]

    def __call__(self, batch: pa.RecordBatch, so_far: Any = None) -> Any:
        """Of one batch."""
        return self.function(*both_parts(self.model, pa.Table.from_batches([batch])))


@dataclass(frozen=True, eq=False)
class Looked:
    """What the first pass keeps of rows; two add up.

    Attributes
    ----------
    statistics : PseudoLabelStatistics
    mean, spread : arrays of shape (d,)
        Of the unstable features: mean, and sum of squares about it.
    largest : array of shape (d,)
    all_certain : bool
    keys, counts : arrays
        Of the sampled rows; see `RowSketch`.
    rows : Table
        The sampled rows as they were given.
    """

    statistics: PseudoLabelStatistics
    mean: FloatArray
    spread: FloatArray
    largest: FloatArray
    all_certain: bool
    keys: KeyArray
    counts: IntArray
    rows: pa.Table

    def __add__(self, other: Looked) -> Looked:
        n, m = self.statistics.weight, other.statistics.weight
        step = other.mean - self.mean
        sketch = RowSketch.of(
            np.concatenate([self.keys, other.keys]),
            START_ROWS,
            np.concatenate([self.counts, other.counts]),
        )
        both = pa.concat_tables([self.rows, other.rows], promote_options="permissive")
        return Looked(
            self.statistics + other.statistics,
            self.mean + step * (m / (n + m)),
            self.spread + other.spread + step**2 * (n * m / (n + m)),
            np.maximum(self.largest, other.largest),
            self.all_certain and other.all_certain,
            sketch.keys,
            sketch.counts,
            both.take(sketch.places).combine_chunks(),
        )

    @property
    def standardizer(self) -> Standardizer:
        """As `Standardizer.fit` of all rows."""
        strange = (self.largest > LARGEST) | ((self.largest > 0.0) & (self.largest < SMALLEST))
        if strange.any():
            raise ValueError(
                f"X_unstable has columns whose numbers are beyond {LARGEST:g} or all below {SMALLEST:g}: "
                "express them in another unit."
            )
        variance = self.spread / self.statistics.weight
        constant = variance <= (1e-12 * self.mean) ** 2
        return Standardizer(self.mean, np.where(constant, 1.0, np.sqrt(variance)))

    @property
    def drawn(self) -> pa.Table:
        """The sample with its copies, in order of key."""
        sketch = RowSketch(self.keys, self.counts, np.arange(len(self.keys)))
        return self.rows.take(sketch.draw(START_ROWS))


@dataclass(frozen=True, eq=False)
class Look:
    """The first pass: statistics of f_S and X_U, and the rows with the lowest keys."""

    model: StableFeatureBoosting

    def __call__(self, batch: pa.RecordBatch, so_far: Looked | None = None) -> Looked:
        """Of one batch; only rows that would be kept beside those so far are."""
        table = pa.Table.from_batches([batch])
        stable, X = both_parts(self.model, table)
        known, weight = np.full(len(X), UNKNOWN, dtype=np.intp), np.ones(len(X))
        keys = row_keys(stable, X, known, weight)
        low = np.arange(len(keys))
        if so_far is not None and len(so_far.keys) == START_ROWS:
            low = np.flatnonzero(keys <= so_far.keys[-1])
        sketch = RowSketch.of(keys[low], START_ROWS)
        mean = X.mean(axis=0)
        return Looked(
            PseudoLabelStatistics.from_proba(stable),
            mean,
            ((X - mean) ** 2).sum(axis=0),
            np.abs(X).max(axis=0),
            bool((stable.max(axis=1) == 1.0).all()),
            sketch.keys,
            sketch.counts,
            table.take(low[sketch.places]),
        )


def add_up(batches: Iterable[pa.RecordBatch], function: BatchFunction) -> Any:
    """The sum over batches; None if there are no rows."""
    total = None
    for batch in batches:
        if batch.num_rows:
            part = function(batch, total)
            total = part if total is None else total + part
    return total
