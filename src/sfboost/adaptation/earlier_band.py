"""How adaptations of earlier versions were guarded: saved ones go on answering as they did."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from sfboost.adaptation.fitting import UnstableModel
from sfboost.marginal import floored_log
from sfboost.marginal.probabilities import FloatArray

_REACH = 1.64
# Rows at a time, so that one row of numbers per parameter stays small.
_BLOCK = 32768


@dataclass(frozen=True, eq=False)
class EarlierBand:
    """f_U drawn towards the prior, row by row, by what a leak and sampling error may be of it.

    Attributes
    ----------
    leak : float
    prior : array of shape (K,)
    confusion : array of shape (K, K)
    head_covariance : array of shape (P, P) or None
    pseudo_error : float
        Standard error of the mean pseudo-label at a row, for heads without `head_covariance`.
    """

    leak: float
    prior: FloatArray
    confusion: FloatArray
    head_covariance: FloatArray | None
    pseudo_error: float

    def log_unstable(self, model: UnstableModel, X: Any) -> FloatArray:
        """Log of the guarded f_U."""
        tiny = np.finfo(np.float64).tiny
        log_head = model.log_head(X)
        base = np.exp(log_head)
        moved = base - self.prior
        seen = moved if model.confusion is not None else moved @ self.confusion.T
        reach = np.maximum(np.abs(seen).max(axis=1), tiny)
        if self.head_covariance is None:
            doubt = _REACH * self.pseudo_error / reach
        else:
            error = _error_along(base, moved, X, self.head_covariance)
            doubt = _REACH * error / np.maximum((moved**2).sum(axis=1), tiny)
        trust = np.clip(1.0 - self.leak / reach - doubt, 0.0, 1.0)
        return floored_log(self.prior + trust[:, None] * (np.exp(model.corrected(log_head)) - self.prior))


def _error_along(base: FloatArray, moved: FloatArray, X: Any, covariance: FloatArray) -> FloatArray:
    """Standard error of the head's probabilities along q̂ − p, times its length, by the delta method."""
    # The derivative of the softmax is diag(q) − q qᵀ.
    by_logit = base * (moved - (base * moved).sum(axis=1, keepdims=True))
    if base.shape[1] == 2:
        by_logit = by_logit[:, 1:]
    variance = np.empty(len(base))
    for first in range(0, len(base), _BLOCK):
        block = slice(first, first + _BLOCK)
        rows = X[block].toarray() if sparse.issparse(X) else X[block]
        design = np.column_stack([rows, np.ones(len(rows))])
        direction = (by_logit[block, :, None] * design[:, None, :]).reshape(len(design), -1)
        variance[block] = ((direction @ covariance) * direction).sum(axis=1)
    return np.sqrt(np.maximum(variance, 0.0))
