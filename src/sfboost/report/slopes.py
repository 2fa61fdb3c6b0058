"""What each unstable feature did in each training domain, and does here."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfboost.adaptation import Adaptation
from sfboost.boosting import AdaptedClassifier
from sfboost.marginal.probabilities import FloatArray
from sfboost.report.training import TrainingFacts, raw_slopes

#: Features that are shown for a class; the others are counted.
MOST_SHOWN = 12
_MOST_CLASSES = 6
# A slope below this, per standard deviation, changes log-odds too little to call it a direction.
_FLAT = 0.1
_REACH = 1.64


@dataclass(frozen=True)
class FeatureStory:
    """One unstable feature, in log-odds per standard deviation of training.

    Attributes
    ----------
    name : str
    training : tuple of float or None
        By training domain; None where it did not vary.
    here : float or None
        In the new domain, learned without labels; None if nothing was learned.
    error : float or None
        Standard error of `here`, conditional on the stable predictor.
    change : str
        In words: "reversed", "as in training", ...
    """

    name: str
    training: tuple[float | None, ...]
    here: float | None
    error: float | None
    change: str

    @property
    def reversed(self) -> bool:
        """Whether it says the opposite here of what it said in every training domain."""
        return self.change == "reversed"

    @property
    def size(self) -> float:
        """How much there is to tell: the largest slope anywhere."""
        return max((abs(v) for v in (*self.training, self.here) if v is not None), default=0.0)

    @property
    def reach(self) -> float:
        """The largest slope, with the interval around the one here."""
        here = 0.0 if self.here is None else abs(self.here) + 1.96 * (self.error or 0.0)
        return max(self.size, here)


@dataclass(frozen=True)
class ClassStory:
    """The features of one class: of the second one, if there are two."""

    label: str
    features: tuple[FeatureStory, ...]
    n_hidden: int


def tell_slopes(adapted: AdaptedClassifier, training: TrainingFacts) -> tuple[ClassStory, ...]:
    """The stories, class by class, the steepest features first."""
    names, units = adapted.model.unstable_columns_.names, np.array(training.units)
    here, error = _slopes_here(adapted)
    labels = [str(name) for name in adapted.classes_]
    labels = labels[1:] if len(labels) == 2 else labels[:_MOST_CLASSES]
    stories = []
    for k, label in enumerate(labels):
        features = []
        for j, name in enumerate(names):
            before = tuple(
                None if domain.slopes is None else _times(domain.slopes[k][j], units[j])
                for domain in training.domains
            )
            now = None if here is None else _times(here[k][j], units[j])
            spread = None if error is None or now is None else float(error[k, j] * units[j])
            features.append(FeatureStory(name, before, now, spread, change_in_words(before, now, spread)))
        features.sort(key=lambda story: -story.size)
        stories.append(ClassStory(label, tuple(features[:MOST_SHOWN]), max(0, len(features) - MOST_SHOWN)))
    return tuple(stories)


def change_in_words(training: tuple[float | None, ...], here: float | None, error: float | None) -> str:
    """What became of a feature, beyond sampling error.

    Examples
    --------
    >>> change_in_words((0.9, 1.2), -0.8, 0.2), change_in_words((0.9, -1.2), 0.5, 0.1)
    ('reversed', 'differed between training domains')
    """
    if here is None:
        return "not learned here"
    signs = {_sign(value, 0.0) for value in training if value is not None} - {0}
    now = _sign(here, _REACH * (error or 0.0))
    if len(signs) > 1:
        return "differed between training domains"
    if now == 0:
        return "says little here" if signs else "says little anywhere"
    if not signs:
        return "speaks only here"
    return "as in training" if now in signs else "reversed"


def _sign(value: float, doubt: float) -> int:
    return 0 if abs(value) < max(_FLAT, doubt) else int(np.sign(value))


def _times(slope: float | None, unit: float) -> float | None:
    return None if slope is None else float(slope * unit)


def _slopes_here(adapted: AdaptedClassifier) -> tuple[list[list[float | None]] | None, FloatArray | None]:
    """Raw slopes of the head, also of one that the guard withheld, and their standard errors."""
    adaptation = adapted.adaptation
    if not isinstance(adaptation, Adaptation):
        return None, None
    learned = adaptation.unstable or adaptation.withheld
    coef = None if learned is None else getattr(learned.head, "coef_", None)
    if learned is None or coef is None or adaptation.standardizer is None:
        return None, None
    if learned.temperature is not None:
        coef = coef / learned.temperature.temperature
    uncertain = adaptation.uncertainty
    error = None if uncertain is None or uncertain.coef is None else uncertain.coef.standard_error
    return raw_slopes(np.asarray(coef), adaptation.standardizer.scale), error
