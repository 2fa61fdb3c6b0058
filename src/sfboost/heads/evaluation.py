"""Value and gradient of a linear head's loss: exactly, and quickly near a point.

Both take products with the rows, which are most of a solver's time, and single precision makes them in about
half of it. They are then wrong by 1e-7 of their size, which a solver feels near the optimum; but what they
differ by from those of a point near by, which is known exactly, is wrong by 1e-7 of the difference only.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse

from sfboost.heads.objectives import Objective
from sfboost.marginal.probabilities import FloatArray

# Numbers per block of rows, and logits: a block stays in the processor's cache for the logits and for the
# gradient, and what is computed row by row stays there too.
_BLOCK = 2**19
_LOGITS = 2**16
#: Below this many features the products are not what takes the time.
_NARROW = 64
# Sizes that single precision can square, and how far from zero a column may be, in units of its range.
_FAR, _OFFSET = 1e18, 4.0
# The point is renewed whenever the gradient has fallen to this share, once steps are small.
_RENEW, _SMALL = 0.1, 5e-5
_ALL = slice(None)


class Loss:
    """objective(X W + b) + l2/2 · ‖W‖², of theta of shape (columns, d + 1): a row of W and its intercept.

    Parameters
    ----------
    X : dense array or sparse matrix of shape (n, d)
    objective : Objective
    l2 : float
    """

    def __init__(self, X: Any, objective: Objective, l2: float) -> None:
        self.X, self.objective, self.l2 = X, objective, l2

    def at(self, theta: FloatArray, *keep: FloatArray) -> tuple[float, FloatArray]:
        """Value and gradient; arrays to `keep` the logits and the gradient in them are (columns, n)."""
        coef = np.ascontiguousarray(theta[:, :-1])
        value, gradient = _penalty(coef, self.l2)
        for rows, block in _blocks(self.X, len(theta)):
            logits = np.asarray(coef @ block.T)
            logits += theta[:, -1:]
            part, by_logit = self.objective.value_and_gradient(logits.T, rows)
            value += part
            gradient[:, :-1] += by_logit.T @ block
            gradient[:, -1] += by_logit.sum(axis=0)
            for kept, found in zip(keep, (logits, by_logit.T), strict=False):
                kept[:, rows] = found
        return value, gradient


class Nearby:
    """The same loss, by what differs from a point that is known exactly and follows the solver.

    Parameters
    ----------
    loss : Loss
    rows : array of shape (n, d + 1)
        The rows in single precision, and a column of ones: the intercepts come with the products.
    precise : bool
        Whether gradients are differences too. Down to 1e-4 logits are enough, and single precision for all
        that is computed of them.
    """

    def __init__(self, loss: Loss, rows: Any, precise: bool) -> None:
        self.loss, self.rows = loss, rows
        self.renew(precise)

    @classmethod
    def of(cls, loss: Loss, precise: bool) -> Nearby | Loss:
        """The loss itself where the products are not what takes the time, or single precision is too coarse.

        A column that is far from zero and hardly varies loses its digits, as one beyond the range does.
        """
        if sparse.issparse(loss.X) or loss.X.shape[1] <= _NARROW:
            return loss
        n_rows, width = loss.X.shape
        rows = np.ones((n_rows, width + 1), dtype=np.float32)
        with np.errstate(over="ignore"):
            rows[:, :-1] = loss.X
        low, high = rows[:, :-1].min(axis=0), rows[:, :-1].max(axis=0)
        size = np.maximum(high, -low)
        fits = (size < _FAR) & (size > 1 / _FAR) & (size <= _OFFSET * (high - low))
        return loss if loss.X[:, ~fits].any() else cls(loss, rows, precise)

    def renew(self, precise: bool) -> None:
        """Let the next evaluation be exact, and the point of those that follow."""
        self.precise, self.known = precise, np.inf
        self.objective = self.loss.objective if precise else self.loss.objective.rounded()
        shape, kind = (self.objective.n_columns, len(self.rows)), np.float64 if precise else np.float32
        self.kept = [np.empty(shape, kind) for _ in range(1 + precise)]

    def at(self, theta: FloatArray) -> tuple[float, FloatArray]:
        """Value and gradient, as `Loss.at`."""
        found = None if np.isinf(self.known) else self._near(theta)
        if found is None or np.abs(found[1]).max() < min(_RENEW * self.known, _SMALL):
            found = self.loss.at(theta, *self.kept)
            self.theta, self.gradient, self.known = theta, found[1], np.abs(found[1]).max()
        return found

    def _near(self, theta: FloatArray) -> tuple[float, FloatArray]:
        step = theta - self.theta
        turn = np.asfortranarray(step.T, dtype=np.float32)
        value, gradient = _penalty(theta[:, :-1], self.loss.l2)
        if self.precise:
            known = self.gradient - _penalty(self.theta[:, :-1], self.loss.l2)[1]
            gradient += known
            value += float(np.vdot(known, step))
        for rows, block in _blocks(self.rows, len(theta)):
            moved = (block @ turn).T.astype(self.kept[0].dtype, order="C")
            logits = self.kept[0][:, rows] + moved
            part, by_logit = self.objective.value_and_gradient(logits.T, rows)
            value += part
            change = by_logit.T
            if self.precise:  # to first order the value is known without rounding too
                kept = self.kept[1][:, rows]
                value -= float(np.einsum("ij,ij->", kept, moved))
                change = change - kept
            gradient += change.astype(np.float32, copy=False) @ block
        return value, gradient


def _penalty(coef: FloatArray, l2: float) -> tuple[float, FloatArray]:
    """Its value, and its gradient in theta."""
    gradient = np.zeros((coef.shape[0], coef.shape[1] + 1))
    gradient[:, :-1] = l2 * coef
    return 0.5 * l2 * float(np.sum(coef * coef)), gradient


def _blocks(X: Any, columns: int) -> Iterator[tuple[slice, Any]]:
    """Slices of the rows, and these rows; sparse rows come in one, since slicing them copies."""
    n_rows = X.shape[0]
    size = (
        n_rows if sparse.issparse(X) else max(64, min(_BLOCK // (X.shape[1] + columns), _LOGITS // columns))
    )
    if size >= n_rows:
        yield _ALL, X
        return
    for first in range(0, n_rows, size):
        rows = slice(first, first + size)
        yield rows, X[rows]
