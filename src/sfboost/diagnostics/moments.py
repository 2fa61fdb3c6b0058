"""Tests that means are zero, robust to unequal variances; control of several tests; and independence.

Of two blocks of features, continuous, discrete or mixed, given strata: each block becomes a few numbers,
indicators of the levels of a column with few of them, else the column and its square. The test is that their
covariances in every stratum are zero. For two discrete blocks it is Pearson's test of a table, stratified;
for two continuous ones it sees how the first depends on the second and on its square.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from scipy.stats import f as f_distribution

from sfboost.marginal.probabilities import FloatArray

Key = TypeVar("Key")


@dataclass(frozen=True)
class MomentTest:
    """Hotelling's T² of a mean, with its degrees of freedom and p-value."""

    statistic: float
    degrees: int
    p_value: float


def zero_mean_test(rows: FloatArray, *, lost: int = 0, doubt: FloatArray | None = None) -> MomentTest:
    """Whether the mean of `rows` (n, q) is zero, by T² = n m̄ᵀ S⁻¹ m̄ against its F law.

    Directions without variance are left out: they cannot be tested. `lost` are degrees of freedom that
    were used up in making the rows; `doubt` is a covariance of the mean that does not come from these rows.

    Examples
    --------
    >>> import numpy as np
    >>> rows = np.array([[1.0], [-1.0], [2.0], [-2.0]])
    >>> zero_mean_test(rows).p_value
    1.0
    """
    n_rows = len(rows) - lost
    if n_rows < 3 or rows.shape[1] == 0:
        return MomentTest(0.0, 0, 1.0)
    mean = rows.mean(axis=0)
    centred = rows - mean
    covariance = centred.T @ centred / n_rows
    if doubt is not None:
        covariance = covariance + n_rows * doubt
    values, vectors = np.linalg.eigh(covariance)
    kept = values > 1e-10 * max(float(values.max()), 1e-300)
    # More directions than a twentieth of the rows, and their covariance is mostly noise: keep the largest.
    most = max(1, n_rows // 20)
    kept &= np.arange(len(values)) >= len(values) - most
    degrees = int(kept.sum())
    if degrees == 0 or float(values.max()) <= 1e-24:
        return MomentTest(0.0, 0, 1.0)
    along = vectors[:, kept].T @ mean
    statistic = float(n_rows * (along**2 / values[kept]).sum())
    scaled = statistic * (n_rows - degrees) / (degrees * max(n_rows - 1, 1))
    return MomentTest(statistic, degrees, float(f_distribution.sf(scaled, degrees, n_rows - degrees)))


def row_products(left: FloatArray, right: FloatArray) -> FloatArray:
    """Every column of one block times every column of another, row by row.

    Examples
    --------
    >>> row_products(np.array([[1.0, 2.0]]), np.array([[3.0, 5.0]]))
    array([[ 3.,  5.,  6., 10.]])
    """
    return (left[:, :, None] * right[:, None, :]).reshape(len(left), -1)


def scaled(columns: FloatArray) -> FloatArray:
    """Columns divided by their standard deviation; one that does not vary stays as it is."""
    spread = columns.std(axis=0)
    return columns / np.where(spread > 0.0, spread, 1.0)


def holm(p_values: FloatArray) -> FloatArray:
    """Holm's adjusted p-values: the chance of any false alarm among them stays below the level.

    Examples
    --------
    >>> holm(np.array([0.01, 0.04, 0.03])).round(2)
    array([0.03, 0.06, 0.06])
    """
    order = np.argsort(p_values, kind="stable")
    steps = p_values[order] * (len(p_values) - np.arange(len(p_values)))
    adjusted = np.empty_like(p_values)
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return adjusted


def holm_by_name(p_values: Mapping[Key, float]) -> dict[Key, float]:
    """The same of p-values with names."""
    return dict(zip(p_values, holm(np.array([*p_values.values()])).tolist(), strict=True))


_FEW_LEVELS = 6
# In standard deviations: values nearer than this are one level.
_RESOLUTION = 0.2
_MOST_COLUMNS = 5


def basis(X: FloatArray, *, squares: bool = True) -> FloatArray:
    """Indicators of columns with at most six clearly distinct levels; the others standardised, and squares.

    More than five columns are replaced by their five first principal components.

    Examples
    --------
    >>> import numpy as np
    >>> basis(np.array([[0.0], [1.0], [1.0]]))
    array([[0.],
           [1.],
           [1.]])
    """
    if X.shape[1] > _MOST_COLUMNS:
        X = principal_components(X, _MOST_COLUMNS)
    parts = []
    for column in X.T:
        near = coarse(column)
        levels = np.unique(near)
        if len(levels) <= _FEW_LEVELS:
            parts += [(near == level).astype(np.float64) for level in levels[1:]]
            continue
        standard = (column - column.mean()) / column.std()
        parts.append(standard)
        if squares:
            # Winsorised: one wild value must not carry the whole test.
            parts.append(np.minimum(standard**2, 9.0))
    return np.column_stack(parts) if parts else np.empty((len(X), 0))


def coarse(values: FloatArray) -> FloatArray:
    """Values less than a fifth of their standard deviation apart, from the smallest on, made their mean.

    Examples
    --------
    >>> coarse(np.array([0.0, 1.0, 1.002])).round(3)
    array([0.   , 1.001, 1.001])
    """
    levels, width = np.unique(values), _RESOLUTION * float(values.std())
    starts = [0]
    while (following := int(np.searchsorted(levels, levels[starts[-1]] + width, side="right"))) < len(levels):
        starts.append(following)
    place = np.searchsorted(levels[starts], values, side="right") - 1
    return np.asarray((np.bincount(place, values) / np.bincount(place))[place])


def principal_components(X: FloatArray, n_components: int) -> FloatArray:
    """Scores of the first principal components of the standardised columns."""
    standard = scaled(X)
    standard -= standard.mean(axis=0)
    _, vectors = np.linalg.eigh(standard.T @ standard / len(standard))
    return standard @ vectors[:, ::-1][:, :n_components]


def log_contrasts(stable: FloatArray) -> FloatArray:
    """Centred logarithms of probabilities, of all classes but the first."""
    # Clipped: a certain row must not carry a whole test.
    logs = np.log(np.clip(stable, 1e-3, None))
    return (logs - logs.mean(axis=1, keepdims=True))[:, 1:]


def within(values: FloatArray, strata: npt.NDArray[Any]) -> FloatArray:
    """Values minus the mean of their stratum."""
    centred = np.array(values, dtype=np.float64)
    for stratum in np.unique(strata):
        rows = strata == stratum
        centred[rows] -= centred[rows].mean(axis=0)
    return centred


def conditional_independence(first: FloatArray, second: FloatArray, strata: npt.NDArray[Any]) -> MomentTest:
    """Test that two blocks of features are uncorrelated (in their bases) within each stratum.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 2000)
    >>> a, b = (y[:, None] + rng.normal(size=(2000, 1)) for _ in range(2))
    >>> conditional_independence(a, b, y).p_value > 0.05, conditional_independence(a, b, 0 * y).p_value < 1e-6
    (True, True)
    """
    # Squares of one block are enough: products of squares have heavy tails, and moments cost power.
    left = within(basis(first, squares=False), strata)
    right = within(basis(second), strata)
    rows = row_products(left, right)
    levels = np.unique(strata)
    # One block of moments a stratum: dependences of opposite sign must not cancel.
    rows = np.column_stack([rows * (strata == level)[:, None] for level in levels])
    return zero_mean_test(scaled(rows), lost=len(levels))
