"""Costs of wrong decisions, as the command line says them."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np

from sfboost.adaptation.costs import balanced_costs
from sfboost.adaptation.scores import check_metric
from sfboost.boosting import StableFeatureBoosting
from sfboost.cli.options import ScoreOptions
from sfboost.marginal.probabilities import FloatArray

#: Costs that balanced accuracy counts.
BALANCED = "balanced"


def judged_by(model: StableFeatureBoosting, asked: ScoreOptions, y: Any) -> StableFeatureBoosting:
    """The model, unfitted, with the score that counts, and what wrong decisions among the classes cost."""
    classes, counts = np.unique(y, return_counts=True)
    costs = read_costs(asked.costs, classes, counts / counts.sum())
    if asked.metric is not None:
        model.set_params(settings__metric=check_metric(asked.metric, costs is not None))
    return model if costs is None else model.set_params(settings__costs=costs.tolist())


def read_costs(text: str | None, classes: Any, shares: FloatArray | None = None) -> FloatArray | None:
    """``costs[y, j]`` of deciding j where the truth is y; errors that are not named cost one.

    "balanced" are those whose mean is one minus balanced accuracy, where classes have these `shares` (even
    ones, if they are not told).

    Examples
    --------
    >>> shares = np.array([0.9, 0.1])
    >>> read_costs("yes>no=10", ["no", "yes"], shares)
    array([[ 0.,  1.],
           [10.,  0.]])
    >>> read_costs("balanced", ["no", "yes"], shares).round(2)
    array([[0.  , 0.56],
           [5.  , 0.  ]])
    """
    if text is None:
        return None
    names = [str(name) for name in np.asarray(classes).tolist()]
    costs = 1.0 - np.eye(len(names))
    if text.strip() == BALANCED:
        return costs if shares is None else balanced_costs(shares)
    # By the names themselves, which may hold any of the signs between them.
    name = f"({'|'.join(re.escape(name) for name in names)})"
    cost_of_error = re.compile(rf"\s*{name}\s*>\s*{name}\s*=\s*([0-9.eE+-]+)\s*(?:,|$)")
    start = 0
    while start < len(text):
        part = cost_of_error.match(text, start)
        cost = _number(part[3]) if part is not None else math.nan
        if part is None or part[1] == part[2] or not 0.0 <= cost < math.inf:
            raise ValueError(
                f"--costs {text[start:]!r} is not TRUTH>DECISION=COST with two of the classes "
                f"{', '.join(names)} and a number from 0 on: write for example "
                f"'{names[-1]}>{names[0]}=10', between quotes, or {BALANCED}."
            )
        costs[names.index(part[1]), names.index(part[2])] = cost
        start = part.end()
    return costs


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
