"""Coordinates of a linear head in which correlated features do not slow a solver down."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.extmath import randomized_svd

from sfboost.marginal.probabilities import FloatArray

# The largest directions are the ones that hold a solver up, and some rows show them well enough.
_DIRECTIONS = 32
_ROWS = 2000
# Of the largest variance: a direction with less is treated as if it had so much.
_LEAST_SHARE = 1e-8


@dataclass(frozen=True, eq=False)
class Whitening:
    """The directions in which rows vary most about their mean (sparse rows: about zero).

    It changes the way to the optimum only. Embeddings have a few directions of large variance and many of
    small: plain L-BFGS needs hundreds of passes over the rows there, a whitened one tens.

    Attributes
    ----------
    mean : array of shape (d,)
    directions : array of shape (d, r)
        Orthonormal.
    variances : array of shape (r,)
    rest : float
        Mean variance of the directions left out.
    """

    mean: FloatArray
    directions: FloatArray
    variances: FloatArray
    rest: float

    @classmethod
    def of(cls, X: Any, weight: FloatArray) -> Whitening:
        """From some rows, evenly spaced."""
        step = slice(None, None, max(1, X.shape[0] // _ROWS))
        share = weight[step] / max(float(weight[step].sum()), np.finfo(np.float64).tiny)
        root, rows = np.sqrt(share)[:, None], X[step]
        mean = np.asarray(rows.T @ share)
        if sparse.issparse(X):  # centring would make them dense
            rows = rows.multiply(root).tocsr()
            total = float(rows.data @ rows.data)
        else:
            rows = rows - mean
            rows *= root
            if rows.shape[1] <= _DIRECTIONS:  # all of them, at once
                variances, directions = np.linalg.eigh(rows.T @ rows)
                return cls(mean, directions, np.maximum(variances, 0.0), 0.0)
            total = float(np.vdot(rows, rows))
        rank = min(_DIRECTIONS, *rows.shape)
        _, sizes, directions = randomized_svd(rows, rank, n_iter=1, random_state=0)
        rest = max(total - float(sizes @ sizes), 0.0) / max(X.shape[1] - rank, 1)
        return cls(mean, directions.T, sizes**2, rest)

    def at(self, ridge: float) -> Coordinates:
        """Coordinates for a loss with a ridge, in units of the loss's curvature in a logit."""
        least = _LEAST_SHARE * float(self.variances.max()) or 1.0
        along = np.sqrt(np.maximum(self.variances + ridge, least))
        return Coordinates(self.mean, self.directions, along, float(np.sqrt(max(self.rest + ridge, least))))


@dataclass(frozen=True, eq=False)
class Coordinates:
    """Parameters (w, b) of shape (columns, d + 1), and the same where the loss is about equally curved."""

    mean: FloatArray
    directions: FloatArray
    along: FloatArray
    others: float

    def to_white(self, theta: FloatArray) -> FloatArray:
        """The logit is (x − mean)·w plus an intercept of its own; w is stretched."""
        coef = theta[:, :-1]
        level = theta[:, -1:] + coef @ self.mean[:, None]
        return np.hstack([self._stretched(coef, self.along, self.others), level])

    def to_plain(self, white: FloatArray) -> FloatArray:
        """The inverse of `to_white`."""
        coef = self._stretched(white[:, :-1], 1.0 / self.along, 1.0 / self.others)
        return np.hstack([coef, white[:, -1:] - coef @ self.mean[:, None]])

    def gradient(self, by_theta: FloatArray) -> FloatArray:
        """The gradient in the white parameters, from that in the plain ones."""
        by_coef = by_theta[:, :-1] - np.outer(by_theta[:, -1], self.mean)
        return np.hstack([self._stretched(by_coef, 1.0 / self.along, 1.0 / self.others), by_theta[:, -1:]])

    def _stretched(self, rows: FloatArray, along: FloatArray, others: float) -> FloatArray:
        return others * rows + ((rows @ self.directions) * (along - others)) @ self.directions.T
