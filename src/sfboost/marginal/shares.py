"""Class shares under label shift: only Pr[Y] moved, and P(X | Y) is as it was in training.

The shares that make the rows most likely are found by EM (Saerens et al., 2002); nothing but calibrated
probabilities is needed.
"""

from __future__ import annotations

from math import sqrt

import numpy as np

from sfboost.marginal.probabilities import FloatArray

_TINY = float(np.finfo(np.float64).tiny)
# Rounds at the most, and a step that changes nothing any more.
_ROUNDS, _SETTLED = 300, 1e-7


def shifted(proba: FloatArray, source_prior: FloatArray, weight: FloatArray) -> FloatArray:
    """Probabilities as they would be if only the class shares had moved: their most likely shares.

    EM whose steps are extrapolated (SQUAREM) while that makes the rows more likely: alone it needs hundreds
    where classes overlap.

    Examples
    --------
    >>> stable = np.array([[0.1, 0.9], [0.1, 0.9], [0.1, 0.9], [0.9, 0.1]])
    >>> even = shifted(stable, np.array([0.5, 0.5]), np.full(4, 0.25))
    >>> (even.mean(axis=0) - stable.mean(axis=0)).round(2).tolist()
    [-0.11, 0.11]

    References
    ----------
    .. [1] M. Saerens, P. Latinne and C. Decaestecker (2002). Adjusting the Outputs of a Classifier to
       New a Priori Probabilities: A Simple Procedure. Neural Computation 14.
    .. [2] R. Varadhan and C. Roland (2008). Simple and Globally Convergent Methods for Accelerating the
       Convergence of Any EM Algorithm. Scandinavian Journal of Statistics 35.
    """
    ratio = np.ascontiguousarray((proba / source_prior).T)  # sums over classes then run along contiguous rows
    # Of a handful of classes lists are faster than NumPy, and this is done for thousands of domains.

    def step(shares: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The next shares, and the likelihood of each row at these."""
        mixed = shares @ ratio
        return shares * ((ratio / mixed) @ weight), mixed

    shares = source_prior
    for _ in range(_ROUNDS):
        first, _ = step(shares)
        along = first - shares
        if max(map(abs, along.tolist())) < _SETTLED:
            break
        second, before = step(first)
        # The errors of both steps tell how far they go on in the same way.
        bent = second - 2.0 * first + shares
        length = sqrt(along @ along) / max(sqrt(bent @ bent), _TINY)
        far = shares + 2.0 * length * along + length**2 * bent
        shares = second
        if length > 1.0 and min(far.tolist()) > 0.0:
            third, there = step(far / far.sum())
            shares = third if weight @ np.log(there / before) >= 0.0 else second
    moved = shares[:, None] * ratio
    return np.asarray((moved / moved.sum(axis=0)).T)
