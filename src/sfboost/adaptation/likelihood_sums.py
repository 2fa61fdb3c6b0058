"""ℓ, its derivatives and its sampling error as sums over rows: some rows here, others elsewhere, then added.

Everything that a fit by Newton's method, its standard errors and the guard need is a sum of functions of one
row at one point (θ, p). Rows can be anywhere and in any order; only these sums are ever put together.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from sfboost.adaptation.standardize import Standardizer
from sfboost.heads.objectives import log_sum_and_softmax, n_logit_columns
from sfboost.marginal import log_weights
from sfboost.marginal.probabilities import FloatArray

# Rows at a time: their numbers stay in the processor's cache.
_ROWS = 2048


@dataclass(frozen=True, eq=False)
class Point:
    """Where the sums are taken.

    Attributes
    ----------
    theta : array of shape (columns, d + 1)
        Of standardised features, intercept last.
    prior : array of shape (K,)
        The p of w = f_S / p.
    standardizer : Standardizer
    curved : bool
        Whether second derivatives are wanted: (columns · d)² numbers.
    errors : bool
        Whether products of scores, which standard errors are made of, are wanted too.
    """

    theta: FloatArray
    prior: FloatArray
    standardizer: Standardizer
    curved: bool = True
    errors: bool = True


@dataclass(frozen=True, eq=False)
class LikelihoodSums:
    """Sums over rows at one point; two of them add up.

    Attributes
    ----------
    n_rows : float
    value : float
        −ℓ.
    gradient : array of shape (columns, d + 1)
    hessian : array of shape (P, P)
        Of −ℓ: complete minus missing information (Louis).
    products : array of shape (P + 2K + 3, P + 2K + 3)
        Σ v vᵀ of v = (score, f_S, f_S², adapted and stable accuracy of the row, 1).
    by_prior : array of shape (P + 2, K)
        Derivatives of Σ score and of both Σ accuracy in p.
    accuracy_slope : array of shape (2, P)
        Derivatives of both Σ accuracy in θ.
    cross : array of shape (2, K, K)
        Σ f_y f_y'² and Σ f_y² f_y'²: for the error of ε.
    joint : array of shape (K, K)
        Σ f_S ⊗ posterior, for ε under label shift.
    unstable : array of shape (K,)
        Σ f_U: class shares under label shift.
    """

    n_rows: float
    value: float
    gradient: FloatArray
    hessian: FloatArray
    products: FloatArray
    by_prior: FloatArray
    accuracy_slope: FloatArray
    cross: FloatArray
    joint: FloatArray
    unstable: FloatArray

    def __add__(self, other: LikelihoodSums) -> LikelihoodSums:
        return LikelihoodSums(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))


def likelihood_sums(stable: FloatArray, X: FloatArray, point: Point) -> LikelihoodSums:
    """The sums of some rows: f_S of shape (n, K), raw unstable features of shape (n, d)."""
    parts = [
        _block(stable[first : first + _ROWS], X[first : first + _ROWS], point)
        for first in range(0, len(stable), _ROWS)
    ]
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


def _block(stable: FloatArray, X: FloatArray, point: Point) -> LikelihoodSums:
    n_rows, n_classes = stable.shape
    columns = n_logit_columns(n_classes)
    width = X.shape[1] + 1
    # Rows run along the last axis from here on.
    design = np.empty((width, n_rows))
    np.subtract(X.T, point.standardizer.mean[:, None], out=design[:-1])
    design[:-1] /= point.standardizer.scale[:, None]
    design[-1] = 1.0
    z = np.zeros((n_classes, n_rows))
    np.matmul(point.theta, design, out=z[-columns:])
    log_w = log_weights(stable, point.prior).T
    log_sum, unstable = log_sum_and_softmax(z)
    log_joint, joint = log_sum_and_softmax(z + log_w)
    value = float((log_sum - log_joint).sum())
    by_logit = (unstable - joint)[-columns:]
    gradient = by_logit @ design.T
    if not point.curved:
        no = np.zeros(0)
        crossed, shares = stable.T @ joint.T, unstable.sum(axis=1)
        return LikelihoodSums(float(n_rows), value, gradient, no, no, no, no, no, crossed, shares)
    size = columns * width
    hessian = np.empty((columns, width, columns, width))
    for k in range(columns):
        for m in range(k + 1):
            i, j = k + n_classes - columns, m + n_classes - columns
            curvature = joint[i] * joint[j] - unstable[i] * unstable[j]
            if k == m:
                curvature += unstable[i] - joint[i]
            hessian[k, :, m, :] = (design * curvature) @ design.T
            hessian[m, :, k, :] = hessian[k, :, m, :].T
    if not point.errors:
        no, crossed, shares = np.zeros(0), stable.T @ joint.T, unstable.sum(axis=1)
        square = hessian.reshape(size, size)
        return LikelihoodSums(float(n_rows), value, gradient, square, no, no, no, no, crossed, shares)
    best, chosen = _largest(joint), _largest(stable.T)
    rows = np.arange(n_rows)
    v = np.empty((size + 2 * n_classes + 3, n_rows))
    np.multiply(-by_logit[:, None, :], design[None], out=v[:size].reshape(columns, width, n_rows))
    v[size : size + n_classes] = stable.T
    np.square(stable.T, out=v[size + n_classes : size + 2 * n_classes])
    v[-3], v[-2], v[-1] = joint[best, rows], joint[chosen, rows], 1.0
    slopes = np.empty((2, size))
    for i, answer in enumerate((best, chosen)):
        change = -joint * v[i - 3]
        change[answer, rows] += v[i - 3]
        slopes[i] = (change[-columns:] @ design.T).ravel()
    squared = v[size + n_classes : size + 2 * n_classes]
    return LikelihoodSums(
        float(n_rows),
        value,
        gradient,
        hessian.reshape(size, size),
        v @ v.T,
        _by_prior(joint, design, point.prior, (best, chosen), columns),
        slopes,
        np.array([stable.T @ squared.T, squared @ squared.T]),
        stable.T @ joint.T,
        unstable.sum(axis=1),
    )


def _largest(by_class: FloatArray) -> Any:
    """The class with the largest number; the first of equal ones."""
    if len(by_class) == 2:
        return (by_class[1] > by_class[0]).astype(np.intp)
    return by_class.argmax(axis=0)


def _by_prior(
    joint: FloatArray, design: FloatArray, prior: FloatArray, answers: tuple[Any, Any], columns: int
) -> FloatArray:
    """How the sums of the scores and of both accuracies move with p: ∂q_k/∂p_y = −q_k (δ_ky − q_y) / p_y."""
    n_classes, n_rows = joint.shape
    rows = np.arange(n_rows)
    moved = np.zeros((columns * len(design) + 2, n_classes))
    for y in np.flatnonzero(prior > 0.0):
        change = joint * joint[y]
        change[y] -= joint[y]
        change /= prior[y]
        moved[:-2, y] = (change[-columns:] @ design.T).ravel()
        moved[-2:, y] = [change[answer, rows].sum() for answer in answers]
    return moved
