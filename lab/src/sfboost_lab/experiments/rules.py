"""Rules of choice: by which labelled rows hyper-parameters are chosen. One sweep answers for all of them.

A rule declares the runs it needs beyond the candidates themselves, and scores a candidate from records alone.
Candidates are adapted without labels to the rows they are scored on.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

import numpy as np

from sfboost_lab.experiments.run import Run, digest
from sfboost_lab.experiments.store import Record

#: Accuracies that differ by less are equal, and the log loss decides: on AC most candidates tie.
TOLERANCE = 0.005


class Score(NamedTuple):
    """What a candidate is worth to a rule."""

    accuracy: float
    log_loss: float


class Rule(Protocol):
    """What chooses."""

    @property
    def name(self) -> str:
        """What tables call it."""

    @property
    def oracle(self) -> bool:
        """Whether labels of the test domain are used."""

    def needs(self, run: Run, train: Sequence[str]) -> tuple[Run, ...]:
        """Return the runs that must be recorded, besides the run itself, to score it."""
        ...

    def score(self, run: Run, records: Mapping[str, Record]) -> Score | None:
        """Return the score from the records, None where they do not tell."""
        ...


@dataclass(frozen=True)
class ByPlaces:
    """Chooses by places that every run measures.

    Parameters
    ----------
    name : str
        What tables call it.
    prefix : str
        Of the places, for example "validate".
    oracle : bool
        Whether labels of the test domain are used.

    Examples
    --------
    >>> TEST_DOMAIN.name
    'test-domain validation set (ORACLE)'
    """

    name: str
    prefix: str
    oracle: bool = False

    def needs(self, run: Run, train: Sequence[str]) -> tuple[Run, ...]:
        """Nothing: the places are in the run's own record."""
        return ()

    def score(self, run: Run, records: Mapping[str, Record]) -> Score | None:
        """Mean over the places."""
        record = records.get(run.id)
        if record is None or record.measured is None:
            return None
        places = [place for place in record.measured.metrics if place.startswith(self.prefix)]
        return _mean((record, place) for place in places)


@dataclass(frozen=True)
class LeaveOneDomainOut:
    """Chooses by training domains that were kept from the trainer, one after the other.

    Examples
    --------
    >>> run = Run("pacs", "erm", seed=0, protocol="doc")
    >>> [needed.left_out for needed in LEAVE_ONE_OUT.needs(run, ("photo", "sketch"))]
    ['photo', 'sketch']
    """

    name: str = "leave one domain out"
    oracle: bool = False

    def needs(self, run: Run, train: Sequence[str]) -> tuple[Run, ...]:
        """The same run without each training domain."""
        return tuple(replace(run, left_out=domain) for domain in train)

    def score(self, run: Run, records: Mapping[str, Record]) -> Score | None:
        """Mean over the domains left out; None until every one of them is recorded."""
        own = records.get(run.id)
        if own is None or own.measured is None:
            return None
        pairs = []
        for needed in self.needs(run, own.measured.trained_on):
            if needed.id not in records:
                return None
            pairs.append((records[needed.id], f"left-out/{needed.left_out}"))
        return _mean(pairs)


VALIDATION_DOMAIN = ByPlaces("validation domain", "validate")
TRAINING_DOMAINS = ByPlaces("training domains", "held/")
STRESS_DOMAINS = ByPlaces("stress domains", "stress/")
LEAVE_ONE_OUT = LeaveOneDomainOut()
TEST_DOMAIN = ByPlaces("test-domain validation set (ORACLE)", "oracle/", oracle=True)


def choose(
    candidates: Iterable[Run], records: Mapping[str, Record], rule: Rule, *, across_seeds: bool = False
) -> dict[int, Run]:
    """Return the chosen run of each seed.

    Parameters
    ----------
    candidates : iterable of Run
        All hyper-parameters and seeds to choose among.
    records : mapping of id to Record
    rule : Rule
    across_seeds : bool
        One choice for all seeds rather than one for each, by the mean of the scores over the seeds that
        have every candidate.

    Examples
    --------
    >>> from sfboost_lab.experiments import Measured
    >>> runs = [Run("ac", "irm", seed=0, protocol="doc", hyper={"weight": w}) for w in (1, 10)]
    >>> def record(run, accuracy):
    ...     return Record(run, Measured({"validate-0.6": {"accuracy": accuracy, "log_loss": 0.5}}), 0.0)
    >>> records = {run.id: record(run, accuracy) for run, accuracy in zip(runs, (0.6, 0.7))}
    >>> choose(runs, records, VALIDATION_DOMAIN)[0].hyper
    {'weight': 10}
    """
    scored: dict[int, dict[str, tuple[Run, Score]]] = {}
    for run in candidates:
        score = rule.score(run, records)
        if score is not None:
            scored.setdefault(run.seed, {})[digest(run.candidate())] = (run, score)
    if not across_seeds:
        return {seed: _best(list(found.values())) for seed, found in scored.items()}
    # Candidates are compared on the seeds that all of them have: a sweep may be cut after the first few.
    every = sorted({name for found in scored.values() for name in found})
    swept = [found for found in scored.values() if len(found) == len(every)]
    if not swept:
        return {}
    means = {name: Score(*np.mean([found[name][1] for found in swept], axis=0)) for name in every}
    chosen = digest(_best([(swept[0][name][0], means[name]) for name in every]).candidate())
    return {seed: found[chosen][0] for seed, found in scored.items() if chosen in found}


def _best(scored: Sequence[tuple[Run, Score]]) -> Run:
    top = max(score.accuracy for _, score in scored)
    tied = [(run, score) for run, score in scored if score.accuracy >= top - TOLERANCE]
    # The id decides between equals, so that the order of the records does not.
    return min(tied, key=lambda pair: (pair[1].log_loss, pair[0].id))[0]


def _mean(values: Iterable[tuple[Record, str]]) -> Score | None:
    pairs = [Score(record.value(place), record.value(place, "log_loss")) for record, place in values]
    if not pairs:
        return None
    mean = Score(*(float(np.mean(column)) for column in zip(*pairs, strict=True)))
    return None if any(math.isnan(part) for part in mean) else mean
