"""The leak of f_S in labelled training domains: how much of X_U it shows within a class.

The corrected Pr[Y | u] is off by ε⁻¹ B(u), B(u) = Σ_y q_y(u) L(u, y), L(u, y) = E[f_S | y, u] − E[f_S | y]
(two classes: B/s). The size of L is that of the regressions of f_S on u within each class; it does not depend
on how u relates to the class in that domain, so it can be carried to another one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sfboost.marginal.probabilities import FloatArray

IntArray = npt.NDArray[np.intp]
#: One-sided 5 %: a leak counts as far as it is beyond sampling error.
_LOWER = 1.64


@dataclass(frozen=True)
class DomainLeak:
    """Root mean square of L(u, y) in one domain, for the pseudo-class where it is largest.

    Attributes
    ----------
    size : float
        Estimate, noise subtracted; zero if noise explains all of it.
    lower : float
        The part beyond 1.64 standard errors.
    informativeness : float
        s as measured with labels: what the leak is divided by.
    """

    domain: Any
    size: float
    lower: float
    informativeness: float
    n_rows: int

    @property
    def relative(self) -> float:
        """L / s: the leak as an error of Pr[Y | X_U]."""
        return self.size / max(self.informativeness, 1e-12)


def domain_leak(
    stable: FloatArray, X: FloatArray, y: IntArray, domain: Any, weight: FloatArray | None = None
) -> DomainLeak:
    """The leak of f_S into linear functions of X_U in one labelled domain.

    Parameters
    ----------
    stable : array of shape (n, K)
        Held-out f_S.
    X : array of shape (n, d)
        Unstable features.
    y : integer array of shape (n,)
    weight : array of shape (n,), optional
        Only ratios matter: a row of weight two moves the estimate like two rows, but is one observation.

    Examples
    --------
    >>> from sfboost.diagnostics import Dials, simulate
    >>> none, some = (simulate(Dials(new_violation=size), seed=0).new for size in (0.0, 0.5))
    >>> for rows in (none, some):
    ...     leak = domain_leak(rows.posterior, rows.X_unstable, rows.y, "a")
    ...     print(f"{leak.lower:.2f} {leak.size:.2f}")
    0.00 0.01
    0.09 0.09
    """
    weight = np.ones(len(y)) if weight is None else weight
    square, variance = np.zeros(stable.shape[1]), np.zeros(stable.shape[1])
    # Class by class: leaks of opposite sign must not cancel (raw CE-DD).
    for label in np.unique(y):
        rows = y == label
        share = float(weight[rows].sum() / weight.sum())
        within = weight[rows] / weight[rows].sum()
        part, error = _projection(_centred(stable[rows], within), _centred(X[rows], within), within)
        square += share * part
        variance += (share * error) ** 2
    error = np.sqrt(variance)
    worst, bound = int(np.argmax(square)), square - _LOWER * error
    return DomainLeak(
        domain=domain,
        size=float(np.sqrt(max(square[worst], 0.0))),
        lower=float(np.sqrt(max(bound.max(), 0.0))),
        informativeness=measured_informativeness(stable, y, weight),
        n_rows=len(y),
    )


def _centred(values: FloatArray, share: FloatArray) -> FloatArray:
    return values - share @ values


def measured_informativeness(stable: FloatArray, y: IntArray, weight: FloatArray | None = None) -> float:
    """S with labels: (tr Pr[Ŷ | Y] − 1) / (K − 1) over the classes that are present."""
    present = np.unique(y)
    if len(present) < 2:
        return 0.0
    weight = np.ones(len(y)) if weight is None else weight
    trace = sum(float(np.average(stable[y == label, label], weights=weight[y == label])) for label in present)
    return max(0.0, (trace - 1.0) / (len(present) - 1))


def _projection(centred: FloatArray, Z: FloatArray, share: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean square of the linear regression of each column on Z, noise subtracted, and its error.

    `share` are weights that sum to one. Squared in the noise, they make it that of weighted means.
    """
    gram = (Z * share[:, None]).T @ Z
    # One-hot columns depend on each other: without a clear limit rounding would count as a direction.
    inverse = np.linalg.pinv(gram, rcond=1e-10, hermitian=True)
    squares, errors = [], []
    for column in centred.T:
        slope = inverse @ (Z.T @ (share * column))
        residual = column - Z @ slope
        meat = (Z * ((share * residual) ** 2)[:, None]).T @ Z
        noise = inverse @ meat  # Σ V with V = Σ⁻¹ M Σ⁻¹
        variance = noise @ inverse
        squares.append(slope @ gram @ slope - np.trace(noise))
        linear = 4.0 * slope @ gram @ variance @ gram @ slope
        errors.append(np.sqrt(max(linear + 2.0 * np.trace(noise @ noise), 0.0)))
    return np.array(squares), np.array(errors)


def training_leak(leaks: tuple[DomainLeak, ...]) -> float:
    """δ of the guard: the largest leak of any training domain, as far as it is beyond sampling error."""
    return max((leak.lower for leak in leaks), default=0.0)
