"""How wrong f_S is at each height of it, by the labels of the training domains, and how well that is known.

A temperature does not make a tree or a forest calibrated, and few rows do not make anything so. A test in the
new domain that takes f_S at its word sees that error and calls it dependence. Here Pr[Y | f_S] is the mean
label in cells of f_S; the error of those means, and how much the domains differ in them, goes into the test.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from sfboost.diagnostics.rows import domain_numbers
from sfboost.marginal.probabilities import FloatArray, IntArray

_CELLS_PER_CLASS, _MOST_CELLS = 16, 64
_FEWEST_ROWS = 50


@dataclass(frozen=True, eq=False)
class Recalibration:
    """Mean of Y − f_S in cells of f_S, over held-out rows of labelled domains.

    The cells halve the rows again and again, along the class whose probability varies most.

    Attributes
    ----------
    columns, thresholds : arrays of shape (cells − 1,)
        The halvings, as a complete binary tree by levels; beyond the threshold is right.
    shift : array of shape (cells, K)
        Mean of Y − f_S.
    covariance : array of shape (cells, K, K)
        Of the shift that a new domain will have: sampling, and differences between the domains.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.uniform(0.2, 0.8, 4000)
    >>> y, claimed = (rng.random(4000) < truth).astype(int), np.clip(2 * truth - 0.5, 0.01, 0.99)
    >>> found = Recalibration.fit(np.column_stack([1 - claimed, claimed]), y, np.zeros(4000))
    >>> found.apply(np.array([[0.9, 0.1], [0.1, 0.9]]))[:, 1].round(1)
    array([0.3, 0.7])
    """

    columns: IntArray
    thresholds: FloatArray
    shift: FloatArray
    covariance: FloatArray

    @classmethod
    def fit(
        cls, stable: FloatArray, y: IntArray, domain: npt.NDArray[Any], weight: FloatArray | None = None
    ) -> Self:
        """Measure the shift on held-out rows; `y` holds class positions."""
        weight = np.ones(len(y)) if weight is None else weight
        columns, thresholds = _halve(stable)
        cell = _cell_of(stable, columns, thresholds)
        names = domain_numbers(domain)[1]
        n_cells, n_classes = len(columns) + 1, stable.shape[1]
        miss = np.eye(n_classes)[y] - stable
        place = names * n_cells + cell
        by_domain = _Means.of(place, weight, miss, (names.max() + 1) * n_cells)
        overall = _Means.of(cell, weight, miss, n_cells)
        labels = _Means.of(cell, weight, np.eye(n_classes)[y], n_cells).mean
        # One row of f_S beside the labels: a cell without a positive is not certain to have none.
        claimed = _Means.of(cell, weight, stable, n_cells).mean
        rows = np.maximum(overall.n_rows, 1.0)[:, None]
        share = (labels * rows + claimed) / (rows + 1.0)
        spread = share[:, :, None] * (np.eye(n_classes) - share[:, None, :])
        means = by_domain.mean.reshape(-1, n_cells, n_classes)
        between, reach = _between(means, by_domain.n_rows.reshape(-1, n_cells), spread)
        covariance = spread / rows[:, :, None] + reach[:, None, None] * np.diag(between)
        return cls(columns, thresholds, overall.mean, covariance)

    def cell_of(self, stable: FloatArray) -> IntArray:
        """The cell of each row."""
        return _cell_of(stable, self.columns, self.thresholds)

    def apply(self, stable: FloatArray) -> FloatArray:
        """Pr[Y | f_S] of each row, as far as the labels tell it; rows sum to one."""
        return stable + self.shift[self.cell_of(stable)]


@dataclass(frozen=True, eq=False)
class _Means:
    mean: FloatArray
    n_rows: FloatArray

    @classmethod
    def of(cls, place: IntArray, weight: FloatArray, values: FloatArray, n_places: int) -> Self:
        """Weighted mean of each place (zero where there is no row) and the rows it is worth (Kish)."""
        total, square = (np.bincount(place, w, n_places) for w in (weight, weight**2))
        safe = np.where(total > 0.0, total, 1.0)
        sums = np.column_stack([np.bincount(place, weight * column, n_places) for column in values.T])
        return cls(sums / safe[:, None], total**2 / np.where(square > 0.0, square, 1.0))


def _between(means: FloatArray, n_rows: FloatArray, spread: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Variance between domains of each class's shift, and how often it counts in a new domain's shift.

    By moments, over all cells together: a cell with rows of two domains says something of it.
    """
    share = n_rows / np.maximum(n_rows.sum(axis=0), 1.0)
    centre = (share[:, :, None] * means).sum(axis=0)
    own = np.diagonal(spread, axis1=1, axis2=2)[None] / np.maximum(n_rows, 1.0)[:, :, None]
    left = (share * (1.0 - share))[:, :, None]
    found = (share[:, :, None] * (means - centre) ** 2 - left * own).sum(axis=(0, 1))
    freedom = float((share * (1.0 - share)).sum())
    concentration = (share**2).sum(axis=0)
    variance = np.maximum(found, 0.0) / freedom if freedom > 0.0 else np.zeros(means.shape[2])
    return variance, 1.0 + concentration


def _halve(stable: FloatArray) -> tuple[IntArray, FloatArray]:
    """Columns and thresholds of the halvings; a part that cannot be halved goes left as a whole."""
    most = min(_CELLS_PER_CLASS * (stable.shape[1] - 1), _MOST_CELLS, max(len(stable) // _FEWEST_ROWS, 1))
    depth = int(np.log2(most))
    columns, thresholds = np.zeros(2**depth - 1, dtype=np.intp), np.full(2**depth - 1, np.inf)
    node = np.zeros(len(stable), dtype=np.intp)
    for level in range(depth):
        first = 2**level - 1
        for place in range(first, 2 * first + 1):
            rows = stable[node == place]
            if len(rows):
                columns[place] = int(rows.std(axis=0).argmax())
                thresholds[place] = _middle(rows[:, columns[place]])
        node = 2 * node + 1 + (stable[np.arange(len(stable)), columns[node]] > thresholds[node])
    return columns, thresholds


def _middle(values: FloatArray) -> float:
    """The value after which about half of them are larger; infinity if all are equal."""
    ordered = np.sort(values)
    steps = np.flatnonzero(ordered[1:] > ordered[:-1])
    if not len(steps):
        return float("inf")
    return float(ordered[steps[np.abs(steps + 1 - len(ordered) / 2).argmin()]])


def _cell_of(stable: FloatArray, columns: IntArray, thresholds: FloatArray) -> IntArray:
    node, rows = np.zeros(len(stable), dtype=np.intp), np.arange(len(stable))
    for _ in range(int(np.log2(len(columns) + 1))):
        node = 2 * node + 1 + (stable[rows, columns[node]] > thresholds[node])
    return node - len(columns)
