"""Centre and scale the unstable features with the new domain's own statistics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from sfboost.marginal.probabilities import FloatArray


@dataclass(frozen=True, eq=False)
class Standardizer:
    """Weighted mean and standard deviation of each column; sparse rows are scaled only.

    The new domain's own statistics are used because the meaning, and often the unit, of an unstable
    feature is the new domain's: another camera is darker, another laboratory reports other units. The
    head is fitted there from scratch, so nothing is lost, and one L2 strength fits every column.
    """

    mean: FloatArray
    scale: FloatArray

    @classmethod
    def fit(cls, X: Any, weight: FloatArray) -> Standardizer:
        """Statistics of the columns of X; a constant column keeps scale one."""
        share = weight / weight.sum()
        if sparse.issparse(X):
            centre = np.asarray(X.T @ share)
            spread = np.asarray(X.multiply(X).T @ share) - centre**2
            mean = np.zeros(X.shape[1])
        else:
            mean = share @ X
            spread = _weighted_variance(X, share, mean)
        scale = np.sqrt(np.maximum(spread, 0.0))
        # Rounding leaves about 1e-16 of a constant column's magnitude.
        largest = np.maximum(np.abs(mean), 1e-300)
        return cls(mean, np.where(scale > 1e-12 * largest, scale, 1.0))

    def apply(self, X: Any) -> Any:
        """Standardised copy of X."""
        if sparse.issparse(X):
            return X @ sparse.diags_array(1.0 / self.scale)
        standard = X - self.mean
        standard /= self.scale
        return standard


def _weighted_variance(X: FloatArray, share: FloatArray, mean: FloatArray) -> FloatArray:
    """Two passes, block by block: exact for large means, and never a second copy of X."""
    variance = np.zeros(X.shape[1])
    for first in range(0, len(X), 65536):
        rows = slice(first, first + 65536)
        variance += share[rows] @ (X[rows] - mean) ** 2
    return variance
