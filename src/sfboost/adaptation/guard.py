"""The guard: how far f_U may be trusted if f_S shows some of X_U within a class (a leak).

A leak L(u, y) = E[f_S | y, u] − E[f_S | y] moves the mean pseudo-label at u by B(u) = Σ_y q_y(u) L(u, y), and
the corrected q(u) = Pr[Y | u] by ε⁻¹ B(u): by B(u)/s for two classes. If |B| ≤ δ, the truth lies in the band
q̂ ± (δ + z·SE)/s. The guard answers with the point of that band nearest to the prior, where X_U says nothing.
For K > 2 the same is read in the space of pseudo-labels: q̂ moves towards the prior until ε(q̂ − p), what the
rows show of it, is explained by a leak of δ in no class.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.optimize import brentq

from sfboost.adaptation.decision import DecisionKind
from sfboost.adaptation.fitting import UnstableModel
from sfboost.adaptation.problem import Problem
from sfboost.marginal import floored_log, log_combine
from sfboost.marginal.probabilities import FloatArray

BoolArray = npt.NDArray[np.bool_]

#: One-sided 5 %: how many standard errors of the head belong to the band.
SAMPLING_REACH = 1.64
#: If so many of the answers that adapting changes survive the band, it is no blend.
_MOST_ANSWERS = 0.9
_LARGEST_LEAK = 1.0
# Rows at a time, so that one row of numbers per parameter stays small.
_BLOCK = 32768


@dataclass(frozen=True, eq=False)
class Guard:
    """A band around f_U and the answer in it that is nearest to the prior.

    Attributes
    ----------
    leak : float
        δ, the largest |B(u)| that is allowed for; zero guards against sampling error alone.
    leak_source : str
        Where δ comes from: "given", "training domains" or "assumed zero".
    prior : array of shape (K,)
        Class shares of the new domain: what f_U is drawn towards.
    confusion : array of shape (K, K)
        ε.
    head_covariance : array of shape (P, P) or None
    pseudo_error : float
        Standard error of the mean pseudo-label at a row, for heads without `head_covariance`.
    break_even : float
        δ*, the leak at which the estimated gain of the unguarded adaptation vanishes; 0 where there is
        none even without a leak, infinity where no leak below one undoes it.
    cost : float
        Estimated accuracy given up if there is no leak at all and the head is exact.
    """

    leak: float
    leak_source: str
    prior: FloatArray
    confusion: FloatArray
    head_covariance: FloatArray | None = None
    pseudo_error: float = 0.0
    break_even: float = float("nan")
    cost: float = float("nan")

    def __str__(self) -> str:
        return (
            f"guard: leak {self.leak:.4f} ({self.leak_source}), break-even {self.break_even:.4f}, "
            f"cost {100 * self.cost:.2f} points"
        )

    def trust(self, model: UnstableModel, X: Any, leak: float | None = None) -> FloatArray:
        """λ(u) in [0, 1]: the share of the way from the prior to f_U that survives a leak."""
        return self.around(model, X).trust(self.leak if leak is None else leak)

    def around(self, model: UnstableModel, X: Any) -> Band:
        """The band around f_U at these rows; their head is evaluated once, whatever the leak."""
        log_head = model.log_head(X)
        base = np.exp(log_head)
        moved = base - self.prior
        # The head of the post-hoc correction estimates Pr[Ŷ | u] itself; any other one sees it through ε.
        seen = moved if model.confusion is not None else moved @ self.confusion.T
        reach = np.maximum(np.abs(seen).max(axis=1), np.finfo(np.float64).tiny)
        if self.head_covariance is None:
            doubt = SAMPLING_REACH * self.pseudo_error / reach
        else:
            error = _error_along(base, moved, X, self.head_covariance)
            size = np.maximum((moved**2).sum(axis=1), np.finfo(np.float64).tiny)
            doubt = SAMPLING_REACH * error / size
        return Band(self.prior, np.exp(model.corrected(log_head)), reach, doubt)

    def log_unstable(self, model: UnstableModel, X: Any, leak: float | None = None) -> FloatArray:
        """Log of the guarded f_U: p + λ(u) (f_U − p)."""
        return self.around(model, X).log_unstable(self.leak if leak is None else leak)

    def depends_on_leak(
        self, stable: FloatArray, divisor: FloatArray, model: UnstableModel, X: Any
    ) -> BoolArray:
        """Rows whose predicted class differs between no leak and a leak of δ."""
        band = self.around(model, X)
        answers = [
            log_combine(stable, band.log_unstable(leak), divisor).argmax(axis=1) for leak in (0.0, self.leak)
        ]
        return np.asarray(answers[0] != answers[1])


@dataclass(frozen=True, eq=False)
class Band:
    """What a guard knows of some rows before it knows the leak.

    Attributes
    ----------
    prior : array of shape (K,)
    unstable : array of shape (n, K)
        f_U, unguarded.
    reach : array of shape (n,)
        The leak that alone would explain all that the rows show of f_U.
    doubt : array of shape (n,)
        The share of f_U − p that sampling error may explain.
    """

    prior: FloatArray
    unstable: FloatArray
    reach: FloatArray
    doubt: FloatArray

    def trust(self, leak: float) -> FloatArray:
        """λ(u) in [0, 1]: the share of the way from the prior to f_U that survives a leak."""
        return np.clip(1.0 - leak / self.reach - self.doubt, 0.0, 1.0)

    def log_unstable(self, leak: float) -> FloatArray:
        """Log of the guarded f_U: p + λ(u) (f_U − p)."""
        return floored_log(self.prior + self.trust(leak)[:, None] * (self.unstable - self.prior))


def _error_along(base: FloatArray, moved: FloatArray, X: Any, covariance: FloatArray) -> FloatArray:
    """Standard error of the head's probabilities along q̂ − p, times its length, by the delta method."""
    # The derivative of the softmax is diag(q) − q qᵀ.
    by_logit = base * (moved - (base * moved).sum(axis=1, keepdims=True))
    if base.shape[1] == 2:
        by_logit = by_logit[:, 1:]
    variance = np.empty(len(base))
    for first in range(0, len(base), _BLOCK):
        block = slice(first, first + _BLOCK)
        rows = X[block].toarray() if sparse.issparse(X) else X[block]
        design = np.column_stack([rows, np.ones(len(rows))])
        direction = (by_logit[block, :, None] * design[:, None, :]).reshape(len(design), -1)
        variance[block] = ((direction @ covariance) * direction).sum(axis=1)
    return np.sqrt(np.maximum(variance, 0.0))


def expected_gain(
    stable: FloatArray,
    joint: FloatArray,
    adopted: npt.NDArray[np.intp],
    weight: FloatArray | None = None,
) -> float:
    """Expected accuracy of the adopted classes minus that of the stable ones, if `joint` is the truth."""
    rows = np.arange(len(stable))
    return float(np.average(joint[rows, adopted] - joint[rows, stable.argmax(axis=1)], weights=weight))


def complete(guard: Guard, problem: Problem, model: UnstableModel) -> Guard:
    """The guard with δ* and its cost, from the rows that were adapted to.

    δ* is where the unguarded predictions stop paying if the leak is as adverse as it can be: their gain
    over the stable ones is judged by the joint posterior at the end of the band nearest to the prior.
    """
    stable, X, divisor, weight = problem.stable, problem.X, problem.prior, problem.weight
    plain = log_combine(stable, model.log_proba(X), divisor)
    adopted = plain.argmax(axis=1)

    band = guard.around(model, X) if len(stable) else None

    def gain(leak: float) -> float:
        if band is None:
            return 0.0
        joint = np.exp(log_combine(stable, band.log_unstable(leak), divisor))
        return expected_gain(stable, joint, adopted, weight)

    if gain(0.0) <= 0.0:
        break_even = 0.0
    elif gain(_LARGEST_LEAK) > 0.0:
        break_even = float("inf")
    else:
        break_even = float(brentq(gain, 0.0, _LARGEST_LEAK, xtol=1e-4))
    careful = log_combine(stable, guard.log_unstable(model, X), divisor).argmax(axis=1)
    full = np.exp(plain)
    cost = expected_gain(stable, full, adopted, weight) - expected_gain(stable, full, careful, weight)
    return replace(guard, break_even=break_even, cost=cost)


def verdict(guard: Guard, problem: Problem, model: UnstableModel) -> tuple[DecisionKind, str]:
    """What the guard did ("adapted", "blended", "kept stable"), and why in one sentence."""
    stable, X, divisor, weight = problem.stable, problem.X, problem.prior, problem.weight
    plain = log_combine(stable, model.log_proba(X), divisor).argmax(axis=1)
    careful = log_combine(stable, guard.log_unstable(model, X), divisor).argmax(axis=1)
    base = stable.argmax(axis=1)
    changed = plain != base
    same = careful[changed] == plain[changed]
    survived = float(np.average(same, weights=weight[changed])) if changed.any() else 1.0
    origin = f"leak {guard.leak:.3f} ({guard.leak_source}), break-even {guard.break_even:.3f}"
    if not (careful != base).any():
        return "kept stable", f"{origin}: no answer of the stable predictor changes beyond doubt"
    share = (
        f"{int(100 * survived)} % of the {int(changed.sum())} answers that adapting changes are beyond doubt"
    )
    return ("adapted" if survived >= _MOST_ANSWERS else "blended"), f"{origin}: {share}"
