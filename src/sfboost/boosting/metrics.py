"""Scores of predicted probabilities against true labels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from sklearn.metrics import roc_auc_score

from sfboost.adaptation.costs import cheapest
from sfboost.calibration import expected_calibration_error
from sfboost.marginal.probabilities import FloatArray

#: Names of the scores, in the order in which they are shown.
METRICS = ("accuracy", "balanced_accuracy", "log_loss", "brier", "auroc", "ece")
#: Scores of which less is better.
LOSSES = frozenset({"log_loss", "brier", "ece", "cost"})
#: Scores in which a hundredth is a point.
POINTS = frozenset({"accuracy", "balanced_accuracy", "auroc"})


def score_predictions(
    y: npt.NDArray[np.intp], proba: FloatArray, costs: FloatArray | None = None
) -> dict[str, float]:
    """Every metric of `METRICS` and, with costs, "cost"; AUROC is NaN where a class is missing.

    Parameters
    ----------
    y : integer array of shape (n,)
        Class positions 0..K-1.
    proba : array of shape (n, K)
    costs : array of shape (K, K), optional
        ``costs[y, j]`` of deciding j where the truth is y: decisions are then the cheapest ones.

    Examples
    --------
    >>> scores = score_predictions(np.array([0, 1]), np.array([[0.8, 0.2], [0.4, 0.6]]))
    >>> scores["accuracy"], round(scores["brier"], 3)
    (1.0, 0.1)
    """
    right = proba.argmax(axis=1) == y
    present = np.unique(y)
    chosen = np.maximum(proba[np.arange(len(y)), y], np.finfo(np.float64).eps)
    squared = ((proba - np.eye(proba.shape[1])[y]) ** 2).sum(axis=1)
    price = {} if costs is None else {"cost": float(costs[y, cheapest(proba, costs)].mean())}
    return {
        "accuracy": float(right.mean()),
        "balanced_accuracy": float(np.mean([right[y == k].mean() for k in present])),
        "log_loss": float(-np.log(chosen).mean()),
        # Half of the multi-class sum, so that with two classes it is the usual (p − y)².
        "brier": float(squared.mean() / 2.0),
        "auroc": _auroc(y, proba, present),
        "ece": expected_calibration_error(proba, y),
        **price,
    }


def is_skewed(shares: Sequence[Sequence[float]]) -> bool:
    """Whether the rarest class is, over some domains, rarer than half of its even share.

    Accuracy then says little of it, and AUROC and balanced accuracy more.

    Examples
    --------
    >>> is_skewed([(0.9, 0.1), (0.8, 0.2)]), is_skewed([(0.6, 0.4)]), is_skewed([])
    (True, False, False)
    """
    known = [row for row in shares if len(row)]
    return bool(known) and float(np.min(np.mean(known, axis=0))) < 0.5 / len(known[0])


def _auroc(y: npt.NDArray[np.intp], proba: FloatArray, present: npt.NDArray[np.intp]) -> float:
    if len(present) < proba.shape[1]:
        return float("nan")
    if proba.shape[1] == 2:
        return float(roc_auc_score(y, proba[:, 1]))
    return float(roc_auc_score(y, proba, multi_class="ovr", average="macro"))
