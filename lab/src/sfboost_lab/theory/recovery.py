"""Theorem 4.4 as a function: from Pr[Y | X_S] and Pr[X_S, X_U] to Pr[Y | X_S, X_U]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sfboost.marginal import PseudoLabelStatistics, as_probability_matrix, combine, correct_posthoc
from sfboost.marginal.probabilities import FloatArray

# Eigenvalues of ε below this are rounding: f_S does not separate the classes in that direction.
_ZERO = 1e-10


@dataclass(frozen=True, eq=False)
class Recovery:
    """What Theorem 4.4 says of a domain without labels.

    Attributes
    ----------
    unstable : array of shape (n_unstable, K)
        Pr[Y | X_U] by Eq. 4.4.
    joint : array of shape (n_stable, n_unstable, K)
        Pr[Y | X_S, X_U] by Eq. 4.5.
    prior : array of shape (K,)
    confusion : array of shape (K, K)
    """

    unstable: FloatArray
    joint: FloatArray
    prior: FloatArray
    confusion: FloatArray


def recover(stable_posterior: Any, pair_mass: Any) -> Recovery:
    """Recover the test domain's law of Y from f_S and the law of unlabelled rows.

    The result is the truth if X_S is stable, informative and complementary to X_U; nothing in the
    two arguments can tell whether it is complementary.

    Parameters
    ----------
    stable_posterior : array-like of shape (n_stable, K)
        f_S = Pr[Y | X_S].
    pair_mass : array-like of shape (n_stable, n_unstable)
        Pr[X_S, X_U] in the test domain.

    Raises
    ------
    ValueError
        If E[f_S f_Sᵀ] has no full rank: Pr[Y | X_U] is then not identified (Lemma 4.5 for two classes).

    Examples
    --------
    >>> from sfboost_lab.theory import anticausal
    >>> test = anticausal(agreement=0.1)
    >>> recover(test.stable_posterior, test.pair_mass).unstable.round(6)
    array([[0.1, 0.9],
           [0.9, 0.1]])
    """
    stable = as_probability_matrix(stable_posterior, name="stable_posterior")
    pairs = np.asarray(pair_mass, dtype=np.float64)
    if pairs.ndim != 2 or len(pairs) != len(stable):
        raise ValueError(
            f"pair_mass has shape {pairs.shape} but stable_posterior has {len(stable)} rows: pass one row of "
            "pair_mass per value of X_S."
        )
    statistics = PseudoLabelStatistics.from_proba(stable, pairs.sum(axis=1))
    if statistics.spectrum[-1] < _ZERO:
        raise ValueError(
            "f_S does not separate all classes (the smallest eigenvalue of ε is 0), so Pr[Y | X_U] is not "
            "identified: use stable features that are informative of every class."
        )
    mass = pairs.sum(axis=0)
    pseudo = (pairs.T @ stable) / np.where(mass > 0.0, mass, 1.0)[:, None]
    pseudo[mass <= 0.0] = statistics.prior
    unstable = correct_posthoc(pseudo, statistics.confusion)
    rows, cells = len(stable), len(mass)
    joint = combine(np.repeat(stable, cells, axis=0), np.tile(unstable, (rows, 1)), statistics.prior)
    return Recovery(unstable, joint.reshape(rows, cells, -1), statistics.prior, statistics.confusion)
