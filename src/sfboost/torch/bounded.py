"""Φ_U of a search, bounded: which class it points to, and hardly how strongly."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import softmax

from sfboost.calibration import fit_temperature
from sfboost.marginal.probabilities import FloatArray

# What the best class is ahead of the second by in the middle row, as a logit: 98 % and 2 % of two classes.
_AHEAD = 4.0


@dataclass(frozen=True, eq=False)
class Bounded:
    """What Φ_U says of each class beyond its share, as a number that levels off.

    How far Φ_U is from its threshold is mostly about how much there is to see in a row: of a coloured digit,
    how much ink. f_S sees that too, so that within a class the two are not independent, and where the colour
    has lost its meaning a head would learn the ink. Levelled off, Φ_U says the colour and little else.

    Parameters
    ----------
    log_shares : array of shape (K,)
        Logits of a row of which Φ_U says no more than the class shares.
    scale : float
        Factor of the logits.

    Examples
    --------
    >>> u = np.array([[-3.0], [-2.0], [2.0], [3.0]])
    >>> Bounded.of(u, np.array([0.5, 0.5])).apply(u).round(2).ravel().tolist()
    [-0.98, -0.92, 0.92, 0.98]
    """

    log_shares: FloatArray
    scale: float

    @classmethod
    def of(
        cls, unstable: FloatArray, shares: npt.ArrayLike, y: npt.NDArray[np.intp] | None = None
    ) -> Bounded:
        """Choose the scale by rows that had no part in training.

        Parameters
        ----------
        unstable : array of shape (n, d)
            Φ_U: the logit of the second of two classes, or those of K classes.
        shares : array of shape (K,)
            Of the classes.
        y : integer array of shape (n,), optional
            Class positions, which put Φ_U right: one that was held back by the penalty on what it has in
            common with f_S says too little of a class, and too little against it.
        """
        log_shares = np.log(np.maximum(shares, 1e-12))
        if y is not None:
            right = fit_temperature(_logits(unstable), y, bias=True)
            assert right.bias is not None
            log_shares = right.temperature * (log_shares - right.bias)
        said = np.sort(_logits(unstable) - log_shares, axis=1)
        ahead = float(np.median(said[:, -1] - said[:, -2]))
        return cls(log_shares, _AHEAD / ahead if ahead > 1e-6 else 1.0)

    def apply(self, unstable: FloatArray) -> FloatArray:
        """Return an array of the same shape, between −1 and 1."""
        said = softmax(self.scale * (_logits(unstable) - self.log_shares), axis=1)
        if unstable.shape[1] == 1:
            return np.asarray(2.0 * said[:, 1:] - 1.0)
        return np.asarray(said - 1.0 / said.shape[1])


def _logits(unstable: FloatArray) -> FloatArray:
    return np.c_[np.zeros(len(unstable)), unstable] if unstable.shape[1] == 1 else unstable
