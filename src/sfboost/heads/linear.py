"""Fitting linear logits Z = X W + b to any objective, with L2 on W.

Newton's method where there are few parameters and the loss is convex from the start on; else L-BFGS, in
coordinates in which correlated features do not slow it down.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.optimize import minimize
from threadpoolctl import ThreadpoolController

from sfboost.heads.objectives import Objective
from sfboost.heads.whitening import Coordinates, Whitening
from sfboost.marginal.probabilities import FloatArray

# Newton's Hessian costs n (d K)² / 2: below this many parameters it beats L-BFGS's many passes.
_NEWTON_PARAMETERS = 120
# Newton's method is at its end after a few steps, or it is lost.
_NEWTON_STEPS, _SHORTEST = 30, 1e-3
_LBFGS_STEPS = 1000
# Where L-BFGS changes its coordinates, and the rows that show how curved the loss is there.
_NEAR, _ROWS = 3e-6, 2000
# Down to here single precision will do for all that is computed of logits.
_COARSE = 1e-4
#: Below this many features the products with the rows are not what takes the time.
NARROW = 64
# Numbers per block of rows, and logits: a block stays in the processor's cache for the logits and for the
# gradient, and what is computed row by row stays there too.
_BLOCK = 2**19
_LOGITS = 2**16
_CURVATURES = 2**18
# Sizes that single precision can square, and how far from zero a column may be, in units of its range.
_FAR, _OFFSET = 1e18, 4.0
# The known point is renewed whenever the gradient has fallen to this share, once steps are small.
_RENEW, _SMALL = 0.1, 5e-5


@dataclass(frozen=True, eq=False)
class LinearFit:
    """A fitted linear head: `coef` of shape (d, columns), `intercept` of shape (columns,)."""

    coef: FloatArray
    intercept: FloatArray
    value: float
    n_iterations: int
    converged: bool

    def logits(self, X: Any) -> FloatArray:
        """X W + b."""
        return np.asarray(X @ self.coef) + self.intercept


def fit_linear(
    X: Any,
    objective: Objective,
    *,
    l2: float,
    start: LinearFit | None = None,
    solver: str = "auto",
    tolerance: float = 1e-7,
    whitening: Whitening | None = None,
) -> LinearFit:
    """Minimise objective(X W + b) + l2/2 · ‖W‖².

    Parameters
    ----------
    X : dense array or sparse matrix of shape (n, d)
    solver : {"auto", "newton", "lbfgs"}
        "auto" is Newton's method where the number of parameters is small; L-BFGS takes over from the start
        where the loss turns out not to be convex.
    tolerance : float
        Largest absolute entry of the gradient at the end.
    whitening : Whitening, optional
        Of rows like these, to spare its computation; it does not change the optimum.

    References
    ----------
    .. [1] J. Nocedal and S. J. Wright (2006). Numerical Optimization. Springer.
    """
    columns = objective.n_columns
    theta = np.zeros((columns, X.shape[1] + 1))
    if start is not None:
        theta[:, :-1], theta[:, -1] = start.coef.T, start.intercept
    loss, fit = Loss(X, objective, l2), None
    if solver == "auto":
        solver = "newton" if theta.size <= _NEWTON_PARAMETERS else "lbfgs"
    with _threads_for(X.shape[1]):
        if solver == "newton":
            fit = _newton(loss, theta, tolerance)
        if fit is None:
            fit = _lbfgs(loss, theta, whitening or Whitening.of(X, objective.weight), tolerance)
    # The mean of K intercepts is free; centring makes the fit unique.
    shift = fit.intercept.mean() if columns > 1 else 0.0
    return replace(fit, intercept=fit.intercept - shift)


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


def _threads_for(n_features: int) -> AbstractContextManager[Any]:
    """One BLAS thread for narrow rows: their products are too small to share, and sharing costs 3x."""
    if n_features <= NARROW:
        return _controller().limit(limits=1, user_api="blas")
    return nullcontext()


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
        value, gradient = self.penalty(coef)
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

    def penalty(self, coef: FloatArray) -> tuple[float, FloatArray]:
        """Its value, and its gradient in theta."""
        gradient = np.zeros((coef.shape[0], coef.shape[1] + 1))
        gradient[:, :-1] = self.l2 * coef
        return 0.5 * self.l2 * float(np.sum(coef * coef)), gradient

    def information(self, fit: LinearFit) -> FloatArray:
        """Fisher's, in the logit columns: the mean outer product of a row's gradient, over some rows."""
        some = slice(None, None, max(1, self.X.shape[0] // _ROWS))
        weight = np.maximum(self.objective.weight[some], np.finfo(np.float64).tiny)
        _, by_logit = self.objective.value_and_gradient(fit.logits(self.X[some]), some)
        return (by_logit.T / weight) @ by_logit / weight.sum()

    def hessian(self, theta: FloatArray) -> FloatArray:
        """Second derivatives; parameters ordered by column, intercept last in each."""
        columns, width = theta.shape
        hessian = np.zeros((columns, width, columns, width))
        size = max(64, _CURVATURES // (width * columns))
        for first in range(0, self.X.shape[0], size):
            rows = slice(first, first + size)
            some = self.X[rows].toarray() if sparse.issparse(self.X) else self.X[rows]
            design = np.column_stack([some, np.ones(len(some))])
            curvature = self.objective.curvature(design @ theta.T, rows)
            curvature *= self.objective.weight[rows, None, None]
            for k in range(columns):
                for m in range(k + 1):
                    hessian[k, :, m] += (design * curvature[:, k, m, None]).T @ design
        for k in range(columns):
            for m in range(k):
                hessian[m, :, k] = hessian[k, :, m].T
        ridge = np.tile(np.append(np.full(width - 1, self.l2), 0.0), columns)
        return hessian.reshape(theta.size, theta.size) + np.diag(ridge)


def _blocks(X: Any, columns: int) -> Iterator[tuple[slice, Any]]:
    """Slices of the rows, and these rows; sparse rows come in one, since slicing them copies."""
    n_rows = X.shape[0]
    size = max(64, min(_BLOCK // (X.shape[1] + columns), _LOGITS // columns))
    if size >= n_rows or sparse.issparse(X):
        yield slice(None), X
        return
    for first in range(0, n_rows, size):
        rows = slice(first, first + size)
        yield rows, X[rows]


def _newton(loss: Loss, theta: FloatArray, tolerance: float) -> LinearFit | None:
    """Damped Newton steps; None where the Hessian is not positive on the way, or steps come to nothing."""
    value, gradient = loss.at(theta)
    for iteration in range(_NEWTON_STEPS):
        if np.abs(gradient).max() <= tolerance:
            return LinearFit(theta[:, :-1].T, theta[:, -1], value, iteration, True)
        # A trace of ridge on everything: the shared intercept of K columns is free.
        hessian = loss.hessian(theta) + 1e-10 * np.eye(theta.size)
        try:
            step = cho_solve(cho_factor(hessian), gradient.ravel()).reshape(gradient.shape)
        except LinAlgError:
            return None
        slope, size = float(np.vdot(step, gradient)), 1.0
        new = loss.at(theta - step)
        while new[0] > value - 1e-4 * size * slope + 1e-14 * abs(value):
            size *= 0.5
            if size < _SHORTEST:
                return None
            new = loss.at(theta - size * step)
        theta = theta - size * step
        value, gradient = new
    return None


def _lbfgs(loss: Loss, theta: FloatArray, whitening: Whitening, tolerance: float) -> LinearFit:
    """L-BFGS on white rows.

    Wide rows of several classes have a second leg, in coordinates in which the loss is as curved between any
    two classes too: where f_S hardly tells some apart, that spares hundreds of steps. Farther out than where
    the first leg ends the likelihood may not be convex yet, and the second one would lose its way.
    """
    legs, classes = 1 + (len(theta) > 1 and tolerance < _NEAR), max(len(theta), 2)
    even = (classes - 1) / classes**2  # the curvature of log Σ exp in a logit at even odds
    nearby = Nearby.of(loss, precise=legs == 1 and tolerance < _COARSE)
    if legs == 1 or not isinstance(nearby, Nearby):
        return _descend(nearby, theta, whitening.at(loss.l2 / even), tolerance, 1.0)
    first = _descend(nearby, theta, whitening.at(loss.l2 / even), _NEAR, 1.0)
    rows = nearby.rows
    del nearby  # with what it keeps of each row
    nearby = Nearby(loss, rows, precise=True)
    by_class = loss.information(first) / even
    theta = np.vstack([first.coef, first.intercept]).T
    second = _descend(nearby, theta, whitening.at(loss.l2 / even, by_class), tolerance, None)
    return replace(second, n_iterations=first.n_iterations + second.n_iterations)


def _descend(
    nearby: Nearby | Loss, theta: FloatArray, white: Coordinates, tolerance: float, unit: float | None
) -> LinearFit:
    """One run of L-BFGS, stopped by the gradient in the plain parameters.

    The solver's first step has length one in units of `unit`; near the optimum that is far too long, and None
    takes the gradient's.
    """
    value, gradient = nearby.at(theta)
    largest = np.abs(gradient).max()
    if largest <= tolerance:
        return LinearFit(theta[:, :-1].T, theta[:, -1], value, 0, True)
    start = white.gradient(gradient)
    scale = float(np.linalg.norm(start)) if unit is None else unit
    known = [(value, scale * start.ravel())]  # what the solver asks for first

    def at(point: FloatArray) -> tuple[float, FloatArray]:
        nonlocal largest
        if known:
            return known.pop()
        value, gradient = nearby.at(white.to_plain(scale * point.reshape(theta.shape)))
        largest = np.abs(gradient).max()
        return value, scale * white.gradient(gradient).ravel()

    def stop(_: FloatArray) -> None:
        if largest <= tolerance:
            raise StopIteration

    found = minimize(
        at,
        white.to_white(theta).ravel() / scale,
        jac=True,
        method="L-BFGS-B",
        callback=stop,
        options={"maxiter": _LBFGS_STEPS, "gtol": 0.0, "ftol": 10.0 * tolerance**2, "maxcor": 20},
    )
    theta = white.to_plain(scale * found.x.reshape(theta.shape))
    converged = bool(found.success) or bool(largest <= tolerance)
    return LinearFit(theta[:, :-1].T, theta[:, -1], float(found.fun), int(found.nit), converged)


class Nearby:
    """A loss by what differs from a point that is known exactly and follows the solver.

    Products with the rows are most of the solver's time, and single precision makes them in half of it. They
    are then wrong by 1e-7 of their size, which a solver feels near the optimum; but what they differ by from
    those of a point near by, which is known exactly, is wrong by 1e-7 of the difference only.

    Parameters
    ----------
    loss : Loss
    rows : array of shape (n, d + 1)
        The rows in single precision, and a column of ones: the intercepts come with the products.
    precise : bool
        Whether gradients are differences too. Down to 1e-6 logits are enough, and single precision for all
        that is computed of them.
    """

    def __init__(self, loss: Loss, rows: Any, precise: bool) -> None:
        self.loss, self.rows, self.precise, self.known = loss, rows, precise, np.inf
        self.objective = loss.objective if precise else loss.objective.rounded()
        shape, kind = (loss.objective.n_columns, len(rows)), np.float64 if precise else np.float32
        self.kept = [np.empty(shape, kind) for _ in range(1 + precise)]

    @classmethod
    def of(cls, loss: Loss, precise: bool) -> Nearby | Loss:
        """The loss itself where the products are not what takes the time, or single precision is too coarse.

        A column that is far from zero and hardly varies loses its digits, as one beyond the range does.
        """
        if sparse.issparse(loss.X) or loss.X.shape[1] <= NARROW:
            return loss
        n_rows, width = loss.X.shape
        rows = np.ones((n_rows, width + 1), dtype=np.float32)
        with np.errstate(over="ignore"):
            rows[:, :-1] = loss.X
        low, high = rows[:, :-1].min(axis=0), rows[:, :-1].max(axis=0)
        size = np.maximum(high, -low)
        fits = (size < _FAR) & (size > 1 / _FAR) & (size <= _OFFSET * (high - low))
        return loss if loss.X[:, ~fits].any() else cls(loss, rows, precise)

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
        value, gradient = self.loss.penalty(theta[:, :-1])
        if self.precise:
            known = self.gradient - self.loss.penalty(self.theta[:, :-1])[1]
            gradient += known
            value += float(np.vdot(known, step))
        for rows, block in _blocks(self.rows, len(theta)):
            moved = (block @ turn).T.astype(self.kept[0].dtype, order="C")
            part, by_logit = self.objective.value_and_gradient((self.kept[0][:, rows] + moved).T, rows)
            value += part
            change = by_logit.T
            if self.precise:  # to first order the value is known without rounding too
                kept = self.kept[1][:, rows]
                value -= float(np.einsum("ij,ij->", kept, moved))
                change = change - kept
            gradient += change.astype(np.float32, copy=False) @ block
        return value, gradient
