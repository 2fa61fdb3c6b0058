"""A head that learns batch by batch and forgets: sums with a half-life, and one small maximisation a batch.

After each batch the head is the maximum of ℓ of that batch plus a quadratic that stands for all before (the
information so far, faded). Memory is that of a few matrices, however many batches there were.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import logsumexp

from sfboost.adaptation.adaptation import Adaptation
from sfboost.adaptation.fitting import UnstableModel
from sfboost.adaptation.guard import judge
from sfboost.adaptation.likelihood_sums import LikelihoodSums, Point, likelihood_sums
from sfboost.adaptation.problem import Problem
from sfboost.adaptation.standardize import Standardizer
from sfboost.heads import SoftLogisticRegression
from sfboost.heads.linear import LinearFit
from sfboost.heads.objectives import log_proba_from_logits
from sfboost.marginal import PseudoLabelStatistics, floored_log
from sfboost.marginal.probabilities import FloatArray

_STEPS = 6
_CLOSE = 1e-6
# Information of a head that nothing is known of: a standard deviation of ten in every parameter.
_FAINT = 0.01


@dataclass(frozen=True, eq=False)
class OnlineHead:
    """What is kept of all batches so far.

    Attributes
    ----------
    theta : array of shape (columns, d + 1)
    information : array of shape (P, P)
        Of all batches, faded.
    statistics : PseudoLabelStatistics
        Faded sums of f_S: its `weight` is the number of rows that are still remembered.
    standardizer : Standardizer
        Of the first rows; it stays, so that θ keeps its meaning.
    """

    theta: FloatArray
    information: FloatArray
    statistics: PseudoLabelStatistics
    standardizer: Standardizer

    @classmethod
    def after(cls, adaptation: Adaptation) -> OnlineHead:
        """Go on from an adaptation with the default head."""
        model = adaptation.unstable or adaptation.withheld
        if model is None or not isinstance(model.head, SoftLogisticRegression) or model.confusion is not None:
            raise ValueError(
                "Only an adaptation with the default head and settings can be updated, and the stable "
                "predictor was kept here or others were used: adapt to more rows first, or pass "
                "answer='paper'."
            )
        if adaptation.settings.transport != "posterior":
            raise ValueError(
                'Only transport="posterior" can be updated; with transport="likelihood", adapt again to all '
                "rows."
            )
        if adaptation.standardizer is None:
            raise ValueError("Only with standardised features can an adaptation be updated: leave that on.")
        theta = np.column_stack([model.head.coef_, model.head.intercept_])
        covariance = None
        if adaptation.guard is not None:
            covariance = adaptation.guard.head_covariance
        elif adaptation.uncertainty is not None:
            covariance = adaptation.uncertainty.head_covariance
        if covariance is None:
            # The information of rows that f_S tells so much of.
            worth = adaptation.statistics.effective_labels
            information: FloatArray = 0.1 * worth * np.eye(theta.size)
        else:
            information = np.asarray(np.linalg.pinv(covariance, rcond=1e-9, hermitian=True))
        return cls(theta, information, adaptation.statistics, adaptation.standardizer)

    def learn(self, stable: FloatArray, X: FloatArray, keep: float = 1.0, count: float = 1.0) -> OnlineHead:
        """The head after some more rows: what was before counts `keep` times, each of these `count` times."""
        before, new = self.statistics, PseudoLabelStatistics.from_proba(stable)
        statistics = _faded(before, keep) + _faded(new, count)
        past = keep * self.information + _FAINT * np.eye(self.theta.size)
        theta = self.theta
        for _ in range(_STEPS):
            sums = self._sums(stable, X, theta, statistics.prior)
            gradient = count * sums.gradient.ravel() + past @ (theta - self.theta).ravel()
            step = _descend(past + count * sums.hessian, gradient, least=_FAINT)
            # A batch may be far from what was: no step is longer than one in the logits.
            step *= min(1.0, 1.0 / max(float(np.abs(step).max()), 1e-12))
            theta = theta - step.reshape(theta.shape)
            if np.abs(step).max() < _CLOSE:
                break
        information = keep * self.information + count * _positive(sums.hessian)
        return replace(self, theta=theta, information=information, statistics=statistics)

    def log_likelihood(self, stable: FloatArray, X: FloatArray) -> float:
        """ℓ of some rows: how well the head tells their f_S from their X_U."""
        point = Point(self.theta, self.statistics.prior, self.standardizer, curved=False)
        return -likelihood_sums(stable, X, point).value

    def log_likelihoods(self, stable: FloatArray, X: FloatArray) -> FloatArray:
        """ℓ of each row, log Σ_y f_S,y f_U,y / p_y."""
        rows = self.standardizer.apply(X)
        unstable = log_proba_from_logits(rows @ self.theta[:, :-1].T + self.theta[:, -1])
        return np.asarray(
            logsumexp(floored_log(stable) + unstable - floored_log(self.statistics.prior), axis=1)
        )

    def _sums(
        self, stable: FloatArray, X: FloatArray, theta: FloatArray, prior: FloatArray
    ) -> LikelihoodSums:
        return likelihood_sums(stable, X, Point(theta, prior, self.standardizer))

    def adapt(self, adaptation: Adaptation, stable: FloatArray, X: FloatArray) -> Adaptation:
        """The adaptation with this head in it; a guard judges its gain on these rows."""
        before = adaptation.unstable or adaptation.withheld
        assert before is not None
        assert isinstance(before.head, SoftLogisticRegression)
        head = SoftLogisticRegression(l2=before.head.l2)
        head.classes_ = before.head.classes_
        head.take(LinearFit(self.theta[:, :-1].T, self.theta[:, -1], float("nan"), 0, True))
        prior, guard, decision = self.statistics.prior, adaptation.guard, adaptation.decision
        model, kept = UnstableModel(head), False
        if guard is not None:
            alarmed = adaptation.unstable is None and guard.accepts
            faint = _FAINT * np.eye(self.theta.size)
            guard = judge(
                Problem.unlabelled(stable, self.standardizer.apply(X), prior),
                model,
                (guard.leak, guard.leak_source),
                prior=prior,
                confusion=self.statistics.confusion,
                covariance=np.asarray(np.linalg.pinv(self.information + faint, hermitian=True)),
                yardstick=guard.yardstick,
            )
            if not alarmed:  # what an alarm kept stays kept
                decision = guard.decision(f"{self.statistics.weight:.0f} rows are remembered")
            kept = decision.kind == "kept stable"
        return replace(
            adaptation,
            decision=decision,
            unstable=None if kept else model,
            withheld=model if kept else None,
            prior=prior,
            divisor=prior,
            statistics=self.statistics,
            guard=guard,
            uncertainty=None,
            cross_fit=None,
            n_rows=round(self.statistics.weight),
        )


def _faded(statistics: PseudoLabelStatistics, share: float) -> PseudoLabelStatistics:
    return PseudoLabelStatistics(
        share * statistics.weight, share * statistics.total, share * statistics.cross
    )


def _descend(hessian: FloatArray, gradient: FloatArray, least: float) -> FloatArray:
    values, vectors = np.linalg.eigh(hessian)
    return np.asarray(vectors @ ((vectors.T @ gradient) / np.maximum(values, least)))


def _positive(hessian: FloatArray) -> FloatArray:
    """Without the directions in which ℓ bends the wrong way: they inform of nothing."""
    values, vectors = np.linalg.eigh(hessian)
    return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)
