"""Conditional independence of two blocks of features given strata: continuous, discrete or mixed.

Each block becomes a few numbers: indicators of the levels of a column with few of them, else the column and
its square. The test is that their covariances in every stratum are zero, robust to unequal variances. For two
discrete blocks it is Pearson's test of a table, stratified; for two continuous ones it sees how the first
depends on the second and on its square.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from sfboost.diagnostics.moments import MomentTest, row_products, scaled, zero_mean_test
from sfboost.marginal.probabilities import FloatArray

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
