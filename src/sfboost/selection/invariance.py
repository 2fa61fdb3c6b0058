"""Whether the relation of a set of columns to the label is the same in every training domain.

Two kinds (E the domain):

- posterior:   E ⟂ Y | X_S, the paper's stability. Regress Y on a flexible function of X_S; test whether
               domain e against the rest has an intercept, slopes or curvature of its own.
- likelihood:  E ⟂ X_S | Y, stability under label shift. Regress E = e on Y; test whether X_S adds to it.

Each domain is compared with all others together. *Changed* needs one domain that differs (Bonferroni over
domains); *drift below the tolerance* must be shown for every domain (an intersection-union test, which
needs no correction).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from sfboost.marginal.probabilities import FloatArray, IntArray
from sfboost.selection.basis import (
    drift_basis,
    orthonormal,
    products_affordable,
    set_basis,
    smooth_basis,
)
from sfboost.selection.score import NullRegression, ScoreTest, information, judge


@dataclass(frozen=True)
class Invariance:
    """Evidence about the drift of one set of columns over the training domains.

    Attributes
    ----------
    columns : tuple of int
    p_change : float
        Small if some domain differs.
    p_drift : float
        Small if every domain is shown to differ by less than the tolerance.
    drift : float
        Largest estimated drift of a domain: root mean square total variation distance between its
        Pr[Y | x] (or Pr[x | Y]) and that of the other domains.
    drift_upper : float
        Upper confidence limit of the largest drift.
    by_domain : tuple of float
        Estimated drift of each domain against the others; of two domains, one number says it all.
    least_p_drift : float
        What `p_drift` would be without any drift, in the domain that says least, had it twice the rows: no
        larger set is expected to fall below. Weights of rows differ with what is fitted, hence the factor.
    """

    columns: tuple[int, ...]
    p_change: float
    p_drift: float
    drift: float
    drift_upper: float
    by_domain: tuple[float, ...] = ()
    least_p_drift: float = 0.0


@dataclass(frozen=True, eq=False)
class TrainingDomains:
    """Normal scores, labels and domains, as the tests need them.

    Attributes
    ----------
    scores : array of shape (n, p)
    label : array of shape (n, K)
        One-hot.
    domain : array of shape (n, E)
        One-hot.
    units : tuple of tuples of int
        What is chosen as a whole: one column, or the codes of one category. Sets are sets of these.
    measured : dict
        Evidence about sets so far, by the rules of the test and the set.
    """

    scores: FloatArray
    label: FloatArray
    domain: FloatArray
    units: tuple[tuple[int, ...], ...]
    measured: dict[Any, Invariance] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        scores: FloatArray,
        label: IntArray,
        domain: IntArray,
        units: tuple[tuple[int, ...], ...] | None = None,
    ) -> TrainingDomains:
        """From class and domain numbers; each column is a unit by itself unless told."""
        alone = tuple((j,) for j in range(scores.shape[1]))
        return cls(scores, np.eye(label.max() + 1)[label], np.eye(domain.max() + 1)[domain], units or alone)

    def columns(self, chosen: tuple[int, ...]) -> list[FloatArray]:
        """The normal scores of a set of units, column by column."""
        return [self.scores[:, j] for unit in chosen for j in self.units[unit]]

    def affords_products(self, n_columns: int) -> bool:
        """Whether the rows are enough for the products of so many columns."""
        return products_affordable(len(self.scores), n_columns, self.label.shape[1])

    @cached_property
    def shares_of_domains(self) -> NullRegression:
        """The regression of Y on the domain alone: its shares need no fitting."""
        sizes = self.domain.sum(axis=0)
        shares = (self.domain.T @ self.label) / sizes[:, None]
        return NullRegression(
            self.label, self.domain @ shares, self.domain * np.sqrt(len(self.domain) / sizes)
        )

    @property
    def contrasts(self) -> list[FloatArray]:
        """Indicators of each domain; of two, one says it all."""
        n_domains = self.domain.shape[1]
        return [self.domain[:, e] for e in range(1 if n_domains == 2 else n_domains)]


def measure_invariance(
    data: TrainingDomains, chosen: tuple[int, ...], kind: str, tolerance: float, level: float
) -> Invariance:
    """Test one set of columns in every domain."""
    tests = _KINDS[kind](data, chosen)
    return Invariance(
        columns=chosen,
        p_change=min(1.0, len(tests) * min(test.p_change for test in tests)),
        p_drift=max(test.p_drift(tolerance) for test in tests),
        drift=max(test.drift for test in tests),
        drift_upper=max(test.upper(level) for test in tests),
        by_domain=tuple(test.drift for test in tests),
        least_p_drift=max(
            replace(test, statistic=0.0, inflation=test.inflation / 2.0).p_drift(tolerance) for test in tests
        ),
    )


def _posterior(data: TrainingDomains, chosen: tuple[int, ...]) -> list[ScoreTest]:
    scores = data.columns(chosen)
    products = data.affords_products(len(scores))
    flexible = smooth_basis(scores[0]) if len(scores) == 1 else set_basis(scores, products=products)
    ones = np.ones((len(data.scores), 1))
    nuisance = orthonormal(np.column_stack([ones, flexible]))
    terms = orthonormal(np.column_stack([ones, drift_basis(scores, products=products)]))
    null = NullRegression.fit(data.label, nuisance)
    # The terms move the log-odds: Σ_k Δ_k² / p_k is their information, and a quarter of it bounds the
    # squared total variation distance.
    metric = information(terms, null.proba) / (4.0 * len(terms))
    return [null.test(terms, metric, np.flatnonzero(inside)) for inside in data.contrasts]


def _likelihood(data: TrainingDomains, chosen: tuple[int, ...]) -> list[ScoreTest]:
    scores = data.columns(chosen)
    terms = drift_basis(scores, products=data.affords_products(len(scores)))
    # Class by class, centred within the class: only the shape of the law of X_S given Y counts.
    blocks, classes = [], []
    for k in range(data.label.shape[1]):
        inside = data.label[:, k]
        if inside.any():
            blocks.append(orthonormal((terms - inside @ terms / inside.sum()) * inside[:, None]))
            classes += [k] * blocks[-1].shape[1]
    tested, sizes = np.column_stack(blocks), data.label.sum(axis=0)
    # The terms are the log ratio of two densities: a quarter of its variance bounds their squared distance.
    metric = np.eye(len(classes)) / 4.0
    results = []
    for member in data.contrasts:
        rows = np.flatnonzero(member)
        share = data.label[rows].sum(axis=0) / np.maximum(sizes, 1.0)
        # Terms are orthogonal to the classes and to each other, so that the information is diagonal.
        variance = len(tested) * np.diag((share * (1.0 - share))[classes])
        results.append(judge(tested[rows].sum(axis=0), variance, metric, scale=variance.max(initial=0.0)))
    return results


_KINDS: dict[str, Callable[[TrainingDomains, tuple[int, ...]], list[ScoreTest]]] = {
    "posterior": _posterior,
    "likelihood": _likelihood,
}


def p_uninformative(data: TrainingDomains, added: tuple[int, ...], given: tuple[int, ...] = ()) -> float:
    """P-value of "the columns `added` say nothing of Y, given the domain and the columns `given`"."""
    products = data.affords_products(len(data.columns(added + given)))
    null = data.shares_of_domains
    if given:
        flexible = set_basis(data.columns(given), products=products)
        null = NullRegression.fit(data.label, orthonormal(np.column_stack([data.domain, flexible])))
    new = data.columns(added)
    terms = [*new, *(z**2 for z in new)]
    if products:
        terms += [z * g for z in new for g in data.columns(given)]
    tested = np.column_stack(terms)
    # Terms that the nuisance explains, such as the square of a two-valued column, test nothing.
    tested = tested - null.nuisance @ (null.nuisance.T @ tested) / len(tested)
    tested = tested[:, tested.std(axis=0) > 1e-9]
    return null.test(orthonormal(tested)).p_change if tested.shape[1] else 1.0
