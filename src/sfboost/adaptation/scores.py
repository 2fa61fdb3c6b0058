"""Scores of predicted probabilities, and the one by which answers are judged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sfboost.adaptation.costs import cheapest, decided
from sfboost.calibration.reliability import confidence_bins, expected_calibration_error
from sfboost.marginal.probabilities import FloatArray

#: Names of the scores, in the order in which they are shown.
METRICS = ("accuracy", "balanced_accuracy", "log_loss", "brier", "auroc", "ece")
#: Scores of which less is better.
LOSSES = frozenset({"log_loss", "brier", "ece", "cost"})
#: Scores in which a hundredth is a point.
POINTS = frozenset({"accuracy", "balanced_accuracy"})
#: How people call them.
METRIC_NAMES = {name: name.replace("_", " ") for name in (*METRICS, "cost")} | {
    "brier": "Brier",
    "auroc": "AUROC",
    "ece": "ECE",
}


def shown(metric: str, value: float | None, unit: str = " %", digits: int = 1) -> str:
    """A score as people read it: accuracies in percent, to so many digits, all others as numbers.

    Examples
    --------
    >>> shown("accuracy", 0.9123), shown("accuracy", 0.9123, "", 0), shown("auroc", 0.9123)
    ('91.2 %', '91', '0.912')
    """
    if metric in POINTS:
        return percent(value, digits, unit)
    return "–" if value is None or value != value else f"{value:z.3f}"


def percent(share: float | None, digits: int = 1, unit: str = " %") -> str:
    """A share as people read it; a dash where it is not known.

    Examples
    --------
    >>> percent(0.0123), percent(None)
    ('1.2 %', '–')
    """
    return "–" if share is None or share != share else f"{100 * share:z.{digits}f}{unit}"


def check_metric(metric: str, priced: bool) -> str:
    """A score that can be had; the cost needs costs."""
    known = (*METRICS, "cost") if priced else METRICS
    if metric not in known:
        need = " (cost needs costs: Settings(costs=...), or --costs)" if metric == "cost" else ""
        raise ValueError(f"metric={metric!r} is not known{need}: use one of {', '.join(known)}.")
    return metric


@dataclass(frozen=True, eq=False)
class Yardstick:
    """What answers are judged by.

    Attributes
    ----------
    metric : str
        One of `METRICS`, or "cost".
    costs : array of shape (K, K) or None
        Of wrong decisions; with them decisions are the cheapest ones.
    """

    metric: str
    costs: FloatArray | None = None

    def loss(self, proba: FloatArray, label: FloatArray) -> float:
        """Of predictions whose labels are weights of classes that sum to one; less is better.

        Examples
        --------
        >>> Yardstick("accuracy").loss(np.array([[0.8, 0.2], [0.4, 0.6]]), np.eye(2) / 2)
        0.0
        """
        score = weighted_scores(proba, label, self.costs, only=self.metric)[self.metric]
        return score if self.metric in LOSSES else 1.0 - score

    def told(self, gain: float, error: float | None = None, digits: int = 1, sign: str = "") -> str:
        """A gain, and its error if it is known, in words.

        Examples
        --------
        >>> Yardstick("accuracy").told(0.05, 0.01), Yardstick("brier").told(0.05, 0.01, 2)
        ('5.0 ± 1.0 points of accuracy', '0.050 ± 0.010 in Brier score')
        """
        name, scale, unit = METRIC_NAMES[self.metric], 100.0, "points of"
        if self.metric not in POINTS:
            name = {"brier": "Brier score", "cost": "cost a row"}.get(self.metric, name)
            scale, unit, digits = 1.0, "in", digits + 1
        within = "" if error is None else f" ± {scale * error:.{digits}f}"
        return f"{scale * gain:{sign}.{digits}f}{within} {unit} {name}"


def weighted_scores(
    proba: FloatArray,
    label: FloatArray,
    cost: FloatArray | None = None,
    total: float = 1.0,
    only: str | None = None,
) -> dict[str, float]:
    """Scores of predictions whose labels are known as weights of each class; some may be negative.

    Balanced accuracy is of the classes that have a weight; AUROC is nan where one has none. With costs both
    accuracies are those of the cheapest decisions.

    Parameters
    ----------
    proba : array of shape (m, K)
    label : array of shape (m, K)
        Weight of the row with each class as its label; sums to `total` over all.
    only : str, optional
        The one score that is wanted.
    """
    n_classes, added = proba.shape[1], scores_by_label(proba, label, cost, total, only)
    scores = {name: float(np.einsum("ij,ij->", label, each)) / total for name, each in added.items()}
    if only not in (None, "auroc", "ece"):
        return scores
    mass = label @ np.ones(n_classes)
    if only in (None, "auroc"):
        ranked = range(1, 2) if n_classes == 2 else range(n_classes)
        pairs = [auroc(proba[:, c], label[:, c], mass - label[:, c]) for c in ranked]
        scores["auroc"] = float(np.mean(pairs))
    if only in (None, "ece"):
        right = np.einsum("ij,ij->i", label, _decided(proba))
        confidence = np.ascontiguousarray(proba.T).max(axis=0)  # along rows: many times as fast
        bins = confidence_bins(confidence)
        scores["ece"] = expected_calibration_error(confidence, right, mass, bins, total)
    return scores


def scores_by_label(
    proba: FloatArray,
    label: FloatArray,
    cost: FloatArray | None,
    total: float = 1.0,
    only: str | None = None,
) -> dict[str, FloatArray]:
    """What each row adds to each score with each class as its label, of shape (m, K)."""
    right = _decided(proba, cost)
    added: dict[str, Callable[[], FloatArray]] = {
        "accuracy": lambda: right,
        "balanced_accuracy": lambda: right * _balance(label, total),
        "log_loss": lambda: -np.log(np.maximum(proba, np.finfo(np.float64).eps)),
        # Half of the multi-class sum, so that with two classes it is the usual (p − y)².
        "brier": lambda: (np.einsum("ij,ij->i", proba, proba)[:, None] - 2.0 * proba + 1.0) / 2.0,
    }
    if cost is not None:
        added["cost"] = lambda: cost[:, cheapest(proba, cost)].T
    return {name: each() for name, each in added.items() if only in (None, name)}


def _balance(label: FloatArray, total: float) -> FloatArray:
    """What a right decision counts, by class: classes that are there count the same."""
    weight = label.sum(axis=0)
    there = weight > 0.0
    return np.where(there, total / (max(there.sum(), 1) * np.where(there, weight, 1.0)), 0.0)


def _decided(proba: FloatArray, cost: FloatArray | None = None) -> FloatArray:
    return np.eye(proba.shape[1])[decided(proba, cost)]


def auroc(score: FloatArray, positive: FloatArray, negative: FloatArray) -> float:
    """Share of (positive, negative) pairs that are in order, ties counting half; both are weights of rows.

    Examples
    --------
    >>> auroc(np.array([0.1, 0.4, 0.4]), np.array([0.0, 0.0, 1.0]), np.array([1.0, 1.0, 0.0]))
    0.75
    """
    values, place = np.unique(score, return_inverse=True)
    up, down = (np.bincount(place, part, len(values)) for part in (positive, negative))
    below = np.cumsum(down) - down / 2.0
    whole = up.sum() * down.sum()
    return float(up @ below / whole) if whole > 0.0 else float("nan")
