"""The adaptation problem on clean arrays: everything the corrections need, computed once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing

from sfboost.adaptation.row_sample import KeyArray, row_keys
from sfboost.marginal import (
    PseudoLabelStatistics,
    floored_log,
    log_likelihood_rows,
    log_weights,
)
from sfboost.marginal.probabilities import FloatArray, IntArray

#: Class position of a row whose label is not known.
UNKNOWN = -1
# Log-weight of a class that a known label rules out: far below any floored logarithm.
_RULED_OUT = -1e4


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
    given_prior : array of shape (K,) or None
        The p of w = f_S / p. None is the mean of f_S here: P(Y | X_S) is stable (the paper). The prior of
        the training rows instead says that P(X_S | Y) is (label shift).
    raw : matrix of shape (n, d) or None
        Unstable features as they were given, where they are not X itself.
    centre : array of shape (columns, d + 1) or None
        The head that penalties shrink to, intercept last; None is zero.
    """

    stable: FloatArray
    X: Any
    known: IntArray
    weight: FloatArray
    given_prior: FloatArray | None = None
    raw: Any = None
    centre: FloatArray | None = None

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
    def keys(self) -> KeyArray:
        """A hash of each row as it was given: what chooses rows where some are enough."""
        return row_keys(self.stable, self.X if self.raw is None else self.raw, self.known, self.weight)

    @cached_property
    def statistics(self) -> PseudoLabelStatistics:
        """Pseudo-label statistics of all rows (labels are not used: they say nothing of f_S's noise)."""
        return PseudoLabelStatistics.from_proba(self.stable, self.weight)

    @cached_property
    def prior(self) -> FloatArray:
        """The p of w = f_S / p. If not given: the mean of f_S, or the labels if every row has one.

        Some labels do not enter: rows that were labelled because of their class would pull it, and nothing
        here tells how they were chosen.
        """
        if self.given_prior is not None:
            return self.given_prior
        if not self.all_labelled:
            return self.statistics.prior
        return np.asarray(np.bincount(self.known, self.weight, self.n_classes) / self.weight.sum())

    @cached_property
    def log_weights(self) -> FloatArray:
        """log(f_S / p), the evidence of X_S for each class."""
        return log_weights(self.stable, self.prior)

    @cached_property
    def class_evidence(self) -> FloatArray:
        """Log-weights in which a known label y leaves one class standing, with weight 1 / p_y.

        What f_S says of a labelled row is left out: it is a constant of the likelihood, and a label beats a
        stable predictor that is certain of another class. So ℓ is zero at f_U ≡ p with labels too.
        """
        alone = np.where(np.eye(self.n_classes) > 0.0, -floored_log(self.prior), _RULED_OUT)
        return self.fix_labels(self.log_weights, alone)

    def fix_labels(self, rows: FloatArray, by_class: FloatArray) -> FloatArray:
        """Replace row i with known label y by `by_class[y]`."""
        if not len(self.labelled):
            return rows
        fixed = rows.copy()
        fixed[self.labelled] = by_class[self.known[self.labelled]]
        return fixed

    def mean_log_likelihood(self, log_unstable: FloatArray) -> float:
        """Weighted mean of ℓ over the rows; a labelled row contributes the likelihood of its label too."""
        rows = log_likelihood_rows(log_unstable, self.class_evidence)
        return float(self.weight @ rows / self.weight.sum())

    def take(self, rows: IntArray | slice) -> Problem:
        """The problem of some of the rows; a slice of dense rows is not copied."""
        return replace(
            self,
            stable=self.stable[rows],
            X=_safe_indexing(self.X, rows),
            raw=None if self.raw is None else _safe_indexing(self.raw, rows),
            known=self.known[rows],
            weight=self.weight[rows],
        )
