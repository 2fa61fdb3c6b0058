"""Costs of wrong decisions, as the command line says them."""

from __future__ import annotations

import math
from typing import Annotated, Any

import numpy as np
import typer

from sfboost.boosting import StableFeatureBoosting
from sfboost.marginal.probabilities import FloatArray
from sfboost.tables.roles import split

Costs = Annotated[
    str | None,
    typer.Option(
        "--costs",
        help="TRUTH>DECISION=COST, comma-separated, e.g. 'sick>well=10'; other errors cost 1. Predictions "
        "are then the classes of the least expected cost; where a model is fitted, answers are chosen by "
        "what they cost on own domains, too.",
    ),
]


def with_costs(model: StableFeatureBoosting, text: str | None, y: Any) -> StableFeatureBoosting:
    """The model, unfitted, with the costs of wrong decisions among the classes of `y`."""
    costs = read_costs(text, np.unique(y))
    return model if costs is None else model.set_params(settings__costs=costs.tolist())


def read_costs(text: str | None, classes: Any) -> FloatArray | None:
    """``costs[y, j]`` of deciding j where the truth is y; errors that are not named cost one.

    Examples
    --------
    >>> read_costs("yes>no=10", ["no", "yes"])
    array([[ 0.,  1.],
           [10.,  0.]])
    """
    if text is None:
        return None
    names = [str(name) for name in np.asarray(classes).tolist()]
    costs = 1.0 - np.eye(len(names))
    for part in split(text):
        pair, _, number = part.rpartition("=")
        truth, _, decision = (name.strip() for name in pair.partition(">"))
        try:
            cost = float(number)
        except ValueError:
            cost = math.nan
        if truth not in names or decision not in names or truth == decision or not 0.0 <= cost < math.inf:
            raise ValueError(
                f"--costs {part!r} is not TRUTH>DECISION=COST with two of the classes {', '.join(names)} and "
                f"a number from 0 on: write for example '{names[-1]}>{names[0]}=10', between quotes."
            )
        costs[names.index(truth), names.index(decision)] = cost
    return costs
