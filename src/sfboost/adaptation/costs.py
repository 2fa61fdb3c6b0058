"""Costs of wrong decisions: what they look like, and which decision is the cheapest."""

from __future__ import annotations

from typing import Any

import numpy as np

from sfboost.marginal.probabilities import FloatArray, IntArray


def check_costs(costs: Any, n_classes: int) -> FloatArray:
    """``costs[y, j]`` of deciding j where the truth is y, as K × K numbers."""
    matrix = np.asarray(costs, dtype=np.float64)
    if matrix.shape != (n_classes, n_classes) or not np.isfinite(matrix).all():
        raise ValueError(
            f"costs of shape {matrix.shape} are not one finite number for each truth and decision: pass "
            f"{n_classes} rows, one for each true class, of {n_classes} numbers, one for each decision."
        )
    return matrix


def balanced_costs(shares: FloatArray) -> FloatArray:
    """Costs whose mean is one minus balanced accuracy, where classes have these shares.

    Examples
    --------
    >>> balanced_costs(np.array([0.9, 0.1])).round(2)
    array([[0.  , 0.56],
           [5.  , 0.  ]])
    """
    n_classes = len(shares)
    return np.asarray((1.0 - np.eye(n_classes)) / (n_classes * np.asarray(shares)[:, None]))


def cheapest(proba: FloatArray, costs: FloatArray) -> IntArray:
    """The decision of the least expected cost in each row; of equal ones the likelier class.

    Examples
    --------
    Missing the second class costs ten times a false alarm:

    >>> cheapest(np.array([[0.95, 0.05], [0.85, 0.15]]), np.array([[0.0, 1.0], [10.0, 0.0]]))
    array([0, 1])
    """
    expected = proba @ costs
    least = expected.min(axis=1, keepdims=True)
    equal = expected <= least + 1e-12 * np.abs(expected).max(axis=1, keepdims=True)
    return np.where(equal, proba, -1.0).argmax(axis=1)


def decided(proba: FloatArray, costs: FloatArray | None = None) -> IntArray:
    """The likeliest class of each row; with costs, the cheapest decision."""
    return proba.argmax(axis=1) if costs is None else cheapest(proba, costs)
