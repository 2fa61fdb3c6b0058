"""What f_S shows of Φ_U within a class, as one number, and f_S without it."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from sfboost.marginal.probabilities import FloatArray


def find_leak_slope(
    logits: FloatArray, unstable: FloatArray, y: npt.NDArray[np.intp], domain: npt.NDArray[Any]
) -> float:
    """How much what Φ_U says raises the stable logits within a class and domain, less what may be chance.

    The slope b of the logits on what Φ_U says, with a standard error e that allows for unequal
    spread, is shrunk to b (1 − e² / b²), and to zero where it is within its error (the positive part of
    James and Stein): a leak that is clear is taken out whole, one that is not hardly, and nothing jumps.
    A negative slope is none. f_S may read what Φ_U says, since that follows the label in training; nothing
    teaches it the contrary, and to take that out would be to write Φ_U into it.
    The law of f_S given the class and Φ_U is the same in all domains if f_S reads nothing else that is
    unstable, so that what is measured where Φ_U is mostly right holds where it is wrong.

    Parameters
    ----------
    logits : array of shape (n, K)
        Of f_S, on rows that had no part in its training.
    unstable : array of shape (n, d)
        Φ_U of a search, bounded: what it says of the second of two classes, or of each of K classes.
    y : integer array of shape (n,)
        Class positions.
    domain : array of shape (n,)

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y, u = rng.integers(0, 2, 4000), rng.uniform(-1, 1, size=(4000, 1))
    >>> z = y - 0.5 + rng.normal(size=4000)
    >>> domain = np.zeros(4000)
    >>> leaky = z + 0.5 * u[:, 0]
    >>> slopes = [find_leak_slope(np.c_[-said, said] / 2, u, y, domain) for said in (z, leaky)]
    >>> [round(slope, 1) for slope in slopes]
    [0.0, 0.5]
    """
    said, shown = logits - logits.mean(axis=1, keepdims=True), _shown(unstable)
    for name in np.unique(domain):
        for label in np.unique(y[domain == name]):
            here = (domain == name) & (y == label)
            said[here] -= said[here].mean(axis=0)
            shown[here] -= shown[here].mean(axis=0)
    spread = float((shown**2).sum())
    if spread <= 0.0:
        return 0.0
    slope = float((shown * said).sum()) / spread
    if slope <= 0.0:
        return 0.0
    by_row = (shown * (said - slope * shown)).sum(axis=1)
    chance = float(by_row @ by_row) / spread**2
    return slope * max(0.0, 1.0 - chance / slope**2)


def without_leak(logits: FloatArray, unstable: FloatArray, slope: float) -> FloatArray:
    """Return the stable logits without so much of what Φ_U says."""
    return logits - slope * _shown(unstable) if slope else logits


def _shown(unstable: FloatArray) -> FloatArray:
    """What Φ_U says of each class, of shape (n, K)."""
    return np.c_[-unstable, unstable] / 2.0 if unstable.shape[1] == 1 else unstable.copy()
