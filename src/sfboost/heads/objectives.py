"""What a linear head minimises: three losses of its logits, with weights that sum to one.

With two classes a head has one logit column z (the log-odds of the second class); with K > 2 it has
K columns. Each loss returns its value and its gradient in the logits.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from scipy.special import log_softmax

from sfboost.marginal.probabilities import FloatArray


class Objective(Protocol):
    """A loss of logits of shape (n, 1) for two classes, (n, K) for more."""

    weight: FloatArray

    @property
    def n_columns(self) -> int:
        """Number of logit columns."""

    def value_and_gradient(self, logits: FloatArray) -> tuple[float, FloatArray]:
        """Weighted sum over rows, and its gradient with the shape of `logits`."""


def n_logit_columns(n_classes: int) -> int:
    """One column of log-odds for two classes, K columns for more."""
    return 1 if n_classes == 2 else n_classes


def log_proba_from_logits(logits: FloatArray) -> FloatArray:
    """Log-probabilities of shape (n, K) from the logit columns of a head."""
    if logits.shape[1] == 1:
        softplus = np.logaddexp(0.0, logits[:, 0])
        return np.column_stack([-softplus, logits[:, 0] - softplus])
    return log_softmax(logits, axis=1)


def _one_plus_and_sigmoid(z: FloatArray) -> tuple[FloatArray, FloatArray]:
    """1 + e^−|z| and 1 / (1 + e^−z), sharing the one exponential that both need.

    softplus(z) = max(z, 0) + log(1 + e^−|z|), and the argument of that logarithm is between 1 and 2.
    """
    small = np.abs(z)
    np.negative(small, out=small)
    np.exp(small, out=small)
    sigmoid = np.where(z >= 0.0, 1.0, small)
    small += 1.0
    sigmoid /= small
    return small, sigmoid


def _log_sum_and_softmax(z: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Logarithm of Σ_y e^z and the softmax of each row, sharing the one exponential that both need."""
    largest = z.max(axis=1, keepdims=True)
    proba = z - largest
    np.exp(proba, out=proba)
    total = proba.sum(axis=1, keepdims=True)
    proba /= total
    return np.log(total[:, 0]) + largest[:, 0], proba


class CrossEntropy:
    """−Σ_y t_y log f_y: the soft-label loss (Algorithm 1 line 4).

    Targets may be signed as long as each row sums to one (Natarajan's backward loss): the loss stays
    convex in the logits.
    """

    def __init__(self, targets: FloatArray, weight: FloatArray) -> None:
        self.weight = weight
        self.targets = targets[:, 1:] if targets.shape[1] == 2 else targets
        self.n_columns = self.targets.shape[1]

    def value_and_gradient(self, logits: FloatArray) -> tuple[float, FloatArray]:
        """See `Objective`."""
        weight, targets = self.weight, self.targets
        if self.n_columns == 1:
            z = logits[:, 0]
            one_plus, gradient = _one_plus_and_sigmoid(z)
            rows = np.log(one_plus, out=one_plus)
            rows += np.maximum(z, 0.0)
            rows -= targets[:, 0] * z
            gradient -= targets[:, 0]
            gradient *= weight
            return float(weight @ rows), gradient[:, None]
        total, gradient = _log_sum_and_softmax(logits)
        rows = total - np.einsum("ij,ij->i", targets, logits)
        gradient -= targets
        gradient *= weight[:, None]
        return float(weight @ rows), gradient


class LogLikelihood:
    """−log of a ratio of sums over classes: log Σ_y f_y e^below − log Σ_y f_y e^above.

    With `below` = 0 and `above` = log(f_S / p) it is −ℓ, the likelihood behind EM. A row whose label is
    known keeps one class in `above`; if `below` is then log(f_S / p) too, the row contributes the joint
    risk of Eq. 3.2 instead.
    """

    def __init__(self, above: FloatArray, weight: FloatArray, below: FloatArray | None = None) -> None:
        self.weight = weight
        self.n_columns = n_logit_columns(above.shape[1])
        if self.n_columns == 1:
            # Only the difference of the two classes matters for the gradient.
            self.constant = -float(weight @ above[:, 0])
            self.above = above[:, 1] - above[:, 0]
            self.below = None
            if below is not None:
                self.constant += float(weight @ below[:, 0])
                self.below = below[:, 1] - below[:, 0]
        else:
            self.constant, self.above, self.below = 0.0, above, below

    def value_and_gradient(self, logits: FloatArray) -> tuple[float, FloatArray]:
        """See `Objective`."""
        z = logits[:, 0] if self.n_columns == 1 else logits
        below = z if self.below is None else z + self.below
        above = z + self.above
        if self.n_columns == 1:
            total, gradient = _one_plus_and_sigmoid(below)
            kept, posterior = _one_plus_and_sigmoid(above)
            total /= kept
            rows = np.log(total, out=total)
            rows += np.maximum(below, 0.0)
            rows -= np.maximum(above, 0.0)
            gradient -= posterior
            gradient *= self.weight
            return self.constant + float(self.weight @ rows), gradient[:, None]
        total, gradient = _log_sum_and_softmax(below)
        kept, posterior = _log_sum_and_softmax(above)
        gradient -= posterior
        gradient *= self.weight[:, None]
        return self.constant + float(self.weight @ (total - kept)), gradient


class ForwardCrossEntropy:
    """−Σ_y t_y log (ε f)_y: pseudo-labels against the head seen through the confusion ε."""

    def __init__(self, targets: FloatArray, confusion: FloatArray, weight: FloatArray) -> None:
        self.weight = weight
        self.targets = targets
        self.confusion = confusion
        self.n_columns = n_logit_columns(targets.shape[1])

    def value_and_gradient(self, logits: FloatArray) -> tuple[float, FloatArray]:
        """See `Objective`."""
        full = np.column_stack([np.zeros(len(logits)), logits]) if self.n_columns == 1 else logits
        _, fitted = _log_sum_and_softmax(full)
        seen = np.maximum(fitted @ self.confusion.T, np.finfo(np.float64).tiny)
        value = -float(self.weight @ np.einsum("ij,ij->i", self.targets, np.log(seen)))
        slope = -(self.targets / seen) @ self.confusion
        gradient = fitted * (slope - np.einsum("ij,ij->i", fitted, slope)[:, None]) * self.weight[:, None]
        return value, gradient[:, 1:] if self.n_columns == 1 else gradient
