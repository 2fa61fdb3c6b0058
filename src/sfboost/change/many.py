"""The change test in many new domains, with the rate of false discoveries held over all of them.

What is kept of each domain are its moments. All of them are compared with the own ones at once; what changed
in one, and whose meaning, is worked out when somebody asks.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import Self

import numpy as np
import numpy.typing as npt
from scipy.stats import false_discovery_control

from sfboost.change.chances import Chances
from sfboost.change.moments import Moments
from sfboost.change.reference import BlindDomain, Reference, measure_domain
from sfboost.change.result import Change, Verdict
from sfboost.change.testing import LEAST_POWER, change_of, compare, enough, hypotheses, too_few
from sfboost.change.view import View
from sfboost.marginal.probabilities import FloatArray

# So many domains say how common changes are.
_ENOUGH_DOMAINS = 20


@dataclass(frozen=True, eq=False)
class ManyChanges:
    """What the test says of many domains, by number.

    Attributes
    ----------
    moments : BlindDomain
        Of all domains, stacked along a first axis.
    p_value, adjusted, power : arrays of shape (D,)
        As in `Change`; `adjusted` as Benjamini and Hochberg do: of the domains below a level at most that
        share is expected to be unchanged. The tests share the own domains they compare with, so that they
        lean to the same side, which the procedure allows.
    n_rows : integer array of shape (D,)
    level : float
    chances : Chances or None
        How likely a change is in each domain, given all; None if they are too few to say how common one is.
    """

    moments: BlindDomain
    p_value: FloatArray
    adjusted: FloatArray
    power: FloatArray
    n_rows: npt.NDArray[np.intp]
    level: float
    chances: Chances | None = None

    @classmethod
    def measure(cls, reference: Reference, views: Iterable[View], *, level: float = 0.05) -> Self:
        """Measure all domains and compare each with the own ones."""
        every = [
            measure_domain(i, reference.coordinates, view, reference.prior) for i, view in enumerate(views)
        ]
        moments = BlindDomain(
            "many",
            sum(one.n_rows for one in every),
            _stacked([one.posterior for one in every]),
            _stacked([one.likelihood for one in every]),
            np.array([one.elsewhere for one in every]) if len(reference.prior) > 2 else None,
        )
        readings = compare(reference, moments)
        by_reading = np.array([reading.p_value(reference.importance) for reading in readings])
        powers = np.array([reading.power for reading in readings])
        p_value = by_reading.max(axis=0)
        which = by_reading.argmax(axis=0)
        power = np.take_along_axis(powers, which[None], axis=0)[0]
        n_rows = np.array([one.n_rows for one in every])
        silent = too_few(n_rows, reference.prior)
        silent |= len(reference.domains) < 2 or reference.misled
        p_value, power = np.where(silent, 1.0, p_value), np.where(silent, 0.0, power)
        chances = None
        if np.count_nonzero(power) >= _ENOUGH_DOMAINS:
            fits = np.array([hypotheses(reference, reading)[0] for reading in readings])
            fit = np.take_along_axis(fits, which[None, :, None, None], axis=0)[0]
            chances = Chances.estimate(p_value, power, fit, enough(n_rows, reference.prior))
        return cls(moments, p_value, false_discovery_control(p_value), power, n_rows, level, chances)

    @property
    def verdicts(self) -> npt.NDArray[np.str_]:
        """One `Change.verdict` for each domain, the error rate held over all of them."""
        quiet = np.where(self.power >= LEAST_POWER, "unchanged", "cannot tell")
        return np.where(self.adjusted < self.level, "changed", quiet)

    @property
    def silent(self) -> npt.NDArray[np.bool_]:
        """Domains that cannot tell by themselves and, given all, could not be told."""
        return self.power == 0.0 if self.chances is not None else self.verdicts == "cannot tell"

    def change(self, reference: Reference, number: int, *, everywhere: bool = False) -> Change:
        """All about one domain. Its p-value is its own, its verdict that of all domains together.

        With `everywhere` a change is put down to all features; see `change_in`.
        """
        every = self.moments
        here = BlindDomain(
            number,
            int(self.n_rows[number]),
            _one(every.posterior, number),
            _one(every.likelihood, number),
            None if every.elsewhere is None else every.elsewhere[number],
        )
        elsewhere = None if self.chances is None else self.chances.elsewhere
        found = change_of(reference, here, level=self.level, everywhere=everywhere, elsewhere=elsewhere)
        verdict: Verdict = self.verdicts[number].item()
        return replace(
            found,
            verdict=verdict,
            p_value=float(self.p_value[number]),
            power=float(self.power[number]),
            changed=found.suspects if verdict == "changed" else (),
        )


def _stacked(moments: list[Moments]) -> Moments:
    def stack(name: str) -> tuple[FloatArray, FloatArray]:
        pairs = [getattr(one, name) for one in moments]
        return np.stack([value for value, _ in pairs]), np.stack([error for _, error in pairs])

    return Moments(*(stack(field.name) for field in fields(Moments)))


def _one(moments: Moments, number: int) -> Moments:
    def pick(name: str) -> tuple[FloatArray, FloatArray]:
        value, error = getattr(moments, name)
        return value[number], error[number]

    return Moments(*(pick(field.name) for field in fields(Moments)))
