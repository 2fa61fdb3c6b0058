"""Whose meaning changed, given that one did? Each feature's is the same, gone, or the opposite.

Three hypotheses for each feature, judged by what its blind moments are and what own domains lead to expect.
How common each hypothesis is among the features is estimated with them (empirical Bayes): where the features
that can be told say that they turned, those that cannot be told are presumed to have turned as well.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln

from sfboost.change.prediction import Prediction
from sfboost.marginal.probabilities import FloatArray

#: What is left of a meaning under each hypothesis: all of it, nothing, the opposite.
LEFT = np.array([1.0, 0.0, -1.0])
# Features that each hypothesis is given before any is looked at.
_PSEUDO_COUNT = np.array([1.0, 0.5, 0.5])
_MOST_ROUNDS = 200


def attribute(
    moments: list[Prediction], rescaled: FloatArray, groups: npt.NDArray[np.intp], importance: FloatArray
) -> FloatArray:
    """Probability of each hypothesis for each feature, an array of shape (features, 3).

    Parameters
    ----------
    moments : list of Prediction
        By column: different measurements of the same meaning. They go together, so that their evidence is
        averaged, not added up.
    rescaled : array of shape (d,)
        Factor by which the unit of each column seems to have changed; 1 where it has not.
    groups : integer array of shape (d,)
        Columns of one feature share a hypothesis.
    importance : array of shape (d,)
        Share of each column in what all features say.
    """
    fit = np.zeros((len(groups), len(LEFT)))
    for moment in moments:
        new = moment.new / rescaled
        t = (new[:, None] - moment.expected[:, None] * LEFT) / moment.spread[:, None]
        fit += _log_density(t, moment.freedom) / len(moments)
    n_groups = int(groups.max()) + 1
    by_feature = np.array([np.bincount(groups, fit[:, h], n_groups) for h in range(len(LEFT))]).T
    # A feature that says more is a better witness of what happened to the others.
    witness = np.bincount(groups, importance, n_groups)
    witness = n_groups * witness / witness.sum()
    common = _PSEUDO_COUNT / _PSEUDO_COUNT.sum()
    for _ in range(_MOST_ROUNDS):
        joint = np.log(common) + by_feature
        likely = np.exp(joint - joint.max(axis=1, keepdims=True))
        likely /= likely.sum(axis=1, keepdims=True)
        before, common = common, (witness @ likely + _PSEUDO_COUNT) / (n_groups + _PSEUDO_COUNT.sum())
        if np.abs(common - before).max() < 1e-9:
            break
    return np.asarray(likely)


def _log_density(t: FloatArray, freedom: float) -> FloatArray:
    """Of Student's t; that of SciPy takes ten times as long for a few numbers."""
    constant = gammaln((freedom + 1.0) / 2.0) - gammaln(freedom / 2.0) - 0.5 * np.log(np.pi * freedom)
    return np.asarray(constant - (freedom + 1.0) / 2.0 * np.log1p(t**2 / freedom))
