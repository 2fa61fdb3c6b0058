"""Class shares of many domains: means of f_S, shrunk towards their mean as far as rows are few."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sfboost.marginal.probabilities import FloatArray

_LEAST = 1e-6


def shrunken_shares(stable: FloatArray, domain: npt.NDArray[np.intp], n_domains: int) -> FloatArray:
    """Pr[Y] of each domain, of shape (D, K): p̄ + b_d (p_d − p̄), b_d = τ² / (τ² + σ²/n_d).

    τ² is how much the shares of domains differ beyond what sampling explains (method of moments).
    """
    sizes = np.maximum(np.bincount(domain, minlength=n_domains), 1).astype(np.float64)
    own = np.column_stack([np.bincount(domain, column, n_domains) for column in stable.T]) / sizes[:, None]
    overall = stable.mean(axis=0)
    spread = ((stable - own[domain]) ** 2).sum(axis=0) / max(len(stable) - n_domains, 1)
    noise = spread / sizes[:, None]
    # Weighted by size, so that small domains do not make up the difference.
    weight = sizes / sizes.sum()
    between = np.maximum(weight @ (own - overall) ** 2 - weight @ noise, 0.0)
    share = between.sum() / np.maximum(between.sum() + noise.sum(axis=1), np.finfo(np.float64).tiny)
    found = np.maximum(overall + share[:, None] * (own - overall), _LEAST)
    return np.asarray(found / found.sum(axis=1, keepdims=True))
