"""What own domains say blind: the numbers, no rows, that a new domain's moments are compared with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import add
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from sfboost.adaptation.scores import Yardstick
from sfboost.marginal.probabilities import FloatArray
from sfboost.shift.class_shares import back_to_training
from sfboost.shift.coordinates import CommonUnits, MeaningCoordinates, MeaningSums
from sfboost.shift.moments import Moments, measure_moments
from sfboost.shift.prediction import Expected, Sides
from sfboost.shift.rows import DomainData

# A meaning near zero in all own domains may be a little different by chance: in training units.
_MEANING_VARIES = 0.1
# Log-units by which a feature's spread differs between any two domains: a factor of 1.4.
_SCALE_VARIES = 0.35
# The same of all features together; and of the class shares that pooled says, beside those that f_S says.
_EVIDENCE_VARIES, _SHARES_VARY = 0.2, 0.2
# How much a moment varies between domains, as a share of it and in its units, and which side is remarkable.
# A slope is one where U follows from X_S as in training. More than in own domains is no loss, also where
# theirs are negative by chance.
_VARIES: dict[str, tuple[float, float, Sides]] = {
    "evidence": (0.25, 0.0, "nearer to zero"),
    "meaning": (0.25, _MEANING_VARIES, "nearer to zero"),
    "evidence_slope": (0.25, 0.0, "below"),
    "slope": (0.25, _MEANING_VARIES, "below"),
    "scale": (0.0, _SCALE_VARIES, "both"),
    "shares": (0.0, _SHARES_VARY, "both"),
    "evidence_scale": (0.0, _EVIDENCE_VARIES, "both"),
}
# A score may be worse than a guess's by so much because f_S is too sure of itself in a domain.
_CLEARLY = 1.1


@dataclass(frozen=True, eq=False)
class BlindDomain:
    """A domain seen without its labels: its moments if P(Y | X_S) transports, and if P(X_S | Y) does."""

    name: Any
    n_rows: int
    posterior: Moments
    likelihood: Moments


@dataclass(frozen=True, eq=False)
class Reference:
    """Everything the test keeps of training.

    Attributes
    ----------
    coordinates : MeaningCoordinates
    domains : tuple of BlindDomain
    importance : array of shape (d,)
        Share of each unstable feature in the pooled evidence; sums to one.
    prior : array of shape (K,)
        Class shares of the training rows.
    names : tuple of str
        Of the unstable features, by column.
    groups : integer array of shape (d,)
        Columns of one feature (a category and its codes) have one number.
    stable_brier : float
        Brier score of f_S in own domains that it was not trained on, the mean over domains.
    """

    coordinates: MeaningCoordinates
    domains: tuple[BlindDomain, ...]
    importance: FloatArray
    prior: FloatArray
    names: tuple[str, ...]
    groups: npt.NDArray[np.intp]
    stable_brier: float

    @property
    def guess_brier(self) -> float:
        """Brier score of a guess at random."""
        return (1.0 - 1.0 / len(self.prior)) / 2.0

    @property
    def misled(self) -> bool:
        """Whether f_S is clearly worse than a guess at random: a change is seen against it, if at all."""
        return self.stable_brier > _CLEARLY * self.guess_brier

    @classmethod
    def learn(
        cls,
        views: Sequence[DomainData],
        labels: Sequence[npt.NDArray[np.intp]],
        domains: Sequence[Any],
        names: Sequence[str] | None = None,
        groups: Sequence[int] | None = None,
    ) -> Self:
        """Learn from labelled domains, each viewed by predictors that were trained on the others."""
        everything, y = DomainData.joined(views), np.concatenate(labels)
        sizes = [len(part) for part in labels]
        n_classes, d = everything.log_stable.shape[1], everything.unstable.shape[1]
        prior = np.bincount(y, everything.weight, n_classes)
        prior = np.maximum(prior, 1e-6) / np.maximum(prior, 1e-6).sum()
        units = CommonUnits.of(everything)
        says = units.evidence(everything)
        size = np.linalg.norm(says, axis=1) + 1e-9

        def sums(i: int) -> MeaningSums:
            return MeaningSums.of(views[i], labels[i], units, sizes[i] / len(y))

        every = reduce(add, map(sums, range(len(views))))
        coordinates = MeaningCoordinates.learn(every, units, says)

        def left_out(i: int) -> BlindDomain:
            """In coordinates that the others have taught, as a new domain would be measured."""
            others = (
                coordinates if len(views) == 1 else MeaningCoordinates.learn(every - sums(i), units, says)
            )
            return measure_domain(domains[i], others, views[i], prior)

        numbers = np.arange(d) if groups is None else np.asarray(groups, dtype=np.intp)
        return cls(
            coordinates,
            tuple(map(left_out, range(len(views)))),
            size / size.sum(),
            prior,
            tuple(f"x{j}" for j in range(d)) if names is None else tuple(names),
            np.unique(numbers, return_inverse=True)[1],
            float(np.mean([_brier(view, own) for view, own in zip(views, labels, strict=True)])),
        )

    @cached_property
    def expected(self) -> dict[str, dict[str, Expected]]:
        """What own domains lead to expect of each moment of a new one, under both readings of stability."""
        return {
            kind: {
                name: Expected.of([getattr(getattr(own, kind), name) for own in self.domains], *varies)
                for name, varies in _VARIES.items()
            }
            for kind in ("posterior", "likelihood")
        }


def _brier(view: DomainData, y: npt.NDArray[np.intp]) -> float:
    """Of f_S, on labelled rows."""
    label = view.weight[:, None] * np.eye(view.log_stable.shape[1])[y]
    return Yardstick("brier").loss(np.exp(view.log_stable), label)


def measure_domain(
    name: Any, coordinates: MeaningCoordinates, view: DomainData, prior: FloatArray
) -> BlindDomain:
    """Both kinds of moments of one domain."""
    weight = back_to_training(np.exp(view.log_stable), prior, view.weight)
    posterior, likelihood = measure_moments(coordinates, view, (view.weight, weight))
    return BlindDomain(name, int(np.count_nonzero(view.weight)), posterior, likelihood)
