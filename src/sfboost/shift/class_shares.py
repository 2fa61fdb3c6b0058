"""Rows of a domain weighted as if class shares had not moved (label shift: Saerens et al., 2002)."""

from __future__ import annotations

import numpy as np

from sfboost.marginal.probabilities import FloatArray
from sfboost.marginal.shares import shifted


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
