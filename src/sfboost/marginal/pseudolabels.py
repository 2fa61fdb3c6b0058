"""Pseudo-labels from stable probabilities: soft, hard or sampled."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sfboost.marginal.probabilities import FloatArray
from sfboost.marginal.statistics import PseudoLabelStatistics


def _soft(proba: FloatArray, _: np.random.Generator) -> FloatArray:
    return proba


def _hard(proba: FloatArray, _: np.random.Generator) -> FloatArray:
    return np.eye(proba.shape[1])[proba.argmax(axis=1)]


def _sampled(proba: FloatArray, rng: np.random.Generator) -> FloatArray:
    chosen = (rng.random(len(proba))[:, None] > proba.cumsum(axis=1)).sum(axis=1)
    return np.eye(proba.shape[1])[np.minimum(chosen, proba.shape[1] - 1)]


#: Name → function. `soft` is Algorithm 1; `hard` is the argmax of Section 3; `sampled` is the
#: stochastic label of Theorem 4.4, which has the expectation of `soft` and more variance.
PSEUDO_LABELS: dict[str, Callable[[FloatArray, np.random.Generator], FloatArray]] = {
    "soft": _soft,
    "hard": _hard,
    "sampled": _sampled,
}


def make_pseudo_labels(
    proba: FloatArray, kind: str = "soft", random_state: int | np.random.Generator | None = 0
) -> FloatArray:
    """Turn stable probabilities into pseudo-labels of shape (n, K) whose rows sum to one.

    Examples
    --------
    >>> import numpy as np
    >>> make_pseudo_labels(np.array([[0.3, 0.7]]), "hard")
    array([[0., 1.]])
    """
    if kind not in PSEUDO_LABELS:
        raise ValueError(f"pseudo_labels={kind!r} is not known: use one of {sorted(PSEUDO_LABELS)}.")
    return PSEUDO_LABELS[kind](proba, np.random.default_rng(random_state))


def pseudo_label_confusion(
    pseudo: FloatArray, proba: FloatArray, sample_weight: FloatArray | None = None
) -> FloatArray:
    """ε of any pseudo-label: Pr[Ŷ = y | Y = y'] = Σ Ŷ_y f_y' / Σ f_y' (Algorithm 1 line 3).

    For soft labels the sums are those of `PseudoLabelStatistics`, which makes ε of them.
    """
    weighted = proba if sample_weight is None else proba * sample_weight[:, None]
    total = weighted.sum(axis=0)
    return PseudoLabelStatistics(float(total.sum()), total, pseudo.T @ weighted).confusion
