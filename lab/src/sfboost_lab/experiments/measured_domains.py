"""What a run learns from and where it is measured: rows of domains under names that the rules know.

"test-0.1" and the like are reported. "validate…", "held/…" (rows of training domains that were not trained
on), "stress/…", "left-out/…" and "oracle/…" are where hyper-parameters are chosen; every method is adapted
there without labels, as it is in the test domain.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sfboost.datasets import Dataset
from sfboost.leakage.stress import stress_domains, unstable_guess
from sfboost_lab.baselines.contract import LabelledRows, Predictor


@dataclass(frozen=True, eq=False)
class Place:
    """Rows of one place; the labels are for scoring, and for methods that declare labelled access.

    Examples
    --------
    >>> Place("test-0.1", np.zeros((2, 1)), np.array([0, 1])).chooses
    False
    """

    name: str
    X: Any
    y: npt.NDArray[np.intp]

    @property
    def chooses(self) -> bool:
        """Whether the place serves a rule of choice rather than the report."""
        return not self.name.startswith("test")


@dataclass(frozen=True, eq=False)
class RunRows:
    """All rows of a run.

    Parameters
    ----------
    train : LabelledRows
    validation : LabelledRows, optional
        Labelled rows that trainers may calibrate on. Rows of a training domain carry its name.
    places : tuple of Place
    pool : LabelledRows, optional
        Labelled rows that were not trained on, for stress domains.
    """

    train: LabelledRows
    validation: LabelledRows | None
    places: tuple[Place, ...]
    pool: LabelledRows | None = None

    def without(self, domain: str) -> RunRows:
        """The same without any row of one training domain, which becomes the only place."""
        here = self.train.domain == domain
        if not here.any():
            raise ValueError(f"No training domain {domain!r}; there are {sorted(set(self.train.domain))}.")
        return RunRows(
            _dropped(self.train, domain),
            None if self.validation is None else _dropped(self.validation, domain),
            (Place(f"left-out/{domain}", self.train.X[here], self.train.y[here]),),
        )


def _dropped(rows: LabelledRows, domain: str) -> LabelledRows:
    kept = rows.domain != domain
    return LabelledRows(rows.X[kept], rows.y[kept], rows.domain[kept])


def place_of(dataset: Dataset, domain: str, name: str | None = None) -> Place:
    """Return a domain as a place, under another name if one is given.

    Examples
    --------
    >>> from sfboost_lab.datasets import load
    >>> place_of(load("ac"), "test-0.1", "oracle/test-0.1").name
    'oracle/test-0.1'
    """
    X, y = dataset.xy(domain)
    return Place(name or domain, X, y)


def rows_at(places: Sequence[Place]) -> LabelledRows:
    """Return the rows of places, one below the other; each is a domain."""
    domain = np.repeat([place.name for place in places], [len(place.y) for place in places])
    return LabelledRows(np.concatenate([p.X for p in places]), np.concatenate([p.y for p in places]), domain)


def labelled(dataset: Dataset, domains: Iterable[str], names: Iterable[str] | None = None) -> LabelledRows:
    """Return labelled rows of some domains, under other names if these are given.

    Examples
    --------
    >>> from sfboost_lab.datasets import load
    >>> len(labelled(load("ac", n_rows=5), ["test-0.1"]))
    5
    """
    domains = list(domains)
    X, y, domain = dataset.pooled(domains)
    if names is not None:
        domain = np.repeat(list(names), [len(dataset.domain(name)) for name in domains])
    return LabelledRows(X, y, domain)


def stress_places(pool: LabelledRows | None, predictor: Predictor, n_rows: int | None = None) -> list[Place]:
    """Return labelled rows resampled to other meanings of the predictor's unstable features.

    There are none where the predictor has no unstable features, or where these guess one class only.
    """
    if pool is None or not hasattr(predictor, "stable_and_unstable"):
        return []
    unstable = predictor.stable_and_unstable(pool.X)[1]
    try:
        guess = unstable_guess(unstable, pool.y, pool.domain)
        made = stress_domains(pool.y, guess, n_rows=n_rows)
    except ValueError:
        return []
    return [Place(f"stress/{s.agreement:g}", pool.X[s.rows], pool.y[s.rows]) for s in made]
