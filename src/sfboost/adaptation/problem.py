"""The adaptation problem on clean arrays: everything the corrections need, computed once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import _safe_indexing

from sfboost.marginal import (
    PseudoLabelStatistics,
    floored_log,
    log_likelihood_rows,
    log_weights,
)
from sfboost.marginal.probabilities import FloatArray

IntArray = npt.NDArray[np.intp]

#: Class position of a row whose label is not known.
UNKNOWN = -1


@dataclass(frozen=True, eq=False)
class Problem:
    """Unlabelled (or partly labelled) rows of the new domain.

    Attributes
    ----------
    stable : array of shape (n, K)
        f_S, calibrated probabilities.
    X : matrix of shape (n, d)
        Unstable features, already standardised if that was asked for.
    known : integer array of shape (n,)
        Class position of rows whose label is known, else `UNKNOWN`.
    weight : array of shape (n,)
        Row weights, not normalised.
    """

    stable: FloatArray
    X: Any
    known: IntArray
    weight: FloatArray

    @property
    def n_classes(self) -> int:
        """K."""
        return self.stable.shape[1]

    @cached_property
    def labelled(self) -> IntArray:
        """Numbers of the rows whose label is known."""
        return np.flatnonzero(self.known != UNKNOWN)

    @property
    def all_labelled(self) -> bool:
        """Whether there is nothing left to infer."""
        return len(self.labelled) == len(self.stable)

    @cached_property
    def statistics(self) -> PseudoLabelStatistics:
        """Pseudo-label statistics of all rows (labels are not used: they say nothing of f_S's noise)."""
        return PseudoLabelStatistics.from_proba(self.stable, self.weight)

    @cached_property
    def prior(self) -> FloatArray:
        """Class shares: known labels as they are, the other rows by f_S."""
        total = self.statistics.total
        if len(self.labelled):
            weight = self.weight[self.labelled]
            total = total - weight @ self.stable[self.labelled]
            total = total + np.bincount(self.known[self.labelled], weight, self.n_classes)
        total = np.maximum(total, 0.0)
        return total / total.sum()

    @cached_property
    def log_weights(self) -> FloatArray:
        """log(f_S / p), the evidence of X_S for each class."""
        return log_weights(self.stable, self.prior)

    @cached_property
    def class_evidence(self) -> FloatArray:
        """Log-weights in which a known label leaves one class standing."""
        return self.fix_labels(self.log_weights, np.eye(self.n_classes), masked=True)

    def fix_labels(self, rows: FloatArray, by_class: FloatArray, *, masked: bool = False) -> FloatArray:
        """Replace row i with known label y by `by_class[y]` (or, masked, rule the other classes out)."""
        if not len(self.labelled):
            return rows
        fixed = rows.copy()
        replacement = by_class[self.known[self.labelled]]
        if masked:
            replacement = fixed[self.labelled] + floored_log(replacement)
        fixed[self.labelled] = replacement
        return fixed

    def log_likelihood_rows(self, log_unstable: FloatArray) -> FloatArray:
        """ℓ row by row; a labelled row contributes the likelihood of its label too."""
        return log_likelihood_rows(log_unstable, self.class_evidence)

    def mean_log_likelihood(self, log_unstable: FloatArray) -> float:
        """Weighted mean of ℓ over the rows."""
        return float(self.weight @ self.log_likelihood_rows(log_unstable) / self.weight.sum())

    def take(self, rows: IntArray) -> Problem:
        """The problem of some of the rows."""
        return replace(
            self,
            stable=self.stable[rows],
            X=_safe_indexing(self.X, rows),
            known=self.known[rows],
            weight=self.weight[rows],
        )
