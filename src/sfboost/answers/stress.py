"""What might happen to unstable features: the changes that own labelled domains are put through."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from sfboost.marginal.probabilities import FloatArray, IntArray

Stress = Callable[[FloatArray, IntArray, IntArray, np.random.Generator], FloatArray]


def _mirrored(U: FloatArray, y: IntArray, columns: IntArray, rng: np.random.Generator) -> FloatArray:
    """The opposite of what it was, in all its relations."""
    U = U.copy()
    U[:, columns] = 2.0 * U[:, columns].mean(axis=0) - U[:, columns]
    return U


def _shuffled(U: FloatArray, y: IntArray, columns: IntArray, rng: np.random.Generator) -> FloatArray:
    """Of another row: no relation to anything."""
    return _from(U, rng.permutation(len(U)), columns)


def _turned(U: FloatArray, y: IntArray, columns: IntArray, rng: np.random.Generator) -> FloatArray:
    """Class means mirrored; within a class all stays as it is."""
    U = U.copy()
    part = U[:, columns]
    for label in np.unique(y):
        U[np.ix_(y == label, columns)] -= 2.0 * (part[y == label].mean(axis=0) - part.mean(axis=0))
    return U


def _permuted(U: FloatArray, y: IntArray, columns: IntArray, rng: np.random.Generator) -> FloatArray:
    """Each class looks like another: rows have those of a row of the class that comes next in a cycle."""
    order = rng.permutation(np.unique(y))
    drawn = np.empty(len(U), dtype=np.intp)
    for label, other in zip(order, np.roll(order, 1), strict=True):
        here = np.flatnonzero(y == label)
        drawn[here] = rng.choice(np.flatnonzero(y == other), len(here))
    return _from(U, drawn, columns)


def _weakened(U: FloatArray, y: IntArray, columns: IntArray, rng: np.random.Generator) -> FloatArray:
    """Half of the rows have those of another row."""
    other = _shuffled(U, y, columns, rng)
    return np.where((rng.random(len(U)) < 0.5)[:, None], U, other)


def _rescaled(U: FloatArray, y: IntArray, columns: IntArray, rng: np.random.Generator) -> FloatArray:
    """In another unit, with another zero."""
    U = U.copy()
    U[:, columns] = 3.0 * U[:, columns] + U[:, columns].std(axis=0)
    return U


def _from(U: FloatArray, rows: IntArray, columns: IntArray) -> FloatArray:
    """U with some columns of other rows."""
    U = U.copy()
    U[:, columns] = U[np.ix_(rows, columns)]
    return U


#: Each happens to all unstable features, and to the one that says most.
STRESSES: dict[str, Stress] = {
    "mirrored": _mirrored,
    "shuffled": _shuffled,
    "class means turned": _turned,
    "weakened": _weakened,
    "rescaled": _rescaled,
    "permuted": _permuted,
}

#: Those that change the unit, the sign and the zero of features, and nothing else.
SAME_BUT_FOR_UNITS = ("mirrored", "rescaled")


def kinds_of_stress(n_classes: int) -> list[str]:
    """What can happen where there are so many classes: two that trade places are mirrored."""
    return [kind for kind in STRESSES if kind != "permuted" or n_classes > 2]


def stressed(kind: str, U: FloatArray, y: IntArray, columns: Any, rng: np.random.Generator) -> FloatArray:
    """U after something happened to some of its columns. The labels are those of own, labelled rows."""
    return STRESSES[kind](U, y, np.asarray(columns, dtype=np.intp), rng)
