"""How many unlabelled rows do I need? Asked before there are any.

The quantity estimated is q = Pr[Y | X_U = u] for a value u of X_U (a cell), under complementarity. All that
matters about the stable predictor is the law of f_S in the domain, so the rows of f_S themselves are the
argument. With w_k = f_S,k / p_k the law of f_S in a cell has density w · q relative to its law overall.

n times the variance of the maximum of the likelihood is that of the influence function

    I⁻¹ [ ψ 1{u}/π + D (f − p) ],

ψ the score w / (w · q) on the simplex, I its second moment in the cell, D its derivative in p, which is
estimated from the same rows. That need not hurt: its errors and those of the cell partly cancel.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

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
    if not 0.0 < mass <= 1.0:
        raise ValueError(f"mass={mass} is not a share of rows: pass a number in (0, 1].")
    proba = as_probability_matrix(stable_proba)
    weight = np.ones(len(proba)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    if PseudoLabelStatistics.from_proba(proba, weight).spectrum[-1] < 1e-10:
        raise ValueError(
            "f_S does not separate all classes, so no number of unlabelled rows is enough: "
            "use stable features that are informative of every class."
        )
    guesses = _grid(proba.shape[1])
    if unstable is not None:
        given = np.asarray(unstable, dtype=np.float64)
        given = given.reshape(1) if given.ndim == 0 else given.reshape(1, -1)
        guesses = as_probability_matrix(given, name="unstable", n_classes=proba.shape[1])
    found = []
    for guess in guesses:
        variances = _variances(proba, weight / weight.sum(), guess, mass)
        k = int(variances.argmax())
        found.append((float(variances[k]), float(guess[k] * (1.0 - guess[k]) / mass), guess))
    variance, by_labels, supposed = max(found, key=lambda one: one[0])
    factor = float(norm.ppf(0.5 + confidence / 2.0)) ** 2 / margin**2
    fewest = _FEWEST_EFFECTIVE_LABELS / mass
    labelled = int(np.ceil(max(factor * by_labels, fewest)))
    rows = int(np.ceil(max(factor * variance, fewest * variance / by_labels)))
    return RowsNeeded(rows, labelled, margin, confidence, mass, supposed)


def _grid(n_classes: int) -> FloatArray:
    """Laws of Y in a cell: even ones, and ones that favour a class more and more."""
    even, corners = np.full(n_classes, 1.0 / n_classes), np.eye(n_classes)
    steps = np.linspace(0.0, 0.98, 15)
    return np.array([(1.0 - t) * even + t * corner for corner in corners for t in steps])


def _variances(proba: FloatArray, overall: FloatArray, q: FloatArray, mass: float) -> FloatArray:
    """Of the maximum of the likelihood by class, times n, where Pr[Y | X_U = u] is `q`."""
    prior = PseudoLabelStatistics.from_proba(proba, overall).prior
    ratio = proba / prior  # the weights w of each row
    density = ratio @ q
    in_cell = overall * density  # the law of f_S in the cell
    basis = _tangent(len(prior))
    score = (ratio / density[:, None]) @ basis
    # d w_k / d p_k = −w_k / p_k moves the score's numerator and its denominator.
    steps = ratio / prior
    direct = -basis.T * (overall @ steps)
    through = (score * overall[:, None]).T @ (steps * q)
    price = (proba - prior) @ (direct + through).T
    # E[(a 1{u}/π + b)(·)ᵀ] of the score a, centred in the cell, and the price b of not knowing the prior.
    cell = (score * in_cell[:, None]).T
    cross = cell @ price
    covariance = cell @ score / mass + cross + cross.T + (price * overall[:, None]).T @ price
    inverse = basis @ np.linalg.inv(cell @ score)
    return np.diag(inverse @ covariance @ inverse.T)


def _tangent(n_classes: int) -> FloatArray:
    """Orthonormal directions whose entries sum to zero, as columns."""
    centred = np.eye(n_classes) - 1.0 / n_classes
    return np.linalg.svd(centred)[0][:, : n_classes - 1]
