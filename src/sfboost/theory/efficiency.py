"""How much an unlabelled row is worth, and how many one needs.

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
from scipy.stats import norm

from sfboost.marginal import PseudoLabelStatistics, as_probability_matrix
from sfboost.marginal.probabilities import FloatArray

# The normal approximation behind the answer needs a few rows' worth of labels in the cell.
_FEWEST_EFFECTIVE_LABELS = 10.0


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


@dataclass(frozen=True, eq=False)
class _Law:
    """The law of f_S in a domain and in a cell of it."""

    proba: FloatArray
    overall: FloatArray
    in_cell: FloatArray
    prior: FloatArray
    confusion: FloatArray
    unstable: FloatArray
    mass: float

    @property
    def ratio(self) -> FloatArray:
        return self.proba / self.prior

    def covariance(self, in_cell: FloatArray, everywhere: FloatArray) -> FloatArray:
        """E[(a 1{u}/π + b)(·)ᵀ] for functions a and b of f_S, a centred in the cell."""
        cell = (in_cell * self.in_cell[:, None]).T
        cross = cell @ everywhere
        whole = (everywhere * self.overall[:, None]).T @ everywhere
        return cell @ in_cell / self.mass + cross + cross.T + whole


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
    if not 0.0 < mass <= 1.0:
        raise ValueError(f"mass={mass} is not a share of rows: pass a number in (0, 1].")
    law = _law_of(stable_proba, unstable, mass, sample_weight)
    covariance = _INFLUENCE[estimator](law, known_confusion)
    labelled = law.unstable * (1.0 - law.unstable) / mass
    return CellEfficiency(estimator, law.unstable, mass, np.diag(covariance).copy(), labelled)


def _law_of(stable_proba: Any, unstable: Any, mass: float, sample_weight: Any) -> _Law:
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
    return _Law(proba, overall, in_cell, statistics.prior, statistics.confusion, q, mass)


def _labels(law: _Law, known: bool) -> FloatArray:
    return (np.diag(law.unstable) - np.outer(law.unstable, law.unstable)) / law.mass


def _posthoc(law: _Law, known: bool) -> FloatArray:
    inverse = np.linalg.inv(law.confusion)
    in_cell = law.proba - law.confusion @ law.unstable
    return inverse @ law.covariance(in_cell, _estimated_confusion(law, known)) @ inverse.T


def _sampled(law: _Law, known: bool) -> FloatArray:
    # A sampled label adds the variance of a coin with probability f_S in the cell's mean.
    inverse = np.linalg.inv(law.confusion)
    mean = law.confusion @ law.unstable
    coin = np.diag(mean) - (law.proba * law.in_cell[:, None]).T @ law.proba
    return _posthoc(law, known) + inverse @ coin @ inverse.T / law.mass


def _estimated_confusion(law: _Law, known: bool) -> FloatArray:
    """Minus the influence of each row on ε̂ q."""
    if known:
        return np.zeros_like(law.proba)
    share = law.proba * (law.unstable / law.prior)
    return share @ law.confusion.T - share.sum(axis=1, keepdims=True) * law.proba


def _likelihood(law: _Law, known: bool) -> FloatArray:
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


_INFLUENCE: dict[str, Callable[[_Law, bool], FloatArray]] = {
    "labels": _labels,
    "likelihood": _likelihood,
    "posthoc": _posthoc,
    "sampled": _sampled,
}


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
    cell : CellEfficiency
        The supposed (or worst) Pr[Y | X_U = u] and its precision.
    """

    rows: int
    labelled_rows: int
    margin: float
    confidence: float
    cell: CellEfficiency

    def __str__(self) -> str:
        worth = self.labelled_rows / self.rows
        return (
            f"{self.rows} unlabelled rows give Pr[Y | X_U = u] to within {self.margin:g} "
            f"with probability {self.confidence:g}, for a value u that {self.cell.mass:.0%} of the rows "
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
    estimator: str = "likelihood",
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
    estimator : {"likelihood", "posthoc", "sampled", "labels"}
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
    cells = [
        cell_efficiency(stable_proba, q, mass=mass, estimator=estimator, sample_weight=sample_weight)
        for q in guesses
    ]
    worst = max(cells, key=lambda cell: float(cell.variance.max()))
    quantile = float(norm.ppf(0.5 + confidence / 2.0))
    k = int(worst.variance.argmax())
    fewest = _FEWEST_EFFECTIVE_LABELS / mass
    labelled = max(quantile**2 * worst.labelled[k] / margin**2, fewest)
    rows = max(quantile**2 * worst.variance[k] / margin**2, fewest / float(worst.efficiency[k]))
    return RowsNeeded(int(np.ceil(rows)), int(np.ceil(labelled)), margin, confidence, worst)


def _grid(n_classes: int) -> list[FloatArray]:
    """Laws of Y in a cell: even ones, and ones that favour a class more and more."""
    even = np.full(n_classes, 1.0 / n_classes)
    return [(1.0 - t) * even + t * corner for corner in np.eye(n_classes) for t in np.linspace(0.0, 0.98, 15)]
