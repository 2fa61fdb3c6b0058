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

    def at(self, ridge: float, by_class: FloatArray | None = None) -> Coordinates:
        """Coordinates for a loss with a ridge, in units of the loss's curvature.

        `by_class`, of shape (columns, columns), is that curvature where it differs between the columns of
        logits: that of a likelihood is small between classes which f_S cannot tell apart.
        """
        scale, classes = np.linalg.eigh(np.eye(1) if by_class is None else by_class)
        scale = np.maximum(scale, _LEAST_SHARE * scale[-1])
        least = _LEAST_SHARE * float(self.variances.max()) * scale[-1] or 1.0
        along = np.sqrt(np.maximum(np.outer(scale, self.variances) + ridge, least))
        others = np.sqrt(np.maximum(scale[:, None] * self.rest + ridge, least))
        return Coordinates(self.mean, self.directions, classes, along, others, np.sqrt(scale)[:, None])


@dataclass(frozen=True, eq=False)
class Coordinates:
    """Parameters (w, b) of shape (columns, d + 1), and the same where the loss is about equally curved."""

    mean: FloatArray
    directions: FloatArray
    classes: FloatArray
    along: FloatArray
    others: FloatArray
    level: FloatArray

    def to_white(self, theta: FloatArray) -> FloatArray:
        """The logit is (x − mean)·w plus an intercept of its own; w is stretched."""
        theta = self._turned(theta, self.classes.T)
        coef = theta[:, :-1]
        level = self.level * (theta[:, -1:] + coef @ self.mean[:, None])
        return np.hstack([self._stretched(coef, self.along, self.others), level])

    def to_plain(self, white: FloatArray) -> FloatArray:
        """The inverse of `to_white`."""
        coef = self._stretched(white[:, :-1], 1.0 / self.along, 1.0 / self.others)
        theta = np.hstack([coef, white[:, -1:] / self.level - coef @ self.mean[:, None]])
        return self._turned(theta, self.classes)

    def gradient(self, by_theta: FloatArray) -> FloatArray:
        """The gradient in the white parameters, from that in the plain ones."""
        by_theta = self._turned(by_theta, self.classes.T)
        by_coef = by_theta[:, :-1] - np.outer(by_theta[:, -1], self.mean)
        stretched = self._stretched(by_coef, 1.0 / self.along, 1.0 / self.others)
        return np.hstack([stretched, by_theta[:, -1:] / self.level])

    def _turned(self, theta: FloatArray, by: FloatArray) -> FloatArray:
        return theta if len(by) == 1 else by @ theta

    def _stretched(self, rows: FloatArray, along: FloatArray, others: FloatArray) -> FloatArray:
        return others * rows + ((rows @ self.directions) * (along - others)) @ self.directions.T
