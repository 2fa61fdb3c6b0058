"""From evidence to a set: screen columns alone, confirm them together, add those that need company."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from sfboost.diagnostics.moments import holm
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
        """Evidence about a set of columns, computed once."""
        if (self, chosen) not in data.measured:
            test = measure_invariance(data, chosen, self.kind, self.tolerance, self.alpha)
            data.measured[self, chosen] = test
        return data.measured[self, chosen]


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

    Columns that are stable one by one need not be stable together (CE-DD). The least informative column
    without which the set is not shown to drift goes; if there is none, the least informative of all.
    """
    chosen, dropped = start, {}
    while len(chosen) > 1 and _drifts(rules.measure(data, chosen), rules):
        by_information = sorted(chosen, key=lambda j: -float(screening.p_uninformative[j]))
        out = by_information[0]
        for tried, j in enumerate(by_information):
            _LOG.info(
                "Stable alone, but %d columns are not so together. Which can be left out? %d of them tested",
                len(chosen),
                tried,
            )
            if not _drifts(rules.measure(data, tuple(k for k in chosen if k != j)), rules):
                out = j
                break
        dropped[out] = f"stable alone, but not together with {len(chosen) - 1} other(s)"
        chosen = tuple(j for j in chosen if j != out)
    return chosen, dropped


def _drifts(test: Invariance, rules: Rules) -> bool:
    return test.p_change <= rules.alpha < test.p_drift


def add_company(
    data: TrainingDomains, chosen: tuple[int, ...], left: tuple[int, ...], rules: Rules
) -> tuple[tuple[int, ...], dict[int, str]]:
    """Add columns that are stable only together: two causes that both shift, or a spouse and its effect.

    Round r tries all sets of one or two more columns of those `left` and spends α / 2^r on them, evenly: over
    all rounds the probability of adding a set with a drift of the tolerance or more is at most α.
    """
    added: dict[int, str] = {}
    share = rules.alpha
    while True:
        share /= 2.0
        candidates = _larger_sets(chosen, tuple(j for j in left if j not in chosen))
        level = share / max(len(candidates), 1)
        candidates = [new for new in candidates if _may_pass(data, chosen, new, rules, level)]
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


def _may_pass(
    data: TrainingDomains, chosen: tuple[int, ...], new: tuple[int, ...], rules: Rules, level: float
) -> bool:
    """Whether these rows could show the larger set to be stable: a test that cannot succeed is saved.

    The inflation is at least 1/n: two equal domains, no covariate shift, one degree of freedom. And more
    columns leave less information about the drift of those that are there, and have more degrees of freedom.
    """
    least = ScoreTest(0.0, 1, 1.0 / len(data.scores), 0.0).p_drift(rules.tolerance)
    small, large = len(data.columns(chosen)), len(data.columns(chosen + new))
    if small > 1 and data.affords_products(small) == data.affords_products(large):
        least = max(least, rules.measure(data, chosen).least_p_drift)
    return least <= level


def _larger_sets(chosen: tuple[int, ...], rest: tuple[int, ...]) -> list[tuple[int, ...]]:
    singles = [(j,) for j in rest] if chosen else []
    return singles + (list(combinations(rest, 2)) if len(rest) <= _MOST_FOR_PAIRS else [])
