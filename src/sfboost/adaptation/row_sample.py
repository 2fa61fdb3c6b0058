"""Some rows of a table, the same ones whatever their order: those with the lowest hashes."""

from __future__ import annotations

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


def draw_rows(keys: KeyArray, most: int, seed: int = 0) -> IntArray:
    """Places of at most `most` rows: those of the lowest keys, copies of a row as often as they occur.

    If these are more rows than that, some of them at random.

    Examples
    --------
    >>> draw_rows(np.array([7, 3, 9, 3], dtype=np.uint64), 4).tolist()
    [1, 1, 0, 2]
    """
    asked = most
    while True:
        all_rows = 2 * asked >= len(keys)
        # Few are sorted; of copies there may be more.
        low = np.arange(len(keys)) if all_rows else np.flatnonzero(keys <= np.partition(keys, asked)[asked])
        unique, places, counts = np.unique(keys[low], return_index=True, return_counts=True)
        if len(unique) >= most or all_rows:
            break
        asked *= 4
    places, counts = low[places[:most]], counts[:most]
    n_rows = int(counts.sum())
    if n_rows <= most:
        return np.repeat(places, counts)
    drawn = np.sort(np.random.default_rng((seed, 1)).choice(n_rows, most, replace=False))
    return places[np.searchsorted(np.cumsum(counts), drawn, side="right")]
