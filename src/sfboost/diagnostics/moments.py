"""Tests that a vector of means is zero, robust to unequal variances, and control of several of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
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
