"""How many unlabelled rows do I need? Asked before there are any.

The quantity estimated is q = Pr[Y | X_U = u] for a value u of X_U (a cell), under complementarity. All that
matters about the stable predictor is the law of f_S in the domain, so the rows of f_S themselves are the
argument. With w_k = f_S,k / p_k the law of f_S in a cell has density w · q relative to its law overall.

n times the variance of the maximum of the likelihood is that of the influence function

    I⁻¹ [ ψ 1{u}/π + D (f − p) ],

ψ the score w / (w · q) on the simplex, I its second moment in the cell, D its derivative in p, which is
estimated from the same rows. That need not hurt: its errors and those of the cell partly cancel. What a row
is worth to other estimators is in the repository's laboratory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.stats import norm

from sfboost.marginal import PseudoLabelStatistics, as_probability_matrix
from sfboost.marginal.probabilities import FloatArray

# The normal approximation behind the answer needs a few rows' worth of labels in the cell.
_FEWEST_EFFECTIVE_LABELS = 10.0


@dataclass(frozen=True, eq=False)
class RowsNeeded:
    """How many unlabelled rows the wanted precision takes.

    Attributes
    ----------
    rows : int
        Unlabelled rows of the domain.
    labelled_rows : int
        Rows with true labels that would do the same.
    margin, confidence : float
        Each |q̂ − q| is at most `margin` with probability `confidence`, in large samples.
    mass : float
        Share of the domain's rows with X_U = u.
    unstable : array of shape (K,)
        The supposed (or worst) Pr[Y | X_U = u].
    """

    rows: int
    labelled_rows: int
    margin: float
    confidence: float
    mass: float
    unstable: FloatArray

    def __str__(self) -> str:
        worth = self.labelled_rows / self.rows
        return (
            f"{self.rows} unlabelled rows give Pr[Y | X_U = u] to within {self.margin:g} "
            f"with probability {self.confidence:g}, for a value u that {self.mass:.0%} of the rows "
            f"have; {self.labelled_rows} labelled rows would do the same (one unlabelled row is worth "
            f"{worth:.2g} labels)."
        )


def rows_needed(
    stable_proba: Any,
    margin: float = 0.05,
    *,
    mass: float = 0.5,
    unstable: Any = None,
    confidence: float = 0.95,
    sample_weight: Any = None,
) -> RowsNeeded:
    """Answer: how many unlabelled rows do I need.

    Parameters
    ----------
    stable_proba : array-like of shape (n,) or (n, K)
        Calibrated f_S on rows like those of the new domain; training rows will do before it is seen.
    margin : float
        Wanted half-width of the interval for each class's Pr[Y | X_U = u].
    mass : float
        Share of rows with X_U = u: 1 / (number of equally frequent values).
    unstable : float or array-like of shape (K,), optional
        The supposed Pr[Y | X_U = u]. None takes the least favourable one of a grid.
    confidence : float
    sample_weight : array-like of shape (n,), optional

    Notes
    -----
    Large-sample theory under complementarity and a calibrated f_S, for a head with one value per cell. A
    linear head on d features shares strength over cells and needs fewer. The answer is never below the
    number that gives ten labels' worth of rows in the cell, as the normal approximation fails there.

    Examples
    --------
    >>> answer = rows_needed([0.25, 0.75], margin=0.05, mass=0.5, unstable=0.9)
    >>> answer.rows, answer.labelled_rows
    (1510, 277)
    """
    if not 0.0 < margin < 1.0 or not 0.0 < confidence < 1.0:
        raise ValueError(
            f"margin={margin} and confidence={confidence} must lie between 0 and 1, as in 0.05 and 0.95."
        )
    n_classes = as_probability_matrix(stable_proba).shape[1]
    guesses = _grid(n_classes) if unstable is None else [unstable]
    variance, by_labels, supposed = 0.0, 0.0, np.empty(0)
    for guess in guesses:
        law = CellLaw.of(stable_proba, guess, mass, sample_weight)
        variances = np.diag(likelihood_covariance(law))
        k = int(variances.argmax())
        if variances[k] > variance:
            variance, by_labels, supposed = float(variances[k]), float(law.labelled_variance[k]), law.unstable
    factor = float(norm.ppf(0.5 + confidence / 2.0)) ** 2 / margin**2
    fewest = _FEWEST_EFFECTIVE_LABELS / mass
    labelled = int(np.ceil(max(factor * by_labels, fewest)))
    rows = int(np.ceil(max(factor * variance, fewest * variance / by_labels)))
    return RowsNeeded(rows, labelled, margin, confidence, mass, supposed)


def _grid(n_classes: int) -> list[FloatArray]:
    """Laws of Y in a cell: even ones, and ones that favour a class more and more."""
    even = np.full(n_classes, 1.0 / n_classes)
    return [(1.0 - t) * even + t * corner for corner in np.eye(n_classes) for t in np.linspace(0.0, 0.98, 15)]


@dataclass(frozen=True, eq=False)
class CellLaw:
    """The law of f_S in a domain and in a cell of it."""

    proba: FloatArray
    overall: FloatArray
    in_cell: FloatArray
    prior: FloatArray
    confusion: FloatArray
    unstable: FloatArray
    mass: float

    @classmethod
    def of(cls, stable_proba: Any, unstable: Any, mass: float, sample_weight: Any = None) -> Self:
        """The law that rows of f_S have, and would have where Pr[Y | X_U = u] is `unstable`."""
        if not 0.0 < mass <= 1.0:
            raise ValueError(f"mass={mass} is not a share of rows: pass a number in (0, 1].")
        proba = as_probability_matrix(stable_proba)
        weight = np.ones(len(proba)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        overall = weight / weight.sum()
        q = np.asarray(unstable, dtype=np.float64)
        given = q.reshape(1) if q.ndim == 0 else q.reshape(1, -1)
        q = as_probability_matrix(given, name="unstable", n_classes=proba.shape[1])[0]
        statistics = PseudoLabelStatistics.from_proba(proba, overall)
        if statistics.spectrum[-1] < 1e-10:
            raise ValueError(
                "f_S does not separate all classes, so no number of unlabelled rows is enough: "
                "use stable features that are informative of every class."
            )
        in_cell = overall * (proba @ (q / statistics.prior))
        return cls(proba, overall, in_cell, statistics.prior, statistics.confusion, q, mass)

    @property
    def labelled_variance(self) -> FloatArray:
        """Of an estimate by n rows with true labels, times n."""
        return self.unstable * (1.0 - self.unstable) / self.mass

    @property
    def ratio(self) -> FloatArray:
        """The weights w of each row."""
        return self.proba / self.prior

    def covariance(self, in_cell: FloatArray, everywhere: FloatArray) -> FloatArray:
        """E[(a 1{u}/π + b)(·)ᵀ] for functions a and b of f_S, a centred in the cell."""
        cell = (in_cell * self.in_cell[:, None]).T
        cross = cell @ everywhere
        whole = (everywhere * self.overall[:, None]).T @ everywhere
        return cell @ in_cell / self.mass + cross + cross.T + whole


def likelihood_covariance(law: CellLaw, known: bool = False) -> FloatArray:
    """Of the maximum of the likelihood, times n; `known`: the prior is not estimated from the same rows."""
    basis = _tangent(len(law.prior))
    ratio = law.ratio
    density = ratio @ law.unstable
    score = (ratio / density[:, None]) @ basis
    information = (score * law.in_cell[:, None]).T @ score
    price = np.zeros_like(score)
    if not known:
        # d w_k / d p_k = −w_k / p_k moves the score's numerator and its denominator.
        steps = ratio / law.prior
        weight = law.in_cell / density
        direct = -basis.T * (weight @ steps)
        through = (score * weight[:, None]).T @ (steps * law.unstable)
        price = (law.proba - law.prior) @ (direct + through).T
    inverse = basis @ np.linalg.inv(information)
    return inverse @ law.covariance(score, price) @ inverse.T


def _tangent(n_classes: int) -> FloatArray:
    """Orthonormal directions whose entries sum to zero, as columns."""
    centred = np.eye(n_classes) - 1.0 / n_classes
    return np.linalg.svd(centred)[0][:, : n_classes - 1]
