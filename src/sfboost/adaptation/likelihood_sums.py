"""ℓ, its derivatives and its sampling error as sums over rows: some rows here, others elsewhere, then added.

Everything that a fit by Newton's method, its standard errors and the guard need is a sum of functions of one
row at one point (θ, p). Rows can be anywhere and in any order; only these sums are ever put together.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from scipy.linalg.blas import dgemm

from sfboost.adaptation.standardize import Standardizer
from sfboost.heads.objectives import log_sum_and_softmax, n_logit_columns
from sfboost.marginal import log_weights
from sfboost.marginal.probabilities import FloatArray

# Rows at a time: their numbers stay in the processor's cache.
_ROWS = 2048
# A sum of products below this has lost digits.
_LEAST_SUM = 1e-250


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
    total = _block(stable[:_ROWS], X[:_ROWS], point)
    for first in range(_ROWS, len(stable), _ROWS):
        total = total + _block(stable[first : first + _ROWS], X[first : first + _ROWS], point)
    return total


def _block(stable: FloatArray, X: FloatArray, point: Point) -> LikelihoodSums:
    n_rows, n_classes = stable.shape
    columns, width = n_logit_columns(n_classes), X.shape[1] + 1
    # Rows run along the last axis from here on.
    f = np.ascontiguousarray(stable.T)
    design = np.empty((width, n_rows))
    np.subtract(X.T, point.standardizer.mean[:, None], out=design[:-1])
    design[:-1] *= 1.0 / point.standardizer.scale[:, None]
    design[-1] = 1.0
    z = np.zeros((n_classes, n_rows))
    np.matmul(point.theta, design, out=z[-columns:])
    value, unstable, joint = _both_laws(z, f, point.prior)
    by_logit = (unstable - joint)[-columns:]
    crossed, shares, no = f @ joint.T, unstable.sum(axis=1), np.zeros(0)
    if not point.curved:
        gradient = by_logit @ design.T
        return LikelihoodSums(float(n_rows), value, gradient, no, no, no, no, no, crossed, shares)
    size = columns * width
    hessian = np.empty((columns, width, columns, width))
    bent = np.empty_like(design)
    for k in range(columns):
        for m in range(k + 1):
            i, j = k + n_classes - columns, m + n_classes - columns
            curvature = joint[i] * joint[j] - unstable[i] * unstable[j]
            if k == m:
                curvature += by_logit[k]
            np.multiply(design, curvature, out=bent)
            hessian[k, :, m, :] = bent @ design.T
            hessian[m, :, k, :] = hessian[k, :, m, :].T
    square = hessian.reshape(size, size)
    if not point.errors:
        gradient = by_logit @ design.T
        return LikelihoodSums(float(n_rows), value, gradient, square, no, no, no, no, crossed, shares)
    v = np.empty((size + 2 * n_classes + 3, n_rows))
    np.multiply(by_logit[:, None, :], -design, out=v[:size].reshape(columns, width, n_rows))
    v[size : size + n_classes] = f
    squared = np.square(f, out=v[size + n_classes : size + 2 * n_classes])
    # How likely each of two answers is, the adapted and the stable one, and how that moves with the logits.
    answers = [np.arange(n_classes)[:, None] == _largest(by_class) for by_class in (joint, f)]
    moves = np.empty((2, n_classes, n_rows))
    for i, answer in enumerate(answers):
        likely = np.einsum("ij,ij->j", answer, joint, out=v[i - 3])  # of that answer
        np.multiply(answer - joint, likely, out=moves[i])
    v[-1] = 1.0
    # All that is summed with the design, in one product.
    by_class = -joint[:, None, :] * joint[None, -columns:, :]
    for k in range(columns):
        by_class[k - columns, k] += joint[k - columns]
    linear = np.concatenate([by_logit, moves[:, -columns:].reshape(-1, n_rows), by_class.reshape(-1, n_rows)])
    sums = linear @ design.T
    gradient, slopes = sums[:columns], sums[columns : 3 * columns].reshape(2, size)
    # ∂q_k/∂p_y = −q_k (δ_ky − q_y) / p_y, of the scores and of both accuracies.
    by_prior = np.zeros((size + 2, n_classes))
    there = point.prior > 0.0
    scores = sums[3 * columns :].reshape(n_classes, size).T
    moved = np.vstack([scores, moves.sum(axis=2)])
    by_prior[:, there] = -moved[:, there] / point.prior[there]
    return LikelihoodSums(
        float(n_rows),
        value,
        gradient,
        square,
        dgemm(1.0, v.T, v.T, trans_a=True),  # of a matrix and itself NumPy's product takes twice as long
        by_prior,
        slopes,
        np.array([f @ squared.T, squared @ squared.T]),
        crossed,
        shares,
    )


def _both_laws(z: FloatArray, f: FloatArray, prior: FloatArray) -> tuple[float, FloatArray, FloatArray]:
    """−ℓ, f_U and the posterior ∝ f_U f_S / p; `z` is written to. One exponential serves all three."""
    weights = f / np.where(prior > 0.0, prior, 1.0)[:, None]
    weights[prior == 0.0] = 1.0
    z -= z.max(axis=0)
    odds = np.exp(z)
    joint = odds * weights
    total, both = odds.sum(axis=0), joint.sum(axis=0)
    lost = np.flatnonzero(both < _LEAST_SUM)
    both[lost] = 1.0
    joint /= both
    value = float(np.log(total / both).sum())
    if len(lost):  # f_U and f_S contradict each other: only their logarithms can be added
        log_joint, joint[:, lost] = log_sum_and_softmax(z[:, lost] + log_weights(f[:, lost].T, prior).T)
        value -= float(log_joint.sum())
    odds /= total
    return value, odds, joint


def _largest(by_class: FloatArray) -> Any:
    """The class with the largest number; the first of equal ones."""
    if len(by_class) == 2:
        return by_class[1] > by_class[0]
    return by_class.argmax(axis=0)
