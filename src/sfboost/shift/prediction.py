"""Is a new domain's value one that the own domains lead to expect? A random-effects prediction.

Own values differ by sampling error and from domain to domain. The second spread τ is estimated together with
a prior guess, worth a few domains, that meanings vary by a quarter: two domains alone would say anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Self

import numpy as np
from scipy.special import stdtr

from sfboost.marginal.probabilities import FloatArray

#: An error so large that a value says nothing.
UNKNOWN = 1e6

Sides = Literal["nearer to zero", "below", "both"]

# An expected value that is no more than what rounding leaves: nothing of it can be lost.
_NOTHING = 1e-9
#: What the prior guess of τ is worth, in domains.
PRIOR_DOMAINS = 6.0


@dataclass(frozen=True, eq=False)
class Prediction:
    """What own domains lead to expect, and how the new value compares; arrays of one shape.

    Attributes
    ----------
    p_value : array
        Small if the new value says less than expected (or, on both sides, anything else).
    ratio : array
        New value over the expected one: how much of the meaning is left.
    power : array
        Expected value over its predictive error: below two, a loss could hardly be seen.
    new, expected, spread : arrays
        The value itself, the one that was expected, and the predictive error, of Student's t with `freedom`.
    """

    p_value: FloatArray
    ratio: FloatArray
    power: FloatArray
    new: FloatArray
    expected: FloatArray
    spread: FloatArray
    freedom: float


@dataclass(frozen=True, eq=False)
class Expected:
    """What own domains lead to expect of one more; arrays of one shape.

    Own domains differ, by chance and in truth. A new value is remarkable if it is farther out than one more
    domain of the same kind would be.

    Attributes
    ----------
    value, variance : arrays
        The expected value, and its variance beside the sampling error of a new one.
    freedom : float
        Of Student's t.
    sides : {"nearer to zero", "below", "both"}
        On which side of the expected value a new one is remarkable: towards zero and beyond, below, or both.

    Examples
    --------
    >>> expected = Expected.of([(np.array([1.0]), np.array([0.1])), (np.array([1.1]), np.array([0.1]))])
    >>> same, turned = (expected.compare((np.array([v]), np.array([0.1]))) for v in (1.0, -1.0))
    >>> bool(same.p_value[0] > 0.3), bool(turned.p_value[0] < 0.01)
    (True, True)

    References
    ----------
    .. [1] J. P. T. Higgins, S. G. Thompson and D. J. Spiegelhalter (2009). A Re-Evaluation of Random-
       Effects Meta-Analysis. Journal of the Royal Statistical Society A 172.
    """

    value: FloatArray
    variance: FloatArray
    freedom: float
    sides: Sides

    @classmethod
    def of(
        cls,
        own: Sequence[tuple[FloatArray, FloatArray]],
        relative: float = 0.25,
        absolute: float = 0.0,
        sides: Sides = "nearer to zero",
    ) -> Self:
        """From (value, standard error) of each own domain.

        `relative` and `absolute` are the prior guess of τ, as a share of the mean and in its units. A domain
        whose value is unknown (its error is `UNKNOWN`) teaches nothing of it.
        """
        values, errors = (np.array([pair[i] for pair in own]) for i in (0, 1))
        known = np.ma.masked_array(values, errors >= UNKNOWN)
        # An own domain whose few rows happen to agree must not count for more than it knows.
        typical = np.ma.median(np.ma.masked_array(errors, known.mask), axis=0)
        errors = np.maximum(errors, np.ma.filled(typical, 0.0) / 2.0)
        others = np.maximum(known.count(axis=0) - 1, 0)
        mean = np.ma.filled(known.mean(axis=0), 0.0)
        within = np.ma.masked_array(errors**2, known.mask).sum(axis=0) / (others + 1)
        between = ((known - mean) ** 2).sum(axis=0) / np.maximum(others, 1) - within
        guess = (relative * mean) ** 2 + absolute**2
        spread = others * np.maximum(np.ma.filled(between, 0.0), 0.0) + PRIOR_DOMAINS * guess
        tau2 = spread / (others + PRIOR_DOMAINS)
        precision = 1.0 / np.maximum(errors**2 + tau2, np.finfo(np.float64).tiny)
        expected = (precision * values).sum(axis=0) / precision.sum(axis=0)
        return cls(expected, tau2 + 1.0 / precision.sum(axis=0), len(values) - 1 + PRIOR_DOMAINS, sides)

    def compare(self, new: tuple[FloatArray, FloatArray]) -> Prediction:
        """A new value and its standard error, or those of many new domains."""
        spread = np.maximum(np.sqrt(self.variance + new[1] ** 2), np.finfo(np.float64).tiny)
        t = (new[0] - self.value) / spread
        if self.sides == "both":
            p = 2.0 * stdtr(self.freedom, -np.abs(t))
        else:
            p = stdtr(self.freedom, t if self.sides == "below" else np.sign(self.value) * t)
        ratio = new[0] / np.where(np.abs(self.value) < _NOTHING, 1.0, self.value)
        power = np.abs(self.value) / spread
        return Prediction(np.asarray(p), ratio, power, new[0], self.value, spread, self.freedom)


def combine(p_values: FloatArray, share: FloatArray | None = None) -> FloatArray:
    """Cauchy combination of dependent p-values, along the last axis (Liu & Xie, 2020).

    `share` is what each is worth; equal by default.

    Examples
    --------
    >>> round(float(combine(np.array([0.03, 0.03]))), 2)
    0.03

    References
    ----------
    .. [1] Y. Liu and J. Xie (2020). Cauchy Combination Test: A Powerful Test with Analytic p-Value
       Calculation under Arbitrary Dependency Structures. Journal of the American Statistical
       Association 115.
    """
    # A moment that says more than expected must not outweigh one that says less.
    capped = np.clip(p_values, 1e-15, 0.5)
    joined = np.average(np.tan((0.5 - capped) * np.pi), axis=-1, weights=share)
    return np.asarray(np.arctan2(1.0, joined) / np.pi)
