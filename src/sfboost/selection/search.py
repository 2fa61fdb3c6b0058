"""From evidence to a set: screen columns alone, confirm them together, add those that need company."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from sfboost.marginal.probabilities import FloatArray
from sfboost.selection.invariance import Invariance, TrainingDomains, measure_invariance, p_uninformative
from sfboost.selection.score import ScoreTest

_LOG = logging.getLogger(__name__)
# Pairs of left-out columns are tried up to this many columns: 45 pairs.
_MOST_FOR_PAIRS = 10


@dataclass(frozen=True, eq=False)
class Screening:
    """Adjusted evidence about every column alone."""

    alone: tuple[Invariance, ...]
    p_change: FloatArray
    p_drift: FloatArray
    p_uninformative: FloatArray

    def verdict(self, j: int, alpha: float) -> str:
        """A drift that is shown to be small is small, even if it is shown to be there as well."""
        if self.p_drift[j] <= alpha:
            return "stable"
        return "unstable" if self.p_change[j] <= alpha else "cannot tell"


@dataclass(frozen=True)
class Rules:
    """How to test."""

    kind: str
    tolerance: float
    alpha: float

    def measure(self, data: TrainingDomains, chosen: tuple[int, ...]) -> Invariance:
        """Evidence about a set of columns."""
        return measure_invariance(data, chosen, self.kind, self.tolerance, self.alpha)


def holm(p_values: FloatArray) -> FloatArray:
    """Holm's adjusted p-values: comparing them with α keeps the family-wise error rate at α.

    Examples
    --------
    >>> holm(np.array([0.01, 0.04, 0.03])).round(2)
    array([0.03, 0.06, 0.06])
    """
    order = np.argsort(p_values, kind="stable")
    steps = p_values[order] * (len(p_values) - np.arange(len(p_values)))
    adjusted = np.empty_like(p_values)
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return adjusted


def screen(data: TrainingDomains, rules: Rules) -> Screening:
    """Test every column (or category) alone."""
    columns = range(len(data.units))
    alone = []
    for j in columns:
        alone.append(rules.measure(data, (j,)))
        _LOG.info("Searching for stable columns: %d of %d tested", j + 1, len(data.units))
    return Screening(
        tuple(alone),
        holm(np.array([test.p_change for test in alone])),
        holm(np.array([test.p_drift for test in alone])),
        holm(np.array([p_uninformative(data, (j,)) for j in columns])),
    )


def confirm(
    data: TrainingDomains, start: tuple[int, ...], screening: Screening, rules: Rules
) -> tuple[tuple[int, ...], dict[int, str]]:
    """Drop columns until the set is not shown to drift; also return why each one was dropped.

    Columns that are stable one by one need not be stable together (CE-DD). Of the sets with one column
    less the one with the least evidence of drift is kept; if all still drift, the least informative
    column goes first.
    """
    chosen, dropped = start, {}
    while len(chosen) > 1 and _drifts(rules.measure(data, chosen), rules):
        _LOG.info("Stable alone, but not together: leaving out one of %d columns", len(chosen))
        smaller = [rules.measure(data, tuple(k for k in chosen if k != j)) for j in chosen]
        fine = [test for test in smaller if not _drifts(test, rules)]
        if fine:
            out = _least_informative(fine, chosen, screening)
        else:
            out = max(chosen, key=lambda j: float(screening.p_uninformative[j]))
        dropped[out] = f"stable alone, but not together with {len(chosen) - 1} other(s)"
        chosen = tuple(j for j in chosen if j != out)
    return chosen, dropped


def _drifts(test: Invariance, rules: Rules) -> bool:
    return test.p_change <= rules.alpha < test.p_drift


def _least_informative(fine: list[Invariance], chosen: tuple[int, ...], screening: Screening) -> int:
    """Of the columns without which the set is fine, the one that says least of Y alone."""
    candidates = [next(j for j in chosen if j not in test.columns) for test in fine]
    return max(candidates, key=lambda j: float(screening.p_uninformative[j]))


def add_company(
    data: TrainingDomains, chosen: tuple[int, ...], rules: Rules
) -> tuple[tuple[int, ...], dict[int, str]]:
    """Add columns that are stable only together: two causes that both shift, or a spouse and its effect.

    Round r tries all sets of one or two more columns and spends α / 2^r on them, evenly: over all rounds
    the probability of adding a set with a drift of the tolerance or more is at most α.
    """
    added: dict[int, str] = {}
    share = rules.alpha
    while True:
        share /= 2.0
        candidates = _larger_sets(chosen, len(data.units))
        level = share / max(len(candidates), 1)
        if _best_possible(len(data.scores), rules.tolerance) > level:
            return chosen, added
        passing = []
        for done, new in enumerate(candidates):
            _LOG.info(
                "Searching for columns that are stable together with those: %d of %d tested",
                done,
                len(candidates),
            )
            test = rules.measure(data, tuple(sorted(chosen + new)))
            if test.p_drift <= level and all(
                p_uninformative(data, (j,), tuple(k for k in chosen + new if k != j)) <= level for j in new
            ):
                passing.append((test.p_drift, new))
        if not passing:
            return chosen, added
        new = min(passing)[1]
        for j in new:
            added[j] = "stable together with the other selected columns"
        chosen = tuple(sorted(chosen + new))


def _best_possible(n_rows: int, tolerance: float) -> float:
    """A lower bound of every `p_drift`, to save a search that cannot succeed.

    The inflation is at least 1/n: two equal domains, no covariate shift, one degree of freedom.
    """
    return ScoreTest(0.0, 1, 1.0 / n_rows, 0.0).p_drift(tolerance)


def _larger_sets(chosen: tuple[int, ...], n_columns: int) -> list[tuple[int, ...]]:
    rest = [j for j in range(n_columns) if j not in chosen]
    singles = [(j,) for j in rest] if chosen else []
    return singles + (list(combinations(rest, 2)) if len(rest) <= _MOST_FOR_PAIRS else [])
