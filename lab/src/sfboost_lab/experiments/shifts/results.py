"""Numbers of the suite's records: by learner, table, system, kind of change and number of own domains."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sfboost_lab.experiments.record import Record

BySeed = dict[int, float]
TITLES = {
    "heart_disease": "heart",
    "wine_quality": "wine",
    "amazon_reviews": "Amazon",
    "eicu": "eICU",
    "impact": "IMPACT",
    "tv16": "TV16",
    "gusto": "GUSTO",
    "pacs": "PACS",
    "colored_digits": "coloured digits",
    "colored_mnist": "ColoredMNIST",
}


@dataclass(frozen=True)
class Results:
    """The good records of the suite.

    Examples
    --------
    >>> Results(()).tables("logistic")
    []
    """

    records: tuple[Record, ...]

    @classmethod
    def of(cls, records: Mapping[str, Record]) -> Results:
        """Those that gave numbers, in no order of arrival."""
        return cls(tuple(sorted((r for r in records.values() if r.ok), key=lambda r: r.run.id)))

    def _chosen(self, learner: str, dataset: str, system: str, own: int | None = None) -> list[Record]:
        return self._index.get((learner, dataset, system, own), [])

    @cached_property
    def _index(self) -> dict[tuple[str, str, str, int | None], list[Record]]:
        found: dict[tuple[str, str, str, int | None], list[Record]] = {}
        for record in self.records:
            run = record.run
            key = (run.trainer, run.dataset, run.adapter, run.data.get("own"))
            found.setdefault(key, []).append(record)
        return found

    def learners(self) -> list[str]:
        """Learners that there are records of; logistic regression first."""
        return sorted({r.run.trainer for r in self.records}, reverse=True)

    def tables(self, learner: str) -> list[str]:
        """Data sets whose domains are new in turn, all others being own; smallest first."""
        found = [r.run for r in self.records if _is_new(r, learner, r.run.dataset)]
        sizes = {run.dataset: 0 for run in found}
        for run in found:
            sizes[run.dataset] = max(sizes[run.dataset], run.data["new"])
        return sorted(sizes, key=lambda name: (sizes[name], name))

    def title(self, learner: str, dataset: str) -> str:
        """What a column is called, with the number of domains that have been new."""
        new = {r.run.data["new"] for r in self.records if _is_new(r, learner, dataset)}
        name = TITLES.get(dataset, dataset)
        return f"{name} ({len(new)})" if new else name

    def coloured(self, learner: str) -> list[str]:
        """Data sets of one question and many agreements."""
        found = (r.run for r in self.records if r.run.trainer == learner and "new" not in r.run.data)
        return sorted({run.dataset for run in found})

    def systems(self, learner: str, datasets: Iterable[str]) -> set[str]:
        """Systems with records of all own domains in some of these data sets."""
        wanted = set(datasets)
        return {
            r.run.adapter
            for r in self.records
            if r.run.trainer == learner and r.run.dataset in wanted and r.run.data.get("own") is None
        }

    def score(self, learner: str, dataset: str, system: str, place: str, metric: str = "accuracy") -> BySeed:
        """Mean over the new domains in percent, by seed; empty where the kind does not apply."""
        found: dict[int, list[float]] = {}
        for record in self._chosen(learner, dataset, system):
            value = record.value(place, metric)
            if not math.isnan(value):
                found.setdefault(record.run.seed, []).append(100 * value)
        return {seed: float(np.mean(values)) for seed, values in sorted(found.items())}

    def p_values(
        self, learner: str, dataset: str, place: str, *, own: int | None = None, least_rows: int = 0
    ) -> dict[int, list[float]]:
        """P-values of a change, one for each new domain with enough rows, by seed."""
        found: dict[int, list[float]] = {}
        for record in self._chosen(learner, dataset, "best", own):
            p = record.value(place, "p_change")
            if not math.isnan(p) and record.value(place, "rows") >= least_rows:
                found.setdefault(record.run.seed, []).append(p)
        return found

    def decisions(self, learner: str, datasets: Sequence[str], place: str) -> list[str]:
        """What `best` decided there, one for each new domain and seed."""
        return [
            r.measured.diagnostics["decision"][place]
            for name in datasets
            for r in self._chosen(learner, name, "best")
            if r.measured is not None and place in r.measured.diagnostics.get("decision", {})
        ]


def _is_new(record: Record, learner: str, dataset: str) -> bool:
    run = record.run
    return (run.trainer, run.dataset) == (learner, dataset) and "new" in run.data and "own" not in run.data


def joined(parts: Iterable[BySeed], how: str = "mean") -> BySeed:
    """Mean or largest of several figures, for the seeds that all of them have.

    Examples
    --------
    >>> joined([{0: 1.0, 1: 2.0}, {0: 3.0}]), joined([{0: 1.0}, {0: 3.0}], "max")
    ({0: 2.0}, {0: 3.0})
    """
    parts = [part for part in parts if part]
    seeds = sorted(set.intersection(*(set(part) for part in parts))) if parts else []
    combine = np.mean if how == "mean" else np.max
    return {seed: float(combine([part[seed] for part in parts])) for seed in seeds}
