"""ℓ, its derivatives and its sampling error as sums over rows: some rows here, others elsewhere, then added.

Everything that a fit by Newton's method, its standard errors and the guard need is a sum of functions of one
row at one point (θ, p). Rows can be anywhere and in any order; only these sums are ever put together.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields

import numpy as np
from scipy.linalg.blas import dgemm

from sfboost.adaptation.standardize import Standardizer
from sfboost.heads.objectives import log_sum_and_softmax, n_logit_columns
from sfboost.marginal import log_weights
from sfboost.marginal.probabilities import FloatArray

# Rows at a time: their numbers stay in the processor's cache.
_ROWS = 4096
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
        return LikelihoodSums(float(n_rows), value, gradient, no, no, no, no, crossed, shares)
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
        return LikelihoodSums(float(n_rows), value, gradient, square, no, no, no, crossed, shares)
    v = np.empty((size + 2 * n_classes + 3, n_rows))
    np.multiply(-by_logit[:, None, :], design, out=v[:size].reshape(columns, width, n_rows))
    v[size : size + n_classes] = f
    np.square(f, out=v[size + n_classes : size + 2 * n_classes])
    v[-1] = 1.0
    # All that is summed with the design, in one product: derivatives of ℓ; of how likely each of two answers
    # is, the adapted and the stable one; and ∂q_k/∂log p_y = −q_k (δ_ky − q_y). Over all classes y they sum
    # to nothing: the first of two follows from the other.
    linear, here = np.empty((columns * (3 + columns), n_rows)), joint[-columns:]
    by_answer = linear[columns : 3 * columns].reshape(2, columns, n_rows)
    by_class = linear[3 * columns :].reshape(columns, columns, n_rows)
    linear[:columns] = by_logit
    for i, (answer, likely) in enumerate(_decided(joint, f)):
        v[i - 3] = likely
        np.multiply(answer - here, likely, out=by_answer[i])
    np.multiply(-here[:, None, :], here, out=by_class)
    for k in range(columns):
        by_class[k, k] += here[k]
    sums = linear @ design.T
    gradient, slopes = sums[:columns], sums[columns : 3 * columns].reshape(2, size)
    moved = np.vstack([sums[3 * columns :].reshape(columns, size).T, slopes[:, width - 1 :: width]])
    if columns < n_classes:
        moved = np.column_stack([-moved, moved])
    by_prior = np.zeros((size + 2, n_classes))
    there = point.prior > 0.0
    by_prior[:, there] = -moved[:, there] / point.prior[there]
    return LikelihoodSums(
        float(n_rows),
        value,
        gradient,
        square,
        dgemm(1.0, v.T, v.T, trans_a=True),  # of a matrix and itself NumPy's product takes twice as long
        by_prior,
        slopes,
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


def _decided(joint: FloatArray, f: FloatArray) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Of the adapted and the stable answer: 1 at its class, among those with a logit; and how likely it is.

    Of equal classes the first is the answer.
    """
    for by_class in (joint, f):
        if len(joint) == 2:
            second = by_class[1] > by_class[0]
            yield second[None].astype(np.float64), np.where(second, joint[1], joint[0])
        else:
            answer = (np.arange(len(joint))[:, None] == by_class.argmax(axis=0)).astype(np.float64)
            yield answer, np.einsum("ij,ij->j", answer, joint)
