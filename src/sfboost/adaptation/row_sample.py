"""Some rows of a table, the same ones whatever their order and wherever they lie: chosen by a hash of a row.

A sketch keeps the rows with the lowest hashes and how often each occurs. The sketch of two tables together is
made of their sketches, so a table of any length needs one pass, constant memory, and no order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from sfboost.marginal.probabilities import FloatArray, IntArray

KeyArray = npt.NDArray[np.uint64]

# f_S of the same row may differ in its last bits between batches; an odd grid has no common value on an edge.
_STEPS, _SHIFT = 1_482_910.37, 0.3
# Numbers whose bits are looked at together: they stay in the processor's cache.
_BLOCK = 2**16


def row_keys(stable: FloatArray, X: Any, known: IntArray, weight: FloatArray) -> KeyArray:
    """A hash of all that is known of each row; X raw, dense or sparse.

    Examples
    --------
    >>> f, X = np.array([[0.2, 0.8], [0.5, 0.5]]), np.array([[1.0], [2.0]])
    >>> keys = row_keys(f, X, np.array([-1, -1]), np.ones(2))
    >>> bool(keys[1] == row_keys(f[1:], X[1:], np.array([-1]), np.ones(1))[0])
    True
    """
    multipliers = np.random.default_rng(0).integers(1, 2**63, X.shape[1] + 1, dtype=np.uint64) | np.uint64(1)
    if sparse.issparse(X):
        rows = X.tocoo()
        keys = np.zeros(X.shape[0], dtype=np.uint64)
        np.add.at(keys, rows.row, _bits(rows.data) * multipliers[rows.col])
    else:
        size = max(1, _BLOCK // max(X.shape[1], 1))
        # Columns lie together in memory, as tables have them: they are multiplied as they lie.
        across = X.flags.f_contiguous
        blocks = (X[first : first + size] for first in range(0, len(X), size))
        factors = multipliers[:-1]
        keys = np.concatenate([factors @ _bits(b.T) if across else _bits(b) @ factors for b in blocks])
    coarse = np.floor(stable[:, 1:] * _STEPS + _SHIFT)
    content = np.column_stack([coarse, known, weight])
    ours = np.random.default_rng(1).integers(1, 2**63, content.shape[1], dtype=np.uint64) | np.uint64(1)
    return _mixed(_mixed(keys) + _bits(content) @ ours)


def _bits(values: Any) -> KeyArray:
    """The bits of numbers; 0 and -0 have the same. Whole numbers fill the upper half alone: it is folded."""
    bits = (np.ascontiguousarray(values, dtype=np.float64) + 0.0).view(np.uint64)
    return np.asarray(bits ^ (bits >> np.uint64(32)))


def _mixed(keys: KeyArray) -> KeyArray:
    """Every bit of a key spread over all (the finaliser of SplitMix64)."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        keys = (keys ^ (keys >> np.uint64(shift))) * np.uint64(factor)
    return np.asarray(keys ^ (keys >> np.uint64(31)))


@dataclass(frozen=True, eq=False)
class RowSketch:
    """The rows with the lowest keys, in order of key, each with the number of its copies.

    Attributes
    ----------
    keys : array of shape (m,)
    counts : integer array of shape (m,)
    places : integer array of shape (m,)
        Where one copy of each lies.
    """

    keys: KeyArray
    counts: IntArray
    places: IntArray

    @classmethod
    def of(cls, keys: KeyArray, most: int, counts: IntArray | None = None) -> RowSketch:
        """The `most` lowest keys that differ."""
        low, asked = np.arange(len(keys)), most
        while True:
            if 2 * asked < len(keys):  # few are sorted; of copies there may be more
                low = np.flatnonzero(keys <= np.partition(keys, asked)[asked])
            unique, places, inverse = np.unique(keys[low], return_index=True, return_inverse=True)
            if len(unique) >= most or len(low) == len(keys):
                break
            low, asked = np.arange(len(keys)), 4 * asked
        total = np.bincount(inverse.reshape(-1), None if counts is None else counts[low]).astype(np.intp)
        return cls(unique[:most], total[:most], low[places[:most]])

    def draw(self, most: int, seed: int = 0) -> IntArray:
        """Places of at most `most` rows, copies among them as often as they are drawn.

        All copies of the lowest keys, or, if these are more rows, some of them at random.
        """
        counts, places = self.counts[:most], self.places[:most]
        n_rows = int(counts.sum())
        if n_rows <= most:
            return np.repeat(places, counts)
        drawn = np.sort(np.random.default_rng((seed, 1)).choice(n_rows, most, replace=False))
        return places[np.searchsorted(np.cumsum(counts), drawn, side="right")]
