"""Columns as smooth bases: what a conditional law may depend on, and in which directions it may drift.

A column enters by its normal scores z (the ranks of the pooled rows, mapped to a Gaussian): invariance of a
conditional law does not change under a monotone map, and no outlier can carry a test.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
from scipy.stats import norm, rankdata
from sklearn.preprocessing import SplineTransformer

from sfboost.marginal.probabilities import FloatArray

# A column with so few values gets one parameter per value: no smoothness is supposed.
_FEW_VALUES = 6
# With fewer the score test rejects too often: measured .32 instead of .05 at 5.5 rows per parameter.
_ROWS_PER_PARAMETER = 15
# Smallest eigenvalue of a Gram matrix, as a share of the largest, that leaves ten digits or so.
_WELL_APART = 1e-5
# Quintile-like places of a Gaussian, where splines may bend.
_KNOTS = np.array([-2.5, -1.0, 0.0, 1.0, 2.5]).reshape(-1, 1)


def normal_scores(column: FloatArray) -> FloatArray:
    """Ranks as Gaussian quantiles, scaled to mean 0 and variance 1; ties share a score.

    Examples
    --------
    >>> normal_scores(np.array([10.0, 30.0, 20.0])).round(2)
    array([-1.22,  1.22,  0.  ])
    """
    scores = norm.ppf((rankdata(column) - 0.5) / len(column))
    spread = scores.std()
    return (scores - scores.mean()) / (spread if spread > 0.0 else 1.0)


def smooth_basis(scores: FloatArray) -> FloatArray:
    """Basis of a flexible function of one column: indicators of few values, else cubic splines."""
    values = np.unique(scores)
    if len(values) <= _FEW_VALUES:
        return (scores[:, None] == values).astype(np.float64)
    splines = SplineTransformer(degree=3, knots=_KNOTS, extrapolation="linear")
    return np.asarray(splines.fit_transform(scores.reshape(-1, 1)))


def products_affordable(n_rows: int, n_columns: int, n_classes: int) -> bool:
    """Whether a set's products can be fitted and tested without breaking the test's size.

    Cubics and products as nuisance, slopes and products as drift, an intercept each.

    Examples
    --------
    >>> products_affordable(1000, 6, 2), products_affordable(1000, 12, 2)
    (True, False)
    """
    products = n_columns * (n_columns - 1) // 2
    parameters = (2 + 4 * n_columns + 2 * products) * (n_classes - 1)
    return n_rows >= _ROWS_PER_PARAMETER * parameters


def set_basis(scores: list[FloatArray], *, products: bool = True) -> FloatArray:
    """Basis of a flexible function of a set: cubic in each column (or its few values), and products."""
    parts = []
    for z in scores:
        few = len(np.unique(z)) <= _FEW_VALUES
        parts.append(smooth_basis(z) if few else np.column_stack([z, z**2, z**3]))
    return np.column_stack([*parts, *(_products(scores) if products else [])])


def drift_basis(scores: list[FloatArray], *, products: bool = True) -> FloatArray:
    """Directions of drift: slope and curvature of one column; slopes and products of several."""
    if len(scores) == 1:
        return np.column_stack([scores[0], scores[0] ** 2])
    return np.column_stack([*scores, *(_products(scores) if products else [])])


def _products(scores: list[FloatArray]) -> list[FloatArray]:
    return [a * b for a, b in combinations(scores, 2)]


def orthonormal(basis: FloatArray) -> FloatArray:
    """An orthonormal basis of the same span, times √n; collinear columns are dropped.

    By the Gram matrix, several times as fast as a singular value decomposition of so many rows; a second time
    where the first may have lost digits.
    """
    sizes = np.linalg.norm(basis, axis=0)
    part = basis[:, sizes > 0.0] / sizes[sizes > 0.0]
    for least in (1e-12, 0.0):
        values, vectors = np.linalg.eigh(part.T @ part)
        keep = values > least * values.max(initial=0.0)
        part = part @ (vectors[:, keep] / np.sqrt(values[keep]))
        if values[keep].min(initial=1.0) > _WELL_APART * values.max(initial=0.0):
            break
    return part * np.sqrt(len(basis))
