"""Scores of predicted probabilities against true labels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sfboost.adaptation.scores import METRICS, weighted_scores
from sfboost.marginal.probabilities import FloatArray, IntArray


def score_predictions(
    y: IntArray, proba: FloatArray, costs: FloatArray | None = None, only: str | None = None
) -> dict[str, float]:
    """Every metric of `METRICS` and, with costs, "cost"; AUROC is NaN where a class is missing.

    Parameters
    ----------
    y : integer array of shape (n,)
        Class positions 0..K-1.
    proba : array of shape (n, K)
    costs : array of shape (K, K), optional
        ``costs[y, j]`` of deciding j where the truth is y: decisions are then the cheapest ones.
    only : str, optional
        The one metric that is wanted.

    Examples
    --------
    >>> scores = score_predictions(np.array([0, 1]), np.array([[0.8, 0.2], [0.4, 0.6]]))
    >>> scores["accuracy"], round(scores["brier"], 3)
    (1.0, 0.1)
    """
    scores = weighted_scores(proba, np.eye(proba.shape[1])[y], costs, total=len(y), only=only)
    return {name: scores[name] for name in (*METRICS, "cost") if name in scores}


def is_skewed(shares: Sequence[Sequence[float]]) -> bool:
    """Whether the smallest class has, over some domains, less than half of its even share.

    Accuracy then says little of it, and AUROC and balanced accuracy more.

    Examples
    --------
    >>> is_skewed([(0.9, 0.1), (0.8, 0.2)]), is_skewed([(0.6, 0.4)]), is_skewed([])
    (True, False, False)
    """
    known = mean_shares(shares)
    return bool(known) and min(known) < 0.5 / len(known)


def mean_shares(shares: Sequence[Sequence[float]]) -> list[float]:
    """Of the classes, each domain counting the same; none where none is known."""
    known = [row for row in shares if len(row)]
    return np.mean(known, axis=0).tolist() if known else []
