"""What each unstable feature means in every source domain and in the target, and a verdict each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sfboost.diagnostics.result import p_in_words
from sfboost.marginal.probabilities import FloatArray
from sfboost.shift.moments import measure_moments
from sfboost.shift.prediction import UNKNOWN
from sfboost.shift.reference import Reference
from sfboost.shift.result import Change, FeatureChange, Verdict
from sfboost.shift.rows import DomainData
from sfboost.shift.testing import LEAST_POWER

_NOTHING = float("nan")


@dataclass(frozen=True)
class FeatureMeaning:
    """One unstable feature.

    Its meaning is how far apart the classes are in it, in standard deviations of training and in the
    direction of training: negative is the opposite.

    Attributes
    ----------
    name : str
    own : mapping of str to float
        In each source domain, left out in turn.
    here, error : float
        In the target domain, and its standard error; NaN where it has one value there, and means nothing.
    left : float
        How much of its meaning is left there: 1 all, 0 nothing, -1 the opposite.
    p_value : float
        Not adjusted for the number of features.
    verdict : {"changed", "unchanged", "cannot tell"}
    """

    name: str
    own: Mapping[str, float]
    here: float
    error: float
    left: float
    p_value: float
    verdict: Verdict

    def __str__(self) -> str:
        left = "" if self.verdict == "cannot tell" else f"{100 * self.left:.0f} % of its meaning left, "
        return f"{self.name}: {self.verdict} ({left}{p_in_words(self.p_value)})"


def feature_meanings(reference: Reference, view: DomainData, change: Change) -> tuple[FeatureMeaning, ...]:
    """The features in order of importance; `change` is what the test says of the same rows.

    A feature that the change is not put down to is "unchanged" only if a loss of its meaning would have
    been seen. A faint one cannot be told, also where it is presumed to have gone the way of the others.
    """
    here = measure_moments(reference.coordinates, view, (view.weight,))[0].meaning
    own = [domain.posterior.meaning for domain in reference.domains]
    power = reference.expected["posterior"]["meaning"].compare(here).power
    told = []
    for feature in sorted(change.features, key=lambda part: -part.importance):
        columns = np.array(feature.columns, dtype=np.intp)
        known = (here[1][columns] < UNKNOWN).all()
        # What holds classes apart by several columns (codes of a category) does so by all of them.
        told.append(
            FeatureMeaning(
                name=feature.name,
                own={
                    str(domain.name): _together(meaning[0], columns)
                    for domain, meaning in zip(reference.domains, own, strict=True)
                },
                here=_together(here[0], columns) if known else _NOTHING,
                error=float(np.sqrt(np.mean(here[1][columns] ** 2))) if known else _NOTHING,
                left=feature.left,
                p_value=feature.p_value,
                verdict=_verdict(change, feature, float(power[columns].max())),
            )
        )
    return tuple(told)


def _together(meaning: FloatArray, columns: npt.NDArray[np.intp]) -> float:
    return float(meaning[columns].mean())


def _verdict(change: Change, feature: FeatureChange, power: float) -> Verdict:
    seen = power >= LEAST_POWER
    clearly = feature.p_value * len(change.features) < change.level
    if feature.name in change.changed and (seen or clearly):
        return "changed"
    if change.verdict == "cannot tell" or not seen or feature.name in change.changed:
        return "cannot tell"
    return "unchanged"
