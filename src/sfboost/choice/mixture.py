"""One answer of several classifiers: a mixture in log space, weighed by domains that were left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from sfboost.calibration import Temperature
from sfboost.marginal.probabilities import FloatArray, IntArray, log_softmax

#: Pseudo-domains, labelled as the first member says, that hold the weights back from what few domains say.
PSEUDO_DOMAINS = 10.0
# A member counts at most twice: the sum is free, so that the mixture is calibrated as well.
_MOST_WEIGHT, _MOST_BIAS = 2.0, 5.0


@dataclass(frozen=True, eq=False)
class Mixture:
    """log p = Σ_m weight_m · log p_m + bias, normalised.

    Attributes
    ----------
    weights : array of shape (M,)
    bias : array of shape (K,) or None
    """

    weights: FloatArray
    bias: FloatArray | None = None

    @classmethod
    def of(cls, temperature: Temperature, n_members: int = 1) -> Mixture:
        """The first member alone."""
        weights = np.zeros(n_members)
        weights[0] = 1.0 / temperature.temperature
        return cls(weights, temperature.bias)

    def apply(self, said: Sequence[FloatArray]) -> FloatArray:
        """Log-probabilities of shape (n, K) from those of each member.

        Examples
        --------
        >>> both = Mixture(np.array([0.5, 0.5]))
        >>> np.exp(both.apply([np.log([[0.5, 0.5]]), np.log([[0.1, 0.9]])])).round(2)
        array([[0.25, 0.75]])
        """
        mixed = np.tensordot(self.weights, np.stack(said), 1)
        return log_softmax(mixed if self.bias is None else mixed + self.bias)


def fit_mixture(
    said: Sequence[FloatArray], y: IntArray, domain: IntArray, sample_weight: FloatArray
) -> Mixture:
    """Find the weights of members by log loss on domains that these were not trained on.

    Every domain counts the same. `PSEUDO_DOMAINS` more have the same rows, labelled as the first member says:
    with few domains it is hardly changed.

    Parameters
    ----------
    said : sequence of arrays of shape (n, K)
        Log-probabilities of each member, the base learner first.
    y, domain : integer arrays of shape (n,)
    sample_weight : array of shape (n,)

    Examples
    --------
    A second member that knows what the first does not:

    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(4000, 2))
    >>> y = (rng.random(4000) < 1 / (1 + np.exp(-x.sum(axis=1)))).astype(int)
    >>> said = [np.log(np.column_stack([1 - p, p])) for p in (1 / (1 + np.exp(-x))).T]
    >>> fit_mixture(said, y, np.arange(4000) % 20, np.ones(4000)).weights.round(1)
    array([1. , 0.7])
    """
    members, n_classes = np.stack(said), said[0].shape[1]
    share = sample_weight / np.bincount(domain, sample_weight)[domain]
    n_domains = len(np.unique(domain))
    target = np.eye(n_classes)[y] + PSEUDO_DOMAINS / n_domains * np.exp(log_softmax(said[0]))
    target *= (share / (n_domains + PSEUDO_DOMAINS))[:, None]
    mass, n_members = target.sum(axis=1, keepdims=True), len(said)

    def loss(theta: FloatArray) -> tuple[float, FloatArray]:
        log_proba = log_softmax(
            np.tensordot(theta[:n_members], members, 1) + np.append(theta[n_members:], 0.0)
        )
        error = np.exp(log_proba) * mass - target
        gradient = np.append((members * error).sum(axis=(1, 2)), error.sum(axis=0)[:-1])
        return -float((target * log_proba).sum()), gradient

    start = np.eye(1, n_members + n_classes - 1)[0]
    bounds = [(0.0, _MOST_WEIGHT)] * n_members + [(-_MOST_BIAS, _MOST_BIAS)] * (n_classes - 1)
    found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds).x
    return Mixture(found[:n_members], np.append(found[n_members:], 0.0))
