"""What a linear head minimises: three losses of its logits, with weights that sum to one.

With two classes a head has one logit column z (the log-odds of the second class); with K > 2 it has
K columns. Each loss returns its value and its first and second derivatives in the logits.

Inside, arrays are (K, rows): sums over classes then run along contiguous rows. Logits and gradients keep the
shape (rows, columns); column-major ones are read and written without a copy.
"""

from __future__ import annotations

from copy import copy
from typing import Protocol

import numpy as np

from sfboost.marginal.probabilities import FloatArray, log_softmax

_ALL = slice(None)
# Below this a sum of products of exponentials may have lost digits to underflow.
_LEAST_SUM = {np.dtype(np.float64): 1e-200, np.dtype(np.float32): 1e-30}


class Objective(Protocol):
    """A loss of logits of shape (n, 1) for two classes, (n, K) for more."""

    weight: FloatArray

    @property
    def n_columns(self) -> int:
        """Number of logit columns."""

    def value_and_gradient(self, logits: FloatArray, rows: slice = _ALL) -> tuple[float, FloatArray]:
        """Weighted sum over `rows`, and its gradient with the shape of `logits`, the logits of these rows."""

    def curvature(self, logits: FloatArray, rows: slice = _ALL) -> FloatArray:
        """Second derivatives of each row's summand without its weight, of shape (n, columns, columns)."""

    def rounded(self) -> Objective:
        """The same for logits in single precision, whose gradients are; sums over rows stay in double."""


def n_logit_columns(n_classes: int) -> int:
    """One column of log-odds for two classes, K columns for more."""
    return 1 if n_classes == 2 else n_classes


def log_proba_from_logits(logits: FloatArray) -> FloatArray:
    """Log-probabilities of shape (n, K) from the logit columns of a head."""
    if logits.shape[1] == 1:
        softplus = np.logaddexp(0.0, logits[:, 0])
        return np.column_stack([-softplus, logits[:, 0] - softplus])
    return log_softmax(logits)


def by_class(logits: FloatArray) -> FloatArray:
    """The logits of every class, of shape (K, n); of two classes the first one has zero."""
    if logits.shape[1] > 1:
        return logits.T
    both = np.zeros((2, len(logits)), dtype=logits.dtype)
    both[1] = logits[:, 0]
    return both


def log_sum_and_softmax(z: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Logarithm of Σ_y e^z and the softmax over classes, sharing the one exponential that both need."""
    largest = z.max(axis=0)
    proba = z - largest
    np.exp(proba, out=proba)
    total = proba.sum(axis=0)
    proba /= total
    np.log(total, out=total)
    total += largest
    return total, proba


class CrossEntropy:
    """−Σ_y t_y log f_y: the soft-label loss (Algorithm 1 line 4).

    Targets may be signed as long as each row sums to one (Natarajan's backward loss): the loss stays
    convex in the logits.

    References
    ----------
    .. [1] N. Natarajan, I. S. Dhillon, P. Ravikumar and A. Tewari (2013). Learning with Noisy Labels.
       NeurIPS 26.
    """

    def __init__(self, targets: FloatArray, weight: FloatArray) -> None:
        self.weight = weight
        self.targets = np.ascontiguousarray(targets.T)
        self.n_columns = n_logit_columns(targets.shape[1])

    def value_and_gradient(self, logits: FloatArray, rows: slice = _ALL) -> tuple[float, FloatArray]:
        """See `Objective`."""
        weight, targets, z = self.weight[rows], self.targets[:, rows], by_class(logits)
        loss, gradient = log_sum_and_softmax(z)
        loss -= np.einsum("ij,ij->j", targets, z)
        gradient -= targets
        gradient *= weight.astype(z.dtype, copy=False)
        return float(weight @ loss), gradient[-self.n_columns :].T

    def curvature(self, logits: FloatArray, rows: slice = _ALL) -> FloatArray:
        """See `Objective`; labels do not bend the loss."""
        return _bend(by_class(logits), self.n_columns)

    def rounded(self) -> CrossEntropy:
        """See `Objective`."""
        other = copy(self)
        other.targets = self.targets.astype(np.float32)
        return other


class _Tilt:
    """The class weights e^a of each row: what they make of odds."""

    def __init__(self, log_weights: FloatArray) -> None:
        self.log_weights = log_weights
        self.largest = log_weights.max(axis=1)
        self.weights = np.subtract(log_weights.T, self.largest, order="C")
        np.exp(self.weights, out=self.weights)

    def apply(self, odds: FloatArray, z: FloatArray, rows: slice) -> tuple[FloatArray, ...]:
        """Logarithm of Σ_y odds_y e^a_y; and the summands and their sum, divided by one number per row.

        `odds` are e^z divided by the largest.
        """
        tilted = odds * self.weights[:, rows]
        total = tilted.sum(axis=0)
        lost = np.flatnonzero(total < _LEAST_SUM[total.dtype])
        total[lost] = 1.0
        log_total = np.log(total) + self.largest[rows]
        if len(lost):  # odds and e^a contradict each other: only their logarithms can be added
            sums = z[:, lost] - z[:, lost].max(axis=0) + self.log_weights[rows][lost].T
            log_total[lost], tilted[:, lost] = log_sum_and_softmax(sums)
        return log_total, tilted, total

    def rounded(self) -> _Tilt:
        """The same for odds in single precision."""
        other = copy(self)
        other.weights = self.weights.astype(np.float32)
        return other


class LogLikelihood:
    """−log of a ratio of sums over classes: log Σ_y f_y e^below − log Σ_y f_y e^above.

    With `below` = 0 and `above` = log(f_S / p) it is −ℓ, the likelihood behind EM. A row whose label is
    known keeps one class in `above`; if `below` is then log(f_S / p) too, the row contributes the joint
    risk of Eq. 3.2 instead.

    References
    ----------
    .. [1] A. P. Dempster, N. M. Laird and D. B. Rubin (1977). Maximum Likelihood from Incomplete Data
       via the EM Algorithm. Journal of the Royal Statistical Society B 39.
    """

    def __init__(self, above: FloatArray, weight: FloatArray, below: FloatArray | None = None) -> None:
        self.weight = weight
        self.n_columns = n_logit_columns(above.shape[1])
        self.above = _Tilt(above)
        self.below = None if below is None else _Tilt(below)

    def value_and_gradient(self, logits: FloatArray, rows: slice = _ALL) -> tuple[float, FloatArray]:
        """See `Objective`."""
        weight, z = self.weight[rows], by_class(logits)
        odds = z - z.max(axis=0)
        np.exp(odds, out=odds)
        gain, above, total_above = self.above.apply(odds, z, rows)
        if self.below is None:
            below, total_below = odds, odds.sum(axis=0)
            gain -= np.log(total_below)
        else:
            expected, below, total_below = self.below.apply(odds, z, rows)
            gain -= expected
        below *= (weight / total_below).astype(z.dtype, copy=False)
        above *= (weight / total_above).astype(z.dtype, copy=False)
        below -= above
        return -float(weight @ gain), below[-self.n_columns :].T

    def curvature(self, logits: FloatArray, rows: slice = _ALL) -> FloatArray:
        """See `Objective`: complete less missing information, which need not be positive."""
        z = by_class(logits)
        below = z if self.below is None else z + self.below.log_weights[rows].T
        above = z + self.above.log_weights[rows].T
        return _bend(below, self.n_columns) - _bend(above, self.n_columns)

    def rounded(self) -> LogLikelihood:
        """See `Objective`."""
        other = copy(self)
        other.above = self.above.rounded()
        other.below = None if self.below is None else self.below.rounded()
        return other


def _bend(z: FloatArray, columns: int) -> FloatArray:
    """Second derivatives of log Σ_y e^z in the logit columns: the covariance of a label drawn by softmax."""
    proba = log_sum_and_softmax(z)[1][-columns:].T
    covariance = -proba[:, :, None] * proba[:, None, :]
    diagonal = np.arange(columns)
    covariance[:, diagonal, diagonal] += proba
    return covariance
