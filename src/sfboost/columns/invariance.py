"""Whether the relation of a set of columns to the label is the same in every training domain.

Two kinds (E the domain):

- posterior:   E ⟂ Y | X_S, the paper's stability. Regress Y on a flexible function of X_S; test whether
               domain e against the rest has an intercept, slopes or curvature of its own.
- likelihood:  E ⟂ X_S | Y, stability under label shift. Regress E = e on Y; test whether X_S adds to it.

Each domain is compared with all others together. *Changed* needs one domain that differs (Bonferroni over
domains); *drift below the tolerance* must be shown for every domain (an intersection-union test, which
needs no correction). From top to bottom: a set of columns as a smooth basis, the score test and its
equivalence twin, the domains, the two kinds.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations
from typing import Any, Self

import numpy as np
from scipy.special import chndtr, chndtrinc
from scipy.stats import chi2, norm, rankdata
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import SplineTransformer

from sfboost.marginal.probabilities import FloatArray, IntArray

# A column with so few values gets one parameter per value: no smoothness is supposed.
_FEW_VALUES = 6
# With fewer the score test rejects too often: measured .32 instead of .05 at 5.5 rows per parameter.
_ROWS_PER_PARAMETER = 15
# Smallest eigenvalue of a Gram matrix, as a share of the largest, that leaves ten digits or so.
_WELL_APART = 1e-5
# Quintile-like places of a Gaussian, where splines may bend.
_KNOTS = np.array([-2.5, -1.0, 0.0, 1.0, 2.5]).reshape(-1, 1)


def normal_scores(column: FloatArray) -> FloatArray:
    """Ranks as Gaussian quantiles, scaled to mean 0 and variance 1; ties share a score.

    Examples
    --------
    >>> normal_scores(np.array([10.0, 30.0, 20.0])).round(2)
    array([-1.22,  1.22,  0.  ])
    """
    scores = norm.ppf((rankdata(column) - 0.5) / len(column))
    spread = scores.std()
    return (scores - scores.mean()) / (spread if spread > 0.0 else 1.0)


def smooth_basis(scores: FloatArray) -> FloatArray:
    """Basis of a flexible function of one column: indicators of few values, else cubic splines."""
    values = np.unique(scores)
    if len(values) <= _FEW_VALUES:
        return (scores[:, None] == values).astype(np.float64)
    splines = SplineTransformer(degree=3, knots=_KNOTS, extrapolation="linear")
    return np.asarray(splines.fit_transform(scores.reshape(-1, 1)))


def set_basis(scores: list[FloatArray], *, products: bool = True) -> FloatArray:
    """Basis of a flexible function of a set: cubic in each column (or its few values), and products."""
    parts = [
        smooth_basis(z) if len(np.unique(z)) <= _FEW_VALUES else np.column_stack([z, z**2, z**3])
        for z in scores
    ]
    return np.column_stack([*parts, *_products(scores, products)])


def drift_basis(scores: list[FloatArray], *, products: bool = True) -> FloatArray:
    """Directions of drift: slope and curvature of one column; slopes and products of several."""
    if len(scores) == 1:
        return np.column_stack([scores[0], scores[0] ** 2])
    return np.column_stack([*scores, *_products(scores, products)])


def _products(scores: list[FloatArray], wanted: bool) -> list[FloatArray]:
    return [a * b for a, b in combinations(scores, 2)] if wanted else []


def orthonormal(basis: FloatArray) -> FloatArray:
    """An orthonormal basis of the same span, times √n; collinear columns are dropped.

    By the Gram matrix, several times as fast as a singular value decomposition of so many rows; a second time
    where the first may have lost digits.
    """
    sizes = np.linalg.norm(basis, axis=0)
    part = basis[:, sizes > 0.0] / sizes[sizes > 0.0]
    for least in (1e-12, 0.0):
        values, vectors = np.linalg.eigh(part.T @ part)
        keep = values > least * values.max(initial=0.0)
        part = part @ (vectors[:, keep] / np.sqrt(values[keep]))
        if values[keep].min(initial=1.0) > _WELL_APART * values.max(initial=0.0):
            break
    return part * np.sqrt(len(basis))


# Enough to keep perfectly separated classes finite, too little to matter otherwise.
_INVERSE_PENALTY = 1e4


@dataclass(frozen=True)
class ScoreTest:
    """Evidence about extra terms of a regression, which stand for a drift.

    Attributes
    ----------
    statistic : float
        χ² with `degrees` degrees of freedom if the terms are not there, else non-central.
    degrees : int
    inflation : float
        Largest squared drift per unit of non-centrality; infinite if some drift leaves no trace.
    drift : float
        Estimated drift, bias-corrected; 0 if the noise explains it.
    """

    statistic: float
    degrees: int
    inflation: float
    drift: float

    @property
    def p_change(self) -> float:
        """P-value of "no drift": small if there is one."""
        return float(chi2.sf(self.statistic, self.degrees)) if self.degrees else 1.0

    def p_drift(self, tolerance: float) -> float:
        """P-value of "the drift is `tolerance` or more": small if it is shown to be less."""
        if not np.isfinite(self.inflation):
            return 1.0
        return float(chndtr(self._sober, self.degrees, tolerance**2 / self.inflation))

    def upper(self, level: float) -> float:
        """Upper confidence limit of the drift, for a `level` below ½: where `p_drift` is `level`."""
        if not np.isfinite(self.inflation):
            return 1.0
        return min(1.0, float(np.sqrt(chndtrinc(self._sober, self.degrees, level) * self.inflation)))

    @property
    def _sober(self) -> float:
        """The statistic, but no less than its median without drift: luck is no evidence.

        Few rows could else "show" a small drift, with probability `level`, by an accidentally small
        statistic alone.
        """
        return max(self.statistic, float(chi2.ppf(0.5, self.degrees)))


@dataclass(frozen=True, eq=False)
class NullRegression:
    """A multinomial regression on the nuisance basis alone, and tests of what may be added to it.

    What all tests share is computed once, and terms that are zero in most rows cost only the others: testing
    each of fifty domains then takes as long as one test of all rows.

    Attributes
    ----------
    outcome, proba : array of shape (n, K)
        One-hot outcomes, and their fitted probabilities.
    nuisance : array of shape (n, a)
    """

    outcome: FloatArray
    proba: FloatArray
    nuisance: FloatArray

    @classmethod
    def fit(cls, outcome: FloatArray, nuisance: FloatArray) -> Self:
        """Fit one-hot outcomes to the nuisance basis."""
        model = LogisticRegression(
            C=_INVERSE_PENALTY, fit_intercept=False, solver="newton-cholesky", tol=1e-7, max_iter=200
        ).fit(nuisance, outcome.argmax(axis=1))
        proba = np.zeros_like(outcome)
        proba[:, model.classes_] = model.predict_proba(nuisance)
        return cls(outcome, proba, nuisance)

    def test(
        self, tested: FloatArray, metric: FloatArray | None = None, rows: IntArray | None = None
    ) -> ScoreTest:
        """Test whether the terms `tested` belong into the regression.

        Parameters
        ----------
        tested : array of shape (n, c)
        metric : array of shape (c (K − 1), c (K − 1)), optional
            Quadratic form that turns coefficients of the tested terms into a squared drift. None is a
            plain test of association.
        rows : array of int, optional
            Where the terms count; elsewhere they are zero. None is everywhere.
        """
        nuisance, proba, residual = self.nuisance, self.proba, self._residual
        if rows is not None:
            tested, nuisance, proba, residual = (part[rows] for part in (tested, nuisance, proba, residual))
        shared = information(nuisance, proba, tested)
        own = information(tested, proba)
        projection = self._inverse @ shared
        # Class by class inside each column.
        score = (tested.T @ residual).reshape(-1)
        return judge(
            score - projection.T @ self._score,
            own - shared.T @ projection,
            metric,
            scale=np.abs(own).max(initial=0.0),
        )

    @cached_property
    def _residual(self) -> FloatArray:
        return (self.outcome - self.proba)[:, :-1]

    @cached_property
    def _score(self) -> FloatArray:
        return (self.nuisance.T @ self._residual).reshape(-1)

    @cached_property
    def _inverse(self) -> FloatArray:
        return np.asarray(np.linalg.pinv(information(self.nuisance, self.proba), hermitian=True))


def judge(
    efficient: FloatArray, variance: FloatArray, metric: FloatArray | None = None, *, scale: float = 0.0
) -> ScoreTest:
    """The test of an efficient score and its variance; less than 1e-9 of `scale` counts as none."""
    if not len(efficient):
        return ScoreTest(0.0, 0, np.inf, 0.0)
    values, vectors = np.linalg.eigh((variance + variance.T) / 2.0)
    keep = values > 1e-9 * max(float(scale), 1e-300)
    degrees, scaled = int(keep.sum()), vectors[:, keep] / np.sqrt(values[keep])
    coefficient = scaled.T @ efficient
    statistic = float((coefficient**2).sum())
    if metric is None or not degrees:
        return ScoreTest(statistic, degrees, np.inf, 0.0)
    inside = scaled.T @ metric @ scaled
    squared = float(coefficient @ inside @ coefficient - np.trace(inside))
    drift = float(np.sqrt(np.clip(squared, 0.0, 1.0)))  # a distance of two laws is never more than one
    # A direction that moves the outcome somewhere, yet has no information, could hide any drift.
    sizes = np.linalg.eigvalsh(metric)
    hidden = int((sizes > 1e-9 * sizes[-1]).sum()) > degrees
    return ScoreTest(statistic, degrees, np.inf if hidden else float(np.linalg.eigvalsh(inside)[-1]), drift)


def information(design: FloatArray, proba: FloatArray, other: FloatArray | None = None) -> FloatArray:
    """Fisher information of a multinomial regression, the last class as the base.

    With `other` that of the columns of `design` about those of `other`.
    """
    second = design if other is None else other
    free = proba.shape[1] - 1
    matrix = np.empty((design.shape[1], free, second.shape[1], free))
    for k in range(free):
        for j in range(k, free):
            weight = proba[:, k] * ((k == j) - proba[:, j])
            block = (design * weight[:, None]).T @ second
            matrix[:, k, :, j] = matrix[:, j, :, k] = block
    return matrix.reshape(design.shape[1] * free, second.shape[1] * free)


@dataclass(frozen=True)
class Invariance:
    """Evidence about the drift of one set of columns over the training domains.

    Attributes
    ----------
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

    p_change: float
    p_drift: float
    drift: float
    drift_upper: float
    by_domain: tuple[float, ...]
    least_p_drift: float


@dataclass(frozen=True, eq=False)
class TrainingDomains:
    """Normal scores, labels and domains, and how sets of columns are tested on them.

    Attributes
    ----------
    scores : array of shape (n, p)
    label : array of shape (n, K)
        One-hot.
    domain : array of shape (n, E)
        One-hot.
    units : tuple of tuples of int
        What is chosen as a whole: one column, or the codes of one category. Sets are sets of these.
    kind : {"posterior", "likelihood"}
    tolerance, alpha : float
    measured : dict
        Evidence about sets so far.
    """

    scores: FloatArray
    label: FloatArray
    domain: FloatArray
    units: tuple[tuple[int, ...], ...]
    kind: str = "posterior"
    tolerance: float = 0.1
    alpha: float = 0.05
    measured: dict[tuple[int, ...], Invariance] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        X: FloatArray,
        label: IntArray,
        domain: IntArray,
        units: tuple[tuple[int, ...], ...] | None = None,
        **rules: Any,
    ) -> Self:
        """From columns, class and domain numbers; each column is a unit by itself unless told."""
        scores = np.column_stack([normal_scores(column) for column in X.T])
        alone = tuple((j,) for j in range(X.shape[1]))
        return cls(
            scores, np.eye(label.max() + 1)[label], np.eye(domain.max() + 1)[domain], units or alone, **rules
        )

    def measure(self, chosen: tuple[int, ...]) -> Invariance:
        """Evidence about a set of units, computed once: each domain is tested against the others."""
        if chosen not in self.measured:
            tests = (_posterior if self.kind == "posterior" else _likelihood)(self, chosen)
            lucky = [replace(test, statistic=0.0, inflation=test.inflation / 2.0) for test in tests]
            self.measured[chosen] = Invariance(
                p_change=min(1.0, len(tests) * min(test.p_change for test in tests)),
                p_drift=max(test.p_drift(self.tolerance) for test in tests),
                drift=max(test.drift for test in tests),
                drift_upper=max(test.upper(self.alpha) for test in tests),
                by_domain=tuple(test.drift for test in tests),
                least_p_drift=max(test.p_drift(self.tolerance) for test in lucky),
            )
        return self.measured[chosen]

    def columns(self, chosen: tuple[int, ...]) -> list[FloatArray]:
        """The normal scores of a set of units, column by column."""
        return [self.scores[:, j] for unit in chosen for j in self.units[unit]]

    def affords_products(self, n_columns: int) -> bool:
        """Whether a set's products can be fitted and tested without breaking the test's size.

        Cubics and products as nuisance, slopes and products as drift, an intercept each.
        """
        products = n_columns * (n_columns - 1) // 2
        parameters = (2 + 4 * n_columns + 2 * products) * (self.label.shape[1] - 1)
        return len(self.scores) >= _ROWS_PER_PARAMETER * parameters

    @cached_property
    def shares_of_domains(self) -> NullRegression:
        """The regression of Y on the domain alone: its shares need no fitting."""
        sizes = self.domain.sum(axis=0)
        shares = (self.domain.T @ self.label) / sizes[:, None]
        nuisance = self.domain * np.sqrt(len(self.domain) / sizes)
        return NullRegression(self.label, self.domain @ shares, nuisance)

    @property
    def contrasts(self) -> list[FloatArray]:
        """Indicators of each domain; of two, one says it all."""
        n_domains = self.domain.shape[1]
        return [self.domain[:, e] for e in range(1 if n_domains == 2 else n_domains)]


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
