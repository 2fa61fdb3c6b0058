"""Rao's score test in a multinomial regression, with what an equivalence test needs beside it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from scipy.special import chndtr, chndtrinc
from scipy.stats import chi2
from sklearn.linear_model import LogisticRegression

from sfboost.marginal.probabilities import BoolArray, FloatArray, IntArray

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
        if not self.degrees or not np.isfinite(self.inflation):
            return 1.0
        return float(chndtr(self._sober, self.degrees, tolerance**2 / self.inflation))

    def upper(self, level: float) -> float:
        """Upper confidence limit of the drift, for a `level` below ½: where `p_drift` is `level`."""
        if not self.degrees or not np.isfinite(self.inflation):
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
    scaled = vectors[:, keep] / np.sqrt(values[keep])
    statistic = float(((scaled.T @ efficient) ** 2).sum())
    if metric is None:
        return ScoreTest(statistic, int(keep.sum()), np.inf, 0.0)
    return ScoreTest(statistic, int(keep.sum()), *_drift(scaled, keep, metric, efficient))


def _drift(
    scaled: FloatArray, keep: BoolArray, metric: FloatArray, efficient: FloatArray
) -> tuple[float, float]:
    """Largest drift per unit of non-centrality, and the estimated drift."""
    inside = scaled.T @ metric @ scaled
    coefficient = scaled.T @ efficient
    squared = float(coefficient @ inside @ coefficient - np.trace(inside))
    drift = float(np.sqrt(np.clip(squared, 0.0, 1.0)))  # a distance of two laws is never more than one
    # A direction that moves the outcome somewhere, yet has no information, could hide any drift.
    values = np.linalg.eigvalsh(metric)
    if int((values > 1e-9 * values[-1]).sum()) > int(keep.sum()):
        return np.inf, drift
    return float(np.linalg.eigvalsh(inside)[-1]), drift


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
