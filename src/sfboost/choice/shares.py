"""Class shares of a target domain: whether they moved, and where to.

Moved shares and moved features X both move what a classifier says on average. Source domains, each left out,
tell how far log-probabilities drift of themselves, how far class shares move, and whether answers are better
for taking such a move at its word.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.stats import norm
from scipy.stats import t as student

from sfboost.marginal.probabilities import FloatArray, IntArray, log_softmax
from sfboost.marginal.shares import shifted
from sfboost.shift import DomainData
from sfboost.shift.prediction import PRIOR_DOMAINS

#: Level of the bounds on drift and spread.
LEVEL = 0.05
#: The log odds of a class drift, and its share moves, by so much: guesses that are worth `PRIOR_DOMAINS`.
DRIFT, SPREAD = 0.2, 0.5
_MOST_STEPS = 200


@dataclass(frozen=True, eq=False)
class ClassShares:
    """What source domains say of class shares.

    Attributes
    ----------
    prior : array of shape (K,)
        Those of training.
    drift, spread : float
        How far the log-probability of a class drifts from domain to domain, class shares apart; and how far
        the logarithm of its share moves: both at most, but for `LEVEL`.
    helps : bool
        Whether left-out source domains do not lose by it.
    """

    prior: FloatArray
    drift: float
    spread: float
    helps: bool = True

    @classmethod
    def learn(cls, rows: Sequence[DomainData], labels: Sequence[IntArray], prior: FloatArray) -> Self:
        """Learn from labelled domains, each seen by classifiers that were trained without it."""
        off, moved = [], []
        for part, y in zip(rows, labels, strict=True):
            counts = len(y) * np.bincount(y, part.weight, len(prior))
            shares = (counts + 0.5) / (len(y) + 0.5 * len(prior))
            moved.append(np.log(shares / prior))
            off.append(_drift(np.exp(part.log_pooled + moved[-1]), part.weight, shares))
        found = cls(prior, _bound(off, DRIFT), _bound(moved, SPREAD))
        gain = sum(_gain(found, part, y) for part, y in zip(rows, labels, strict=True))
        return cls(prior, found.drift, found.spread, gain >= 0.0)

    def here(self, rows: DomainData) -> FloatArray:
        """Class shares of these rows by EM: those of training, if a drift, or chance, would explain the rows.

        They move only as far as the classifier of each side, by itself, finds them moved, and no farther than
        source domains lead to expect.

        References
        ----------
        .. [1] M. Saerens, P. Latinne and C. Decaestecker (2002). Adjusting the Outputs of a Classifier to New
           a Priori Probabilities: A Simple Procedure. Neural Computation 14.
        """
        prior, pooled = self.prior, np.exp(rows.log_pooled)
        towards = np.sign(rows.weight @ pooled - prior)
        surely = _by_em(pooled * np.exp(-self.drift * towards), rows.weight, prior)
        chance = norm.ppf(1.0 - LEVEL / 2.0) * np.sqrt(prior * (1.0 - prior) * (rows.weight @ rows.weight))
        by_chance = (np.abs(surely - prior) <= chance).all()
        if not self.helps or by_chance or (np.sign(surely - prior) != towards).any():
            return prior
        step = _log_ratio(pooled, rows.weight, prior)
        for log_proba in (rows.log_stable, rows.log_unstable):
            if log_proba is not None:
                alone = _log_ratio(np.exp(log_proba), rows.weight, prior)
                step = step * min(max(float(alone @ step) / max(float(step @ step), 1e-12), 0.0), 1.0)
        step = step - step.mean()
        shares = prior * np.exp(step * min(self.spread / max(float(np.abs(step).max()), 1e-12), 1.0))
        return np.asarray(shares / shares.sum())


def _drift(proba: FloatArray, weight: FloatArray, shares: Any) -> FloatArray:
    """By how much log-probabilities must be corrected so that their mean is the class shares."""
    drift = np.zeros(len(shares))
    for _ in range(_MOST_STEPS):
        here = proba * np.exp(drift)
        step = np.log(shares / (weight @ (here / here.sum(axis=1, keepdims=True))))
        drift += step
        if np.abs(step).max() < 1e-4:
            break
    return drift


def _bound(values: Sequence[FloatArray], guess: float) -> float:
    """How far one more domain may be off, if these are; `guess` is of log odds, before any is seen."""
    n_domains, centred = len(values), np.array(values) - np.mean(values, axis=1, keepdims=True)
    square = n_domains * np.mean(centred**2) + PRIOR_DOMAINS * (guess / 2.0) ** 2
    far = student.ppf(1.0 - LEVEL / 2.0, n_domains + PRIOR_DOMAINS)
    return float(far * np.sqrt(square / (n_domains + PRIOR_DOMAINS)))


def _gain(shares: ClassShares, rows: DomainData, y: IntArray) -> float:
    """What a left-out domain gains in log loss by moved class shares."""
    moved = log_softmax(rows.log_pooled + np.log(shares.here(rows) / shares.prior))
    every = np.arange(len(y))
    return float(rows.weight @ (moved[every, y] - rows.log_pooled[every, y]))


def _log_ratio(proba: FloatArray, weight: FloatArray, prior: FloatArray) -> FloatArray:
    return np.asarray(np.log(np.maximum(_by_em(proba, weight, prior), 1e-6) / prior))


def _by_em(proba: FloatArray, weight: FloatArray, prior: FloatArray) -> FloatArray:
    """The most likely class shares, if all else is as in training."""
    proba = proba / proba.sum(axis=1, keepdims=True)
    return np.asarray(weight @ shifted(proba, prior, weight))
