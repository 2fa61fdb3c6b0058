"""A frozen network of which nothing is stable by itself: own domains say whether components do better.

`StableFeatureBoosting(unstable_features="components")` on what the network makes of a row reads all of it,
and adapts along directions of the new rows. The theorem does not cover that: it takes the place of the
learned split only where own domains, each left out in turn with its labels hidden, clearly prefer it; where
f_S is shown to be stable, every one of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sfboost.adaptation.decision import unwarned
from sfboost.adaptation.scores import Yardstick
from sfboost.boosting.components import domain_splits
from sfboost.boosting.estimator import StableFeatureBoosting
from sfboost.marginal.probabilities import FloatArray

# Own domains must prefer components by so many standard errors.
_CLEARLY = 2.0
# And, where f_S is shown to be stable, every one of them by so much: it holds where a meaning turns round,
# which own domains may not show.
_EVERY = 0.02
# Domains that are needed, so that two are left when one is left out; groups that are left out at most.
FEWEST, _MOST_GROUPS = 3, 5

Fit = Callable[[npt.NDArray[np.intp]], Any]


@dataclass(frozen=True, eq=False)
class Preference:
    """Scores in own domains, each left out in turn and adapted to with its labels hidden.

    Attributes
    ----------
    domains : tuple
    learned, components : arrays of shape (domains,)
        By the learned split, and along components; more is better.
    metric : str
        What it is the score of.
    shown_stable : bool
        Whether f_S of the learned split is shown to be stable.
    """

    domains: tuple[Any, ...]
    learned: FloatArray
    components: FloatArray
    metric: str = "accuracy"
    shown_stable: bool = False

    @property
    def gain(self) -> float:
        """What components add, in the mean."""
        return float((self.components - self.learned).mean())

    @property
    def error(self) -> float:
        """Its standard error."""
        return float((self.components - self.learned).std(ddof=1) / np.sqrt(len(self.domains)))

    @property
    def components_win(self) -> bool:
        """Two of three: better by two standard errors, better in every domain, f_S not shown to be stable."""
        everywhere = bool((self.components - self.learned).min() > _EVERY)
        return int(self.gain > _CLEARLY * self.error) + int(everywhere) + int(not self.shown_stable) >= 2

    @property
    def reason(self) -> str:
        """In one sentence."""
        return (
            f"along components {len(self.domains)} own domains, each left out with its labels hidden, have "
            f"{Yardstick(self.metric).told(self.gain, self.error, sign='+')} against the learned split"
        )


def preference(
    features: FloatArray,
    y: npt.NDArray[Any],
    domain: npt.NDArray[Any],
    model: StableFeatureBoosting,
    learn: Fit,
    shown_stable: bool,
) -> Preference | None:
    """Compare the learned split with components on own domains; None if none could be left out.

    Parameters
    ----------
    features, y, domain : arrays
        What the frozen network makes of all rows, their labels and domains.
    model : StableFeatureBoosting
        Components, fitted to them.
    learn : callable
        Fits the learned split to the rows at some positions.
    shown_stable : bool
        Whether its f_S is shown to be stable.
    """
    played = model.components_
    assert played is not None
    row = 1 + played.numbers.index(played.chosen) if played.helps else 0
    by = model._choices(model.settings).yardstick("accuracy")
    worth = played.worth
    along = dict(zip(played.domains, worth[row], strict=True))
    learned = {}
    for inside, outside in domain_splits(np.searchsorted(model.classes_, y), domain, _MOST_GROUPS):
        with unwarned():  # what is tried on the way is no one's answer
            split = learn(inside)
        for name in np.unique(domain[outside]):
            here = outside[domain[outside] == name]
            label = (y[here][:, None] == split.classes_) / len(here)
            with unwarned():
                adapted = split.adapt(features[here])
            learned[name] = 1.0 - by.loss(adapted.predict_proba(features[here]), label)
    names = tuple(name for name in along if not np.isnan(along[name] - learned.get(name, np.nan)))
    if len(names) < FEWEST:
        return None
    return Preference(
        names,
        np.array([learned[name] for name in names]),
        np.array([along[name] for name in names]),
        by.metric,
        shown_stable,
    )
