"""How likely a change is in each of many domains, given all of them.

A verdict that is held over all domains must be sure of every one of them; an answer has only to be weighed.
So this is an estimate (empirical Bayes), and no decision: one less the local false discovery rate. A domain
has changed in one of two ways.

*Somehow*, which its p-value shows. z = Φ⁻¹(1 − p) is N(0, 1) where nothing changed and about N(t · power, 1)
where a share t of all meaning is lost; how common each t is, is estimated from all domains.

*As others have*, which its features show: each of them is the same, gone or the opposite about as often as in
the domains that have probably changed. Few rows that could not tell by themselves can say that much.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.special import logsumexp, ndtri

from sfboost.marginal.probabilities import FloatArray

# Half of the meaning, all of it, its opposite; more where z sees several features.
_LOST = np.array([0.5, 1.0, 1.5, 2.0, 3.0, 4.0])
# Before any domain is seen so many have changed, half of them as others have: a guess, worth a few domains.
_CHANGES_ARE, _GUESS_WORTH = 0.2, 5.0
# Domains that say each hypothesis of a feature before any is seen.
_PSEUDO_COUNT = 0.5
_ROUNDS, _STEPS, _SETTLED = 4, 200, 1e-5


@dataclass(frozen=True, eq=False)
class Chances:
    """What all domains say of each.

    Attributes
    ----------
    chance : array of shape (D,)
        Probability of a change.
    share : float
        Of the domains, so many have changed; the chance of one that says nothing.
    elsewhere : array of shape (features, 3)
        How many of those that probably changed say which hypothesis of each feature; see `attribute`.
    """

    chance: FloatArray
    share: float
    elsewhere: FloatArray

    @classmethod
    def estimate(cls, p_value: FloatArray, power: FloatArray, fit: FloatArray, enough: FloatArray) -> Self:
        """From all domains.

        Parameters
        ----------
        p_value, power : arrays of shape (D,)
            Of the test. Without power a p-value counts for nothing.
        fit : array of shape (D, features, 3)
            Log-likelihood of each hypothesis of each feature; see `fit_by_feature`.
        enough : array of shape (D,)
            Rows over those that are needed to be asked: below one the fits count as much less.

        Examples
        --------
        >>> p_value, power = np.array([0.5] * 90 + [1e-3] * 10), np.array([3.0] * 100)
        >>> turned = -0.5 * np.array([9.0, 2.0, 0.0])
        >>> fit = np.array([-turned] * 90 + [turned] * 10)[:, None]
        >>> found = Chances.estimate(p_value, power, fit, np.ones(100))
        >>> round(found.share, 2), bool(found.chance[0] < 0.01), bool(found.chance[-1] > 0.8)
        (0.1, True, True)

        References
        ----------
        .. [1] B. Efron (2010). Large-Scale Inference. Cambridge University Press.
        .. [2] M. Stephens (2017). False Discovery Rates: A New Deal. Biostatistics 18.
        """
        somehow = _somehow(p_value, power)
        chance, share = _posterior(somehow, 0)
        elsewhere = np.zeros(fit.shape[1:])
        for _ in range(_ROUNDS):
            changed = fit[chance > 0.5]
            if not len(changed):
                break
            elsewhere = _hypotheses(changed)
            factor = logsumexp(np.log(_shares(elsewhere)) + fit, axis=2) - fit[:, :, 0]
            alike = _independence(factor[chance < 0.5], enough[chance < 0.5])
            factor = alike * np.minimum(enough, 1.0) * factor.sum(axis=1)
            chance, share = _posterior(np.column_stack([somehow, factor]), 1)
        return cls(chance, share, elsewhere)


def _somehow(p_value: FloatArray, power: FloatArray) -> FloatArray:
    """Log-densities of z if nothing changed, and for each t; of shape (D, 7)."""
    # The test looks at one side: whatever says more than expected has p = 0.5.
    z = np.where(power > 0.0, -ndtri(np.clip(p_value, 1e-15, 0.5)), 0.0)[:, None]
    at = np.concatenate([[0.0], _LOST]) * power[:, None]
    fit = np.logaddexp(-0.5 * (z - at) ** 2, -0.5 * (z + at) ** 2)
    return np.asarray(fit - fit[:, :1])


def _posterior(fit: FloatArray, n_common: int) -> tuple[FloatArray, float]:
    """Probability of a change in each domain, and the share of domains that changed."""
    ways = [len(_LOST)] + [1] * bool(n_common)
    share = np.concatenate([[1.0 - _CHANGES_ARE], *(np.full(n, _CHANGES_ARE / len(ways) / n) for n in ways)])
    guess, likelihood = _GUESS_WORTH * share, np.exp(fit - fit.max(axis=1, keepdims=True))
    for _ in range(_STEPS):
        posterior = likelihood * share
        posterior /= posterior.sum(axis=1, keepdims=True)
        before, share = share, (posterior.sum(axis=0) + guess) / (len(posterior) + _GUESS_WORTH)
        if np.abs(share - before).max() < _SETTLED:
            break
    return np.asarray(1.0 - posterior[:, 0]), 1.0 - float(share[0])


def _hypotheses(fit: FloatArray) -> FloatArray:
    """How many of these domains say which hypothesis of each feature."""
    said = np.full(fit.shape[1:], len(fit) / fit.shape[2])
    for _ in range(_STEPS):
        likely = np.log(_shares(said)) + fit
        likely = np.exp(likely - likely.max(axis=2, keepdims=True))
        before, said = said, (likely / likely.sum(axis=2, keepdims=True)).sum(axis=0)
        if np.abs(said - before).max() < _SETTLED * len(fit):
            break
    return np.asarray(said)


def _shares(said: FloatArray) -> FloatArray:
    counts = said + _PSEUDO_COUNT
    return np.asarray(counts / counts.sum(axis=1, keepdims=True))


def _independence(factors: FloatArray, enough: FloatArray) -> float:
    """What the factors of features are worth that go together: 1 if they do not, 1/d if they are all one.

    All of them are larger where rows are many; that is not meant.
    """
    size = np.sqrt(enough)
    if len(factors) < 2:
        return 1.0 / factors.shape[1]
    design = np.column_stack([np.ones(len(size)), size, enough])
    rest = factors - design @ np.linalg.lstsq(design, factors, rcond=None)[0]
    together = max(float(rest.sum(axis=1).var()), np.finfo(np.float64).tiny)
    return float(np.clip(rest.var(axis=0).sum() / together, 1.0 / factors.shape[1], 1.0))
