"""Fitting linear logits Z = X W + b to any objective, with L2 on W."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.optimize import minimize
from scipy.special import softmax
from threadpoolctl import ThreadpoolController

from sfboost.heads.objectives import CrossEntropy, Objective
from sfboost.marginal.probabilities import FloatArray

# Newton's Hessian costs n (d K)² / 2: below this many parameters it beats L-BFGS's many passes.
_NEWTON_PARAMETERS = 120
_NARROW = 64
# Rows per block of the Hessian, so that its weighted copy of the rows stays small.
_BLOCK = 32768


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
    max_iterations: int = 1000,
    tolerance: float = 1e-7,
) -> LinearFit:
    """Minimise objective(X W + b) + l2/2 · ‖W‖².

    Parameters
    ----------
    X : dense array or sparse matrix of shape (n, d)
    solver : {"auto", "newton", "lbfgs"}
        Newton needs the cross-entropy (convex) and dense rows; "auto" takes it where the number of
        parameters is small.
    tolerance : float
        Largest absolute entry of the gradient at the end.
    """
    columns = objective.n_columns
    if start is None:
        start = LinearFit(np.zeros((X.shape[1], columns)), np.zeros(columns), np.inf, 0, False)
    else:
        start = replace(start, converged=False)
    convex = isinstance(objective, CrossEntropy) and not sparse.issparse(X)
    if solver == "newton" and not convex:
        raise ValueError('solver="newton" needs dense rows and the cross-entropy: use solver="lbfgs".')
    if solver == "auto":
        solver = "newton" if convex and (X.shape[1] + 1) * columns <= _NEWTON_PARAMETERS else "lbfgs"
    fit = start
    with _threads_for(X.shape[1]):
        if solver == "newton":
            fit = _newton(X, objective, l2, start, max_iterations, tolerance)
        if not fit.converged:
            fit = _lbfgs(X, objective, l2, fit, max_iterations, tolerance)
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


def _evaluate(
    X: Any, objective: Objective, l2: float, coef: FloatArray, intercept: FloatArray
) -> tuple[float, FloatArray, FloatArray, FloatArray]:
    """Value, gradient in W, gradient in b, and the logits."""
    logits = np.asarray(X @ coef) + intercept
    value, gradient = objective.value_and_gradient(logits)
    value += 0.5 * l2 * float(np.vdot(coef, coef))
    return value, np.asarray(X.T @ gradient) + l2 * coef, gradient.sum(axis=0), logits


def _lbfgs(
    X: Any, objective: Objective, l2: float, start: LinearFit, max_iterations: int, tolerance: float
) -> LinearFit:
    shape = start.coef.shape

    def unpack(theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        return theta[: -shape[1]].reshape(shape), theta[-shape[1] :]

    def loss(theta: FloatArray) -> tuple[float, FloatArray]:
        value, by_coef, by_intercept, _ = _evaluate(X, objective, l2, *unpack(theta))
        return value, np.concatenate([by_coef.ravel(), by_intercept])

    found = minimize(
        loss,
        np.concatenate([start.coef.ravel(), start.intercept]),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": max_iterations, "gtol": tolerance, "ftol": 1e-13, "maxcor": 20},
    )
    coef, intercept = unpack(found.x)
    return LinearFit(coef, intercept, float(found.fun), int(found.nit), bool(found.success))


def _newton(
    X: FloatArray,
    objective: Objective,
    l2: float,
    start: LinearFit,
    max_iterations: int,
    tolerance: float,
) -> LinearFit:
    """Damped Newton steps; stops unconverged where the Hessian cannot be factorised."""
    coef, intercept = start.coef, start.intercept
    value, by_coef, by_intercept, logits = _evaluate(X, objective, l2, coef, intercept)
    for iteration in range(max_iterations):
        gradient = np.vstack([by_coef, by_intercept])
        if np.abs(gradient).max() <= tolerance:
            return LinearFit(coef, intercept, value, iteration, True)
        hessian = _hessian(X, logits, objective.weight, l2)
        try:
            step = cho_solve(cho_factor(hessian), gradient.T.ravel()).reshape(gradient.T.shape).T
        except LinAlgError:
            break
        slope, size = float(np.vdot(step, gradient)), 1.0
        while size > 1e-4:
            trial = coef - size * step[:-1], intercept - size * step[-1]
            new = _evaluate(X, objective, l2, *trial)
            if new[0] <= value - 1e-4 * size * slope + 1e-14 * abs(value):
                break
            size *= 0.5
        else:
            break
        coef, intercept = trial
        value, by_coef, by_intercept, logits = new
    return LinearFit(coef, intercept, value, iteration, False)


def _hessian(X: FloatArray, logits: FloatArray, weight: FloatArray, l2: float) -> FloatArray:
    """Hessian of the penalised cross-entropy; parameters ordered by column, intercept last in each."""
    width, columns = X.shape[1] + 1, logits.shape[1]
    blocks = np.zeros((columns, columns, width, width))
    for first in range(0, len(X), _BLOCK):
        rows = slice(first, first + _BLOCK)
        design = np.column_stack([X[rows], np.ones(len(X[rows]))])
        curvature = _curvature(logits[rows]) * weight[rows, None, None]
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
