"""How much an unlabelled row is worth: the labels that would do the same.

The quantity estimated is q = Pr[Y | X_U = u] for a value u of X_U (a cell), under complementarity. All that
matters about the stable predictor is the law of f_S in the domain, so the rows of f_S themselves are the
argument. With w_k = f_S,k / p_k the law of f_S in a cell has density w · q relative to its law overall.

Influence functions (IF) give n times the variance of each estimator:

- labels:      e_Y − q in the cell;
- post-hoc:    ε⁻¹ [ (f − ε q) 1{u}/π − Σ_k q_k f_k (f − ε_k)/p_k ]; the second term comes from
               estimating ε from the same rows. Without it K = 2 has the efficiency
               q(1−q)s² / (q v₁ + (1−q) v₀ + q(1−q)s²), v_y = Var(f_S | Y = y);
- likelihood:  I⁻¹ [ ψ 1{u}/π + D (f − p) ], ψ the score w / (w · q) on the simplex, I its second moment in
               the cell, D its derivative in p, estimated too. Without the second term K = 2 has the
               efficiency q(1−q) ∫ (P₁ − P₀)² / (q P₁ + (1−q) P₀).

The second term need not hurt: errors of ε̂ and of the cell's mean come from the same rows and partly cancel.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfboost.diagnostics.rows_needed import CellLaw, likelihood_covariance
from sfboost.marginal.probabilities import FloatArray


@dataclass(frozen=True, eq=False)
class CellEfficiency:
    """Precision of an estimate of Pr[Y | X_U = u] from unlabelled rows.

    Attributes
    ----------
    estimator : str
    unstable : array of shape (K,)
        The true Pr[Y | X_U = u].
    mass : float
        Pr[X_U = u].
    variance : array of shape (K,)
        n times the asymptotic variance of each estimated probability, from n unlabelled rows.
    labelled : array of shape (K,)
        The same from n rows with true labels: q (1 − q) / mass.
    """

    estimator: str
    unstable: FloatArray
    mass: float
    variance: FloatArray
    labelled: FloatArray

    @property
    def efficiency(self) -> FloatArray:
        """Labelled rows that one unlabelled row is worth, class by class."""
        return self.labelled / self.variance

    def standard_error(self, n_rows: int) -> FloatArray:
        """Standard error of the estimated probabilities from `n_rows` unlabelled rows of the domain."""
        return np.sqrt(self.variance / n_rows)


def cell_efficiency(
    stable_proba: Any,
    unstable: Any,
    *,
    mass: float = 1.0,
    estimator: str = "likelihood",
    known_confusion: bool = False,
    sample_weight: Any = None,
) -> CellEfficiency:
    """Precision of Pr[Y | X_U = u] as a function of how informative f_S is.

    Parameters
    ----------
    stable_proba : array-like of shape (n,) or (n, K)
        Calibrated f_S on rows of the domain: its law is all that counts, not n.
    unstable : float or array-like of shape (K,)
        The supposed Pr[Y | X_U = u]; a number is the probability of the second of two classes.
    mass : float
        Pr[X_U = u], the share of rows in the cell.
    estimator : {"likelihood", "posthoc", "sampled", "labels"}
        "sampled" is post-hoc with one sampled pseudo-label a row instead of the soft one.
    known_confusion : bool
        Suppose that ε, or the prior, is known and not estimated from the same rows, as the usual
        formulas do.
    sample_weight : array-like of shape (n,), optional

    Examples
    --------
    AC, where f_S is .25 or .75; at q = ½ the post-hoc efficiency is s = .25:

    >>> cell_efficiency([0.25, 0.75], 0.5, estimator="posthoc", known_confusion=True).efficiency
    array([0.25, 0.25])
    >>> cell_efficiency([0.25, 0.75], 0.9, estimator="posthoc", known_confusion=True).efficiency.round(3)
    array([0.107, 0.107])
    """
    if estimator not in _INFLUENCE:
        raise ValueError(f"estimator={estimator!r} is not known: use one of {sorted(_INFLUENCE)}.")
    law = CellLaw.of(stable_proba, unstable, mass, sample_weight)
    variance = np.diag(_INFLUENCE[estimator](law, known_confusion)).copy()
    return CellEfficiency(estimator, law.unstable, mass, variance, law.labelled_variance)


def _labels(law: CellLaw, known: bool) -> FloatArray:
    return (np.diag(law.unstable) - np.outer(law.unstable, law.unstable)) / law.mass


def _posthoc(law: CellLaw, known: bool) -> FloatArray:
    inverse = np.linalg.inv(law.confusion)
    in_cell = law.proba - law.confusion @ law.unstable
    return inverse @ law.covariance(in_cell, _estimated_confusion(law, known)) @ inverse.T


def _sampled(law: CellLaw, known: bool) -> FloatArray:
    # A sampled label adds the variance of a coin with probability f_S in the cell's mean.
    inverse = np.linalg.inv(law.confusion)
    mean = law.confusion @ law.unstable
    coin = np.diag(mean) - (law.proba * law.in_cell[:, None]).T @ law.proba
    return _posthoc(law, known) + inverse @ coin @ inverse.T / law.mass


def _estimated_confusion(law: CellLaw, known: bool) -> FloatArray:
    """Minus the influence of each row on ε̂ q."""
    if known:
        return np.zeros_like(law.proba)
    share = law.proba * (law.unstable / law.prior)
    return share @ law.confusion.T - share.sum(axis=1, keepdims=True) * law.proba


_INFLUENCE: dict[str, Callable[[CellLaw, bool], FloatArray]] = {
    "labels": _labels,
    "likelihood": likelihood_covariance,
    "posthoc": _posthoc,
    "sampled": _sampled,
}
