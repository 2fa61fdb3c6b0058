"""Class shares under label shift: only Pr[Y] moved, and P(X | Y) is as it was in training.

The shares that make the rows most likely are found by EM (Saerens et al., 2002); nothing but calibrated
probabilities is needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
from scipy.stats import norm

from sfboost.marginal.probabilities import FloatArray, as_class_shares, as_probability_matrix

_MOST_ROUNDS = 10_000
_SETTLED = 1e-10
_TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True, eq=False)
class LabelShift:
    """Class shares of a new domain, and how to read old probabilities there.

    Attributes
    ----------
    prior : array of shape (K,)
        Class shares of the new domain.
    standard_error : array of shape (K,)
        Of the shares, for rows drawn independently. That the probabilities are estimates is not in it.
    source_prior : array of shape (K,)
        Class shares of the rows that the probabilities were calibrated on.
    """

    prior: FloatArray
    standard_error: FloatArray
    source_prior: FloatArray

    def interval(self, level: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """Lower and upper ends for each class, within [0, 1]."""
        if not 0.0 < level < 1.0:
            raise ValueError(f"level={level} is not a probability: use a number between 0 and 1.")
        reach = float(norm.ppf(0.5 + level / 2.0)) * self.standard_error
        return np.maximum(self.prior - reach, 0.0), np.minimum(self.prior + reach, 1.0)

    def apply(self, proba: Any) -> FloatArray:
        """Probabilities for rows of the new domain: each class times its new share over its old one."""
        given = as_probability_matrix(proba, n_classes=len(self.prior))
        moved = given * (self.prior / self.source_prior)
        return np.asarray(moved / moved.sum(axis=1, keepdims=True))


def label_shift(proba: Any, source_prior: Any, *, sample_weight: Any = None) -> LabelShift:
    """Estimate the class shares of a new domain where nothing but the class shares has changed.

    Parameters
    ----------
    proba : array-like of shape (n,) or (n, K)
        Calibrated probabilities of the new rows, as training taught them.
    source_prior : array-like of shape (K,)
        Class shares of the rows that they were calibrated on.
    sample_weight : array-like of shape (n,), optional

    Returns
    -------
    LabelShift

    Examples
    --------
    Four rows in five look like the second class, to a test that is right in 90 % of either class:

    >>> proba = [0.9, 0.9, 0.9, 0.9, 0.1]
    >>> found = label_shift(proba, source_prior=[0.5, 0.5])
    >>> found.prior.round(3)
    array([0.125, 0.875])
    >>> found.apply([0.9]).round(3)
    array([[0.016, 0.984]])

    References
    ----------
    .. [1] M. Saerens, P. Latinne and C. Decaestecker (2002). Adjusting the Outputs of a Classifier to New a
       Priori Probabilities: A Simple Procedure. Neural Computation 14.
    """
    given = as_probability_matrix(proba)
    old = as_class_shares(source_prior, given.shape[1], name="source_prior")
    weight = np.ones(len(given)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    fine = weight.shape == (len(given),) and np.isfinite(weight).all() and (weight >= 0.0).all()
    if not fine or not weight.any():
        raise ValueError("sample_weight must have one finite number of 0 or more for each row, not all 0.")
    share = weight / weight.sum()
    moved = shifted(given, old, share, rounds=_MOST_ROUNDS, settled=_SETTLED)
    prior = share @ moved
    return LabelShift(prior, standard_error(given, prior, old, weight), old)


def shifted(
    proba: FloatArray,
    source_prior: FloatArray,
    weight: FloatArray,
    *,
    rounds: int = 300,
    settled: float = 1e-7,
) -> FloatArray:
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
    for _ in range(rounds):
        first, _ = step(shares)
        along = first - shares
        if max(map(abs, along.tolist())) < settled:
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


def standard_error(
    proba: FloatArray, prior: FloatArray, source_prior: FloatArray, weight: FloatArray
) -> FloatArray:
    """Of the maximum of the likelihood Σ w log Σ_k π_k f_k / p_k, along shares that sum to one."""
    ratio = proba / source_prior
    score = ratio / (ratio @ prior)[:, None]
    n_classes = len(prior)
    # An orthonormal basis of the directions in which shares can move.
    basis = np.linalg.svd(np.ones((1, n_classes)))[2][1:].T
    along = score @ basis
    information = (along * weight[:, None]).T @ along
    noise = (along * weight[:, None] ** 2).T @ along
    inverse = np.linalg.pinv(information)
    covariance = basis @ inverse @ noise @ inverse @ basis.T
    return np.sqrt(np.maximum(np.diag(covariance), 0.0))
