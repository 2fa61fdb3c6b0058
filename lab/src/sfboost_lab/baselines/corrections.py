"""Corrections that are compared with the library's: "backward" (Natarajan) and "forward" (Patrini), as heads.

Each is a logistic head that is fitted to soft pseudo-labels and knows that these are labels mixed up by ε.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from sfboost.adaptation import Adaptation
from sfboost.adaptation.engine import adapt_rows
from sfboost.adaptation.settings import Settings
from sfboost.heads import SoftLogisticRegression
from sfboost.heads.base import normalised_weight
from sfboost.heads.objectives import by_class, log_sum_and_softmax, n_logit_columns
from sfboost.marginal import pseudo_label_confusion
from sfboost.marginal.probabilities import FloatArray

_ALL = slice(None)
_STEP = 1e-5


def invert_confusion(pseudo: FloatArray, confusion: FloatArray) -> FloatArray:
    """ε⁻¹ f̃ row by row, unclipped: signed labels that are right on average.

    A singular ε is replaced by its pseudo-inverse; rows sum to one in either case.

    Examples
    --------
    >>> confusion = np.array([[0.625, 0.375], [0.375, 0.625]])
    >>> invert_confusion(np.array([[0.25, 0.75]]), confusion)
    array([[-0.5,  1.5]])

    References
    ----------
    .. [1] N. Natarajan, I. S. Dhillon, P. Ravikumar and A. Tewari (2013). Learning with Noisy Labels.
       NeurIPS 26.
    """
    inverse = np.linalg.pinv(confusion, rcond=1e-10)
    signed = pseudo @ inverse.T
    # The pseudo-inverse of a singular ε may lose the sum: put it back evenly.
    return signed + (1.0 - signed.sum(axis=1, keepdims=True)) / signed.shape[1]


class ForwardCrossEntropy:
    """−Σ_y t_y log (ε f)_y: pseudo-labels against the head seen through the confusion ε.

    References
    ----------
    .. [1] G. Patrini, A. Rozza, A. K. Menon, R. Nock and L. Qu (2017). Making Deep Neural Networks
       Robust to Label Noise: A Loss Correction Approach. CVPR.
    """

    def __init__(self, targets: FloatArray, confusion: FloatArray, weight: FloatArray) -> None:
        self.weight = weight
        self.targets = np.ascontiguousarray(targets.T)
        self.confusion = confusion
        self.n_columns = n_logit_columns(targets.shape[1])

    def value_and_gradient(self, logits: FloatArray, rows: slice = _ALL) -> tuple[float, FloatArray]:
        """Of the weighted sum over rows, as the library's objectives."""
        weight, targets = self.weight[rows], self.targets[:, rows]
        _, fitted = log_sum_and_softmax(by_class(logits))
        seen = np.maximum(self.confusion @ fitted, np.finfo(np.float64).tiny)
        value = -float(weight @ np.einsum("ij,ij->j", targets, np.log(seen)))
        slope = -self.confusion.T @ (targets / seen)
        gradient = fitted * (slope - np.einsum("ij,ij->j", fitted, slope)) * weight
        return value, gradient[-self.n_columns :].T

    def curvature(self, logits: FloatArray, rows: slice = _ALL) -> FloatArray:
        """Second derivatives of each row, by differences of its gradient; of shape (n, columns, columns)."""
        columns = []
        for step in _STEP * np.eye(self.n_columns):
            before, after = (self.value_and_gradient(logits + move, rows)[1] for move in (-step, step))
            columns.append((after - before) / (2 * _STEP))
        return np.stack(columns, axis=2) / self.weight[rows, None, None]

    def rounded(self) -> ForwardCrossEntropy:
        """In single precision sums of products are not worth it."""
        return self


class BackwardHead(SoftLogisticRegression):
    """Fitted to labels that are made right on average; the loss stays convex."""

    def fit_soft(self, X: Any, targets: FloatArray, sample_weight: FloatArray | None = None) -> Self:
        """Fit to soft pseudo-labels."""
        confusion = pseudo_label_confusion(targets, targets, sample_weight)
        return super().fit_soft(X, invert_confusion(targets, confusion), sample_weight)


class ForwardHead(SoftLogisticRegression):
    """Fitted to the labels themselves, through ε."""

    def fit_soft(self, X: Any, targets: FloatArray, sample_weight: FloatArray | None = None) -> Self:
        """Fit to soft pseudo-labels, from the head that takes them for labels."""
        confusion = pseudo_label_confusion(targets, targets, sample_weight)
        super().fit_soft(X, targets, sample_weight)
        share = normalised_weight(sample_weight, len(targets))
        return self.fit_objective(X, ForwardCrossEntropy(targets, confusion, share), self.linear_fit_)


HEADS: dict[str, type[SoftLogisticRegression]] = {"backward": BackwardHead, "forward": ForwardHead}


@dataclass(eq=False, repr=False)
class _Corrected(Settings):
    """The library's choices but for the head, whose penalty it still chooses by cross-fitted likelihood."""

    by: str = "backward"

    def make_head(self, l2: float | None, tol: float = 1e-7) -> SoftLogisticRegression:
        """Return a fresh head."""
        return HEADS[self.by](l2=1e-4 if l2 is None else l2, tol=tol)


def adapt_corrected(
    stable_proba: Any, X_unstable: Any, correction: str, *, random_state: int = 0, **options: Any
) -> Adaptation:
    """`sfboost.adaptation.adapt` by "backward" or "forward".

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 2000)
    >>> stable = np.where(rng.random(2000) < 0.75, y, 1 - y) * 0.5 + 0.25
    >>> adapted = adapt_corrected(stable, y[:, None] + rng.normal(size=(2000, 1)), "forward")
    >>> adapted.decision.kind
    'adapted'
    """
    choices = _Corrected(correction="none", rounds=1, random_state=random_state, by=correction)
    return adapt_rows(stable_proba, X_unstable, choices.resolved(), **options)
