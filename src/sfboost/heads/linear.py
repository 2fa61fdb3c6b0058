"""Fitting linear logits Z = X W + b to any objective, with L2 on W."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.special import softmax
from threadpoolctl import ThreadpoolController

from sfboost.heads.evaluation import Loss
from sfboost.heads.lbfgs import lbfgs
from sfboost.heads.objectives import CrossEntropy, Objective
from sfboost.heads.whitening import Whitening
from sfboost.marginal.probabilities import FloatArray

# Newton's Hessian costs n (d K)² / 2: below this many parameters it beats L-BFGS's many passes.
_NEWTON_PARAMETERS = 120
_NARROW = 64
_HESSIAN_ROWS = 8192
_MOST_ITERATIONS = 1000


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
        Newton needs the cross-entropy (convex); "auto" takes it where the number of parameters is small.
    tolerance : float
        Largest absolute entry of the gradient at the end.
    whitening : Whitening, optional
        Of rows like these, to spare its computation; it does not change the optimum.
    """
    columns = objective.n_columns
    if start is None:
        start = LinearFit(np.zeros((X.shape[1], columns)), np.zeros(columns), np.inf, 0, False)
    else:
        start = replace(start, converged=False)
    convex = isinstance(objective, CrossEntropy)
    if solver == "newton" and not convex:
        raise ValueError('solver="newton" needs the cross-entropy, which is convex: use solver="lbfgs".')
    if solver == "auto":
        solver = "newton" if convex and (X.shape[1] + 1) * columns <= _NEWTON_PARAMETERS else "lbfgs"
    fit, loss = start, Loss(X, objective, l2)
    with _threads_for(X.shape[1]):
        if solver == "newton":
            fit = _newton(loss, start, tolerance)
        if not fit.converged:
            whitening = whitening or Whitening.of(X, objective.weight)
            theta = np.vstack([fit.coef, fit.intercept]).T
            found = lbfgs(loss, theta, whitening, max_iterations=_MOST_ITERATIONS, tolerance=tolerance)
            fit = LinearFit(
                found.theta[:, :-1].T, found.theta[:, -1], found.value, found.n_iterations, found.converged
            )
    # The mean of K intercepts is free; centring makes the fit unique.
    shift = fit.intercept.mean() if columns > 1 else 0.0
    return replace(fit, intercept=fit.intercept - shift)


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


def _threads_for(n_features: int) -> AbstractContextManager[Any]:
    """One BLAS thread for narrow rows: their products are too small to share, and sharing costs 3x."""
    if n_features <= _NARROW:
        return _controller().limit(limits=1, user_api="blas")
    return nullcontext()


def _newton(loss: Loss, start: LinearFit, tolerance: float) -> LinearFit:
    """Damped Newton steps; stops unconverged where the Hessian cannot be factorised."""
    theta = np.vstack([start.coef, start.intercept]).T
    value, gradient = loss.at(theta)
    for iteration in range(_MOST_ITERATIONS):
        if np.abs(gradient).max() <= tolerance:
            return LinearFit(theta[:, :-1].T, theta[:, -1], value, iteration, True)
        hessian = _hessian(loss.X, theta, loss.objective.weight, loss.l2)
        try:
            step = cho_solve(cho_factor(hessian), gradient.ravel()).reshape(gradient.shape)
        except LinAlgError:
            break
        slope, size = float(np.vdot(step, gradient)), 1.0
        while size > 1e-4:
            trial = theta - size * step
            new = loss.at(trial)
            if new[0] <= value - 1e-4 * size * slope + 1e-14 * abs(value):
                break
            size *= 0.5
        else:
            break
        theta = trial
        value, gradient = new
    return LinearFit(theta[:, :-1].T, theta[:, -1], value, iteration, False)


def _hessian(X: Any, theta: FloatArray, weight: FloatArray, l2: float) -> FloatArray:
    """Hessian of the penalised cross-entropy; parameters ordered by column, intercept last in each."""
    columns, width = theta.shape
    blocks = np.zeros((columns, columns, width, width))
    for first in range(0, X.shape[0], _HESSIAN_ROWS):
        rows = slice(first, first + _HESSIAN_ROWS)
        some = X[rows].toarray() if sparse.issparse(X) else X[rows]
        design = np.column_stack([some, np.ones(len(some))])
        curvature = _curvature(design @ theta.T) * weight[rows, None, None]
        for k in range(columns):
            for m in range(k + 1):
                blocks[k, m] += (design * curvature[:, k, m, None]).T @ design
    for k in range(columns):
        for m in range(k):
            blocks[m, k] = blocks[k, m].T
    hessian = blocks.transpose(0, 2, 1, 3).reshape(columns * width, columns * width)
    # A trace of ridge on everything: the shared intercept of K columns is free.
    ridge = np.full(columns * width, 1e-10)
    ridge[np.arange(columns * width) % width != width - 1] += l2
    return hessian + np.diag(ridge)


def _curvature(logits: FloatArray) -> FloatArray:
    """Second derivative of log Σ exp in the logit columns, of shape (n, columns, columns)."""
    if logits.shape[1] == 1:
        half = 0.5 * np.abs(logits[:, :, None])
        return 0.25 / np.cosh(np.minimum(half, 350.0)) ** 2
    fitted = softmax(logits, axis=1)
    curvature = -fitted[:, :, None] * fitted[:, None, :]
    diagonal = np.arange(fitted.shape[1])
    curvature[:, diagonal, diagonal] += fitted
    return curvature
