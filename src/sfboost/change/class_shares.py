"""Rows of a domain weighted as if class shares had not moved (label shift: Saerens et al., 2002)."""

from __future__ import annotations

import numpy as np

from sfboost.marginal.probabilities import FloatArray

_MOST_ROUNDS = 1000
_SETTLED = 1e-7


def shifted(stable: FloatArray, source_prior: FloatArray, weight: FloatArray) -> FloatArray:
    """Stable probabilities as they would be if only the class shares had moved: EM for the shares.

    Examples
    --------
    >>> stable = np.array([[0.1, 0.9], [0.1, 0.9], [0.1, 0.9], [0.9, 0.1]])
    >>> even = shifted(stable, np.array([0.5, 0.5]), np.full(4, 0.25))
    >>> (even.mean(axis=0) - stable.mean(axis=0)).round(2).tolist()
    [-0.11, 0.11]
    """
    shares = source_prior
    for _ in range(_MOST_ROUNDS):
        moved = stable * (shares / source_prior)
        moved = moved / moved.sum(axis=1, keepdims=True)
        settled = np.abs(weight @ moved - shares).max() < _SETTLED
        shares = weight @ moved
        if settled:
            break
    return moved


def back_to_training(stable: FloatArray, source_prior: FloatArray, weight: FloatArray) -> FloatArray:
    """Row weights under which the class shares are those of training, if P(X_S | Y) transports.

    A row of a class that is p times as frequent as in training counts for 1 / p.

    Examples
    --------
    >>> stable = np.array([[0.1, 0.9], [0.1, 0.9], [0.1, 0.9], [0.9, 0.1]])
    >>> weight = back_to_training(stable, np.array([0.5, 0.5]), np.full(4, 0.25))
    >>> (weight @ stable).round(2).tolist()
    [0.5, 0.5]
    """
    moved = shifted(stable, source_prior, weight)
    shares = np.maximum(weight @ moved, np.finfo(np.float64).tiny)
    back = weight * (moved @ (source_prior / shares))
    return np.asarray(back / back.sum())
