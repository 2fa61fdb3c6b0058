"""The one function of a record batch: rows → f_S and X_U → statistics, gradients, counts or predictions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from sfboost.adaptation.checks import LARGEST, SMALLEST
from sfboost.adaptation.fitting import START_ROWS
from sfboost.adaptation.problem import UNKNOWN
from sfboost.adaptation.row_sample import KeyArray, RowSketch, row_keys
from sfboost.adaptation.standardize import Standardizer
from sfboost.boosting import StableFeatureBoosting
from sfboost.boosting.parts import both_parts
from sfboost.marginal import PseudoLabelStatistics
from sfboost.marginal.probabilities import FloatArray, IntArray

#: What is made of one record batch, given the sum so far, which may spare work; results add up.
BatchFunction = Callable[[pa.RecordBatch, Any], Any]

_LARGEST_KEY = 2**64 - 1
# Rows at a time: their numbers stay in the processor's cache.
_ROWS = 8192


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
        Of the sampled rows and perhaps some more; see `RowSketch` and `fewest`.
    rows : Table
        Those rows as they were given.
    bound : int
        No row with a larger key will be sampled.
    """

    statistics: PseudoLabelStatistics
    mean: FloatArray
    spread: FloatArray
    largest: FloatArray
    all_certain: bool
    keys: KeyArray
    counts: IntArray
    rows: pa.Table
    bound: int = _LARGEST_KEY

    def __add__(self, other: Looked) -> Looked:
        n, m = self.statistics.weight, other.statistics.weight
        step = other.mean - self.mean
        both = Looked(
            self.statistics + other.statistics,
            self.mean + step * (m / (n + m)),
            self.spread + other.spread + step**2 * (n * m / (n + m)),
            np.maximum(self.largest, other.largest),
            self.all_certain and other.all_certain,
            np.concatenate([self.keys, other.keys]),
            np.concatenate([self.counts, other.counts]),
            pa.concat_tables([self.rows, other.rows], promote_options="permissive"),
            min(self.bound, other.bound),
        )
        # To sort them after every batch would take longer than the batch.
        return both.fewest() if len(both.keys) > 2 * START_ROWS else both

    def fewest(self) -> Looked:
        """The same with no more rows than are sampled, in order of key."""
        sketch = RowSketch.of(self.keys, START_ROWS, self.counts)
        bound = int(sketch.keys[-1]) if len(sketch.keys) == START_ROWS else self.bound
        rows = self.rows.combine_chunks().take(sketch.places)
        return replace(self, keys=sketch.keys, counts=sketch.counts, rows=rows, bound=bound)

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
        few = self.fewest()
        sketch = RowSketch(few.keys, few.counts, np.arange(len(few.keys)))
        return few.rows.take(sketch.draw(START_ROWS))


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
        bound = _LARGEST_KEY if so_far is None else so_far.bound
        low = np.flatnonzero(keys <= np.uint64(bound))
        mean = X.mean(axis=0)
        looked = Looked(
            PseudoLabelStatistics.from_proba(stable),
            mean,
            _squares_about(mean, X),
            np.maximum(X.max(axis=0), -X.min(axis=0)),
            bool((stable.max(axis=1) == 1.0).all()),
            keys[low],
            np.ones(len(low), dtype=np.intp),
            table if len(low) == len(keys) else table.take(low),
            bound,
        )
        return looked.fewest() if len(low) > START_ROWS else looked


def _squares_about(mean: FloatArray, X: FloatArray) -> FloatArray:
    """Σ (x − mean)² of each column; of few rows at a time, since new memory takes longer than the sum."""
    total = np.zeros_like(mean)
    for first in range(0, len(X), _ROWS):
        away = X[first : first + _ROWS] - mean
        total += np.square(away, out=away).sum(axis=0)
    return total


def add_up(batches: Iterable[pa.RecordBatch], function: BatchFunction) -> Any:
    """The sum over batches; None if there are no rows."""
    total = None
    for batch in batches:
        if batch.num_rows:
            part = function(batch, total)
            total = part if total is None else total + part
    return total
