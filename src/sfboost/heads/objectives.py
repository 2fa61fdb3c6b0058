"""What a linear head minimises: three losses of its logits, with weights that sum to one.

With two classes a head has one logit column z (the log-odds of the second class); with K > 2 it has
K columns. Each loss returns its value and its gradient in the logits.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from scipy.special import log_softmax, logsumexp, softmax

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
        softplus, _ = _softplus_and_sigmoid(logits[:, 0])
        return np.column_stack([-softplus, logits[:, 0] - softplus])
    return log_softmax(logits, axis=1)


def _softplus_and_sigmoid(z: FloatArray) -> tuple[FloatArray, FloatArray]:
    """log(1 + e^z) and 1 / (1 + e^-z), sharing the one exponential that both need."""
    small = np.exp(-np.abs(z))
    positive = z >= 0.0
    sigmoid = np.where(positive, 1.0, small)
    sigmoid /= 1.0 + small
    softplus = np.log1p(small, out=small)
    softplus += np.where(positive, z, 0.0)
    return softplus, sigmoid


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
            softplus, sigmoid = _softplus_and_sigmoid(z)
            residual = sigmoid - targets[:, 0]
            return float(weight @ (softplus - targets[:, 0] * z)), (weight * residual)[:, None]
        fitted = log_softmax(logits, axis=1)
        value = -float(weight @ np.einsum("ij,ij->i", targets, fitted))
        return value, (np.exp(fitted, out=fitted) - targets) * weight[:, None]


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
            total, prior = _softplus_and_sigmoid(below)
            kept, posterior = _softplus_and_sigmoid(above)
            total -= kept
            prior -= posterior
            prior *= self.weight
            return self.constant + float(self.weight @ total), prior[:, None]
        total, kept = logsumexp(below, axis=1), logsumexp(above, axis=1)
        gradient = np.exp(below - total[:, None]) - np.exp(above - kept[:, None])
        return self.constant + float(self.weight @ (total - kept)), gradient * self.weight[:, None]


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
        fitted = softmax(full, axis=1)
        seen = np.maximum(fitted @ self.confusion.T, np.finfo(np.float64).tiny)
        value = -float(self.weight @ np.einsum("ij,ij->i", self.targets, np.log(seen)))
        slope = -(self.targets / seen) @ self.confusion
        gradient = fitted * (slope - np.einsum("ij,ij->i", fitted, slope)[:, None]) * self.weight[:, None]
        return value, gradient[:, 1:] if self.n_columns == 1 else gradient
