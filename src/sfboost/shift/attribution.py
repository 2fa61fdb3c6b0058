"""Whose meaning changed, given that one did? Each feature's is the same, gone, or the opposite.

Three hypotheses for each feature, judged by its moments (no labels) and what source domains lead to expect.
How common each hypothesis is among the features is estimated with them (empirical Bayes): where the features
that can be told say that they turned, those that cannot be told are presumed to have turned as well.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln

from sfboost.marginal.probabilities import FloatArray
from sfboost.shift.prediction import Prediction

#: What is left of a meaning under each hypothesis: all of it, nothing, the opposite.
LEFT = np.array([1.0, 0.0, -1.0])
# Features that each hypothesis is given before any is looked at.
_PSEUDO_COUNT = np.array([1.0, 0.5, 0.5])
_MOST_ROUNDS = 200


def fit_by_feature(
    moments: list[Prediction], rescaled: FloatArray, groups: npt.NDArray[np.intp]
) -> FloatArray:
    """Log-likelihood of each hypothesis for each feature, of shape (features, 3).

    Parameters
    ----------
    moments : list of Prediction
        By column: different measurements of the same meaning. They go together, so that their evidence is
        averaged, not added up.
    rescaled : array of shape (d,)
        Factor by which the unit of each column seems to have changed; 1 where it has not.
    groups : integer array of shape (d,)
        Columns of one feature share a hypothesis.
    """
    fit = np.zeros((*rescaled.shape, len(LEFT)))
    for moment in moments:
        new = moment.new / rescaled
        t = (new[..., None] - moment.expected[:, None] * LEFT) / moment.spread[..., None]
        fit += _log_density(t, moment.freedom) / len(moments)
    return np.stack([fit[..., groups == group, :].sum(axis=-2) for group in range(groups.max() + 1)], axis=-2)


def attribute(fit: FloatArray, witness: FloatArray) -> FloatArray:
    """Probability of each hypothesis for each feature, an array of shape (features, 3).

    Parameters
    ----------
    fit : array of shape (features, 3)
        See `fit_by_feature`.
    witness : array of shape (features,)
        Share of each feature in what all say: one that says more is a better witness of what happened to the
        others.
    """
    n_features = len(fit)
    witness = n_features * witness / witness.sum()
    common = _PSEUDO_COUNT / _PSEUDO_COUNT.sum()
    for _ in range(_MOST_ROUNDS):
        joint = np.log(common) + fit
        likely = np.exp(joint - joint.max(axis=1, keepdims=True))
        likely /= likely.sum(axis=1, keepdims=True)
        counts = witness @ likely + _PSEUDO_COUNT
        before, common = common, counts / counts.sum()
        if np.abs(common - before).max() < 1e-9:
            break
    return np.asarray(likely)


def _log_density(t: FloatArray, freedom: float) -> FloatArray:
    """Of Student's t; that of SciPy takes ten times as long for a few numbers."""
    constant = gammaln((freedom + 1.0) / 2.0) - gammaln(freedom / 2.0) - 0.5 * np.log(np.pi * freedom)
    return np.asarray(constant - (freedom + 1.0) / 2.0 * np.log1p(t**2 / freedom))
