"""Source domains, each left out: scores of the answer there, the decision, its regret."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from sfboost.adaptation.scores import LOSSES, METRIC_NAMES, METRICS, shown
from sfboost.boosting.metrics import is_skewed
from sfboost.diagnostics.result import p_in_cells
from sfboost.notices import first_names

#: What is given, whichever answer it is; "adapted" is one of the decisions about it.
ANSWER = "answer"
#: What is compared, in the order in which it is shown.
COMPARED = ("stable", ANSWER, "pooled", "labelled")

#: What is decided of a domain that could not be left out.
SKIPPED = "skipped"

_UNKNOWN = float("nan")
# Letters of a domain's name in a table.
_NARROWEST, _WIDEST = 16, 32
# Domains that have a row each in what is printed; and of more, how many of a kind have.
_MOST_SHOWN, _OF_EACH_KIND = 20, 2


@dataclass(frozen=True)
class DomainScores:
    """One domain as the new one.

    Attributes
    ----------
    domain : str or int
    n_rows : int
    decision, reason : str
        What would have been decided there, and why.
    scores : dict of dict
        `scores[method][metric]`.
    p_value : float
        Of the test for a changed meaning; NaN where none was made.
    candidates : dict of str to float
        Score of each answer that could have been given without labels, in `metric`.
    shares : tuple of float
        Of the classes.
    metric : str
        By which candidates are compared.
    moved : str
        What moved, as `Shift.verdict` has it; empty where nobody was asked.
    """

    domain: Any
    n_rows: int
    decision: str
    reason: str
    scores: dict[str, dict[str, float]]
    p_value: float = _UNKNOWN
    candidates: dict[str, float] = field(default_factory=dict)
    shares: tuple[float, ...] = ()
    metric: str = "accuracy"
    moved: str = ""

    @property
    def unclear(self) -> bool:
        """Whether the rows said too little to tell."""
        return self.moved == "cannot tell"

    @property
    def best(self) -> str:
        """The candidate that would have been best, which the labels alone tell; empty if none was scored."""
        sign = _sign(self.metric)
        return max(self.candidates, key=lambda name: sign * self.candidates[name], default="")

    @property
    def regret(self) -> float:
        """By how much the best candidate is better than the answer."""
        ours = self.scores[ANSWER].get(self.metric, _UNKNOWN)
        return _sign(self.metric) * (self.candidates.get(self.best, _UNKNOWN) - ours)


@dataclass(frozen=True, repr=False)
class DomainEvaluation:
    """One `DomainScores` per training domain. Prints as a table of those scored; `to_frame` has all.

    Of more than 20, the table has means, the largest regrets, the worst and the best answers.

    Methods compared: `stable` (no adaptation), `answer` (what would have been given, labels hidden), `pooled`
    (one classifier of all features), `labelled` (adapted with the domain's own labels, cross-fitted: what
    labels would be worth; printed as ORACLE). None but the last has seen the domain.
    """

    domains: tuple[DomainScores, ...]

    def mean(self, method: str, metric: str = "accuracy") -> float:
        """Mean of one score over the domains, each counting the same."""
        return _mean([domain.scores[method][metric] for domain in self.domains])

    @property
    def metric(self) -> str:
        """By which answers are compared; accuracy unless another was asked for."""
        return self.domains[0].metric if self.domains else "accuracy"

    def gains_over(self, method: str) -> list[float]:
        """By how much the answer is better than another method in each domain."""
        sign, metric = _sign(self.metric), self.metric
        return [sign * (d.scores[ANSWER][metric] - d.scores[method][metric]) for d in self.domains]

    @property
    def gain(self) -> float:
        """By how much the answer is better than `stable`, the mean over the domains."""
        return _mean(self.gains_over("stable"))

    @property
    def regret(self) -> float:
        """By how much the best candidate is better than the answer, the mean over the domains."""
        return _mean([domain.regret for domain in self.domains])

    def rows(self) -> list[dict[str, Any]]:
        """One flat record per domain and method; p-value, best candidate, regret are the domain's."""
        return [
            {"domain": d.domain, "n_rows": d.n_rows, "method": method, "decision": d.decision}
            | {"p_value": d.p_value, "best": d.best, "regret": d.regret, "metric": d.metric}
            | {"unclear": d.unclear}
            | d.scores[method]
            for d in self.domains
            for method in COMPARED
        ]

    def to_frame(self) -> Any:
        """The records as a pandas DataFrame."""
        import pandas as pd

        return pd.DataFrame(self.rows())

    @property
    def skewed(self) -> bool:
        """Whether the smallest class has so little of its even share that accuracy says little of it."""
        return is_skewed([domain.shares for domain in self.domains])

    @property
    def scored(self) -> tuple[DomainScores, ...]:
        """The domains that were left out and scored; the others were skipped."""
        return tuple(domain for domain in self.domains if domain.decision != SKIPPED)

    def __str__(self) -> str:
        left_out = {str(d.domain): d.reason for d in self.domains if d.decision == SKIPPED}
        return "\n".join([*([self.table()] if self.scored else []), *why_skipped(left_out)])

    def table(self, whole: str = "to_frame()") -> str:
        """What came of each domain that was scored, and the means; of many, of the worst and the best ones.

        `whole` is where to look for the others.
        """
        metric, rows = self.metric, self._told()
        longest = max((len(str(d.domain)) for d in rows), default=0)
        line = partial(_cells, min(max(longest, _NARROWEST), _WIDEST))
        every = ("accuracy", "balanced_accuracy", "log_loss", *("auroc",) * self.skewed)
        more = tuple(name for name in every if name != metric)
        lines = [line(_short(metric), "stable", "answer", "pooled", "ORACLE", "regret")]
        for d in rows:
            scores = [d.scores[method][metric] for method in COMPARED]
            lines.append(line(d.domain, *(shown(metric, value, "") for value in (*scores, d.regret))))
        n_played = len(self.scored)
        mean = "mean" if len(rows) == n_played else f"mean of {n_played}"
        means = [self.mean(method, metric) for method in COMPARED]
        lines.append(line(mean, *(shown(metric, value, "") for value in (*means, self.regret))))
        lines += ["", line("the answer", *map(_short, more), "p")]
        lines[-1] += "  decision"
        for d in rows:
            cells = [shown(metric, d.scores[ANSWER][metric], "") for metric in more]
            told = d.decision + (f", {d.moved}" if d.moved in ("cannot tell", "class shares") else "")
            lines.append(f"{line(d.domain, *cells, p_in_cells(d.p_value))}  {told}")
        lines.append(line(mean, *(shown(metric, self.mean(ANSWER, metric), "") for metric in more)))
        if len(rows) < n_played:
            decided = Counter(d.decision for d in self.scored).most_common()
            lines += [
                f"decisions: {', '.join(f'{count} {decision}' for decision, count in decided)}",
                f"{len(rows)} of {n_played} domains are shown, the worst answer first: those of the largest "
                f"regrets, of the worst and of the best answers ({whole} has all)",
            ]
        return "\n".join(lines)

    def _told(self) -> Sequence[DomainScores]:
        """The domains that have a row in what is printed."""
        if len(self.scored) <= _MOST_SHOWN:
            return self.scored
        sign, metric = _sign(self.metric), self.metric
        known = [d for d in self.scored if d.regret == d.regret]  # what was not scored is no best or worst
        by_answer = sorted(known, key=lambda d: sign * d.scores[ANSWER][metric])
        by_regret = sorted(known, key=lambda d: -d.regret)
        few = [*by_regret[:_OF_EACH_KIND], *by_answer[:_OF_EACH_KIND], *by_answer[-_OF_EACH_KIND:]]
        return [d for d in by_answer if any(d is one for one in few)]

    __repr__ = __str__


def skipped(domain: Any, n_rows: int, reason: str, metric: str = "accuracy") -> DomainScores:
    """What is said of a domain that could not be scored."""
    unknown = dict.fromkeys((*METRICS, metric), _UNKNOWN)
    return DomainScores(domain, n_rows, SKIPPED, reason, dict.fromkeys(COMPARED, unknown), metric=metric)


def why_skipped(reasons: Mapping[str, str]) -> list[str]:
    """Which domains were skipped and why, those alike in one sentence.

    Examples
    --------
    >>> why_skipped({"a": "3 rows are too few", "b": "4 rows are too few", "c": "no class is known"})
    ['2 domains were skipped (a, b); a: 3 rows are too few', 'c was skipped: no class is known']
    """
    alike: dict[str, dict[str, str]] = {}
    for name, reason in reasons.items():
        alike.setdefault(re.sub(r"\d+", "", reason), {})[name] = reason
    told = []
    for group in alike.values():
        first = next(iter(group))
        told.append(
            f"{first} was skipped: {group[first]}"
            if len(group) == 1
            else f"{len(group)} domains were skipped ({first_names(group)}); {first}: {group[first]}"
        )
    return told


def _short(metric: str) -> str:
    return METRIC_NAMES[metric].removesuffix(" accuracy")


def _sign(metric: str) -> float:
    """Of which way is better."""
    return -1.0 if metric in LOSSES else 1.0


def _mean(values: list[float]) -> float:
    known = [value for value in values if value == value]
    return float(np.mean(known)) if known else _UNKNOWN


def _cells(width: int, name: Any, *cells: str) -> str:
    return f"{name!s:<{width}.{width}}" + "".join(f"{cell:>10}" for cell in cells)
