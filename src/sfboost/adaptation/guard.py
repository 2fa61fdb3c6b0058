"""The guard: how far f_U may be trusted if f_S shows some of X_U within a class (a leak).

A leak L(u, y) = E[f_S | y, u] − E[f_S | y] moves the mean pseudo-label at u by B(u) = Σ_y q_y(u) L(u, y), and
the corrected q(u) = Pr[Y | u] by ε⁻¹ B(u): by B(u)/s for two classes. If |B| ≤ δ, the truth lies in the band
q̂ ± (δ + z·SE)/s. The guard answers with the point of that band nearest to the prior, where X_U says nothing.
For K > 2 the same is read in the space of pseudo-labels: q̂ moves towards the prior until ε(q̂ − p), what the
rows show of it, is explained by a leak of δ in no class.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.optimize import brentq
from sklearn.utils import _safe_indexing

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

    How far f_S shows X_U within a class cannot be known in the new domain. Of all answers that a leak of
    this size would allow, take the most careful one.

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

    References
    ----------
    .. [1] C. Eastwood et al. (2023). Spuriosity Didn't Kill the Classifier: Using Invariant Predictions
       to Harness Spurious Features. NeurIPS 36. (The assumption that it allows to fail.)
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


@dataclass(frozen=True)
class AnswerCounts:
    """What the guard leaves of the answers that adapting changes; sums over rows, so two add up.

    Attributes
    ----------
    weight : float
    n_changed : int
        Rows whose class adapting changes.
    changed, survived : float
        Their weight, and that of those whose class the guard changes too, and to the same.
    n_careful : int
        Rows whose class the guarded answer changes.
    gain, careful_gain : float
        Expected rows that adapting, and guarded adapting, gets right and the stable predictor does not.
    """

    weight: float
    n_changed: int
    changed: float
    survived: float
    n_careful: int
    gain: float
    careful_gain: float

    def __add__(self, other: AnswerCounts) -> AnswerCounts:
        return AnswerCounts(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))


def count_answers(
    guard: Guard, stable: FloatArray, X: Any, divisor: FloatArray, weight: FloatArray, model: UnstableModel
) -> AnswerCounts:
    """Count on some rows what the guard does.

    On the way from the prior to f_U the weight of every class moves in a straight line. So a class that wins
    at both ends wins in between, and only rows whose class adapting changes need to be looked at.
    """
    log_joint = log_combine(stable, model.log_proba(X), divisor)
    plain, base = log_joint.argmax(axis=1), stable.argmax(axis=1)
    changed = np.flatnonzero(plain != base)
    total = float(weight.sum())
    if not len(changed):
        return AnswerCounts(total, 0, 0.0, 0.0, 0, 0.0, 0.0)
    plain, base, weight, joint = plain[changed], base[changed], weight[changed], np.exp(log_joint[changed])
    guarded = guard.log_unstable(model, _safe_indexing(X, changed))
    careful = log_combine(stable[changed], guarded, divisor).argmax(axis=1)
    rows = np.arange(len(changed))
    return AnswerCounts(
        total,
        len(changed),
        float(weight.sum()),
        float(weight[careful == plain].sum()),
        int((careful != base).sum()),
        float(weight @ (joint[rows, plain] - joint[rows, base])),
        float(weight @ (joint[rows, careful] - joint[rows, base])),
    )


def complete(guard: Guard, problem: Problem, model: UnstableModel, counts: AnswerCounts) -> Guard:
    """The guard with δ* and its cost, from the rows that were adapted to.

    δ* is where the unguarded predictions stop paying if the leak is as adverse as it can be: their gain
    over the stable ones is judged by the joint posterior at the end of the band nearest to the prior.
    """
    divisor = problem.prior
    adopted = log_combine(problem.stable, model.log_proba(problem.X), divisor).argmax(axis=1)
    changed = np.flatnonzero(adopted != problem.stable.argmax(axis=1))  # the others gain and lose nothing
    stable, X, weight = problem.stable[changed], _safe_indexing(problem.X, changed), problem.weight[changed]
    adopted = adopted[changed]

    band = guard.around(model, X) if len(stable) else None

    def gain(leak: float) -> float:
        if band is None:
            return 0.0
        joint = np.exp(log_combine(stable, band.log_unstable(leak), divisor))
        return expected_gain(stable, joint, adopted, weight)

    if not len(changed) or gain(0.0) <= 0.0:
        break_even = 0.0
    elif gain(_LARGEST_LEAK) > 0.0:
        break_even = float("inf")
    else:
        break_even = float(brentq(gain, 0.0, _LARGEST_LEAK, xtol=1e-4))
    return replace(guard, break_even=break_even, cost=(counts.gain - counts.careful_gain) / counts.weight)


def verdict(guard: Guard, counts: AnswerCounts) -> tuple[DecisionKind, str]:
    """What the guard did ("adapted", "blended", "kept stable"), and why in one sentence."""
    survived = counts.survived / counts.changed if counts.n_changed else 1.0
    origin = f"leak {guard.leak:.3f} ({guard.leak_source}), break-even {guard.break_even:.3f}"
    if not counts.n_careful:
        return "kept stable", f"{origin}: no answer of the stable predictor changes beyond doubt"
    share = (
        f"{int(100 * survived)} % of the {counts.n_changed} answers that adapting changes are beyond doubt"
    )
    return ("adapted" if survived >= _MOST_ANSWERS else "blended"), f"{origin}: {share}"
