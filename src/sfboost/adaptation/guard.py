"""The guard: is the gain of adapting beyond doubt? f_U is taken whole, or not at all.

The gain is the expected accuracy of the adapted answers minus that of the stable ones, by the joint
posterior, or what they gain by another score. Two things make it doubtful. *Sampling error*: other rows would
have given another head, and the answers that a head changes look best to itself; heads drawn from its
covariance show both. A *leak*
L(u, y) = E[f_S | y, u] − E[f_S | y] moves the mean pseudo-label at u by B(u) = Σ_y q_y(u) L(u, y), and the
corrected q(u) = Pr[Y | u] by ε⁻¹ B(u). Of all leaks of size δ, root mean square within classes, the worst is
the one that looks like f_U itself: L(u, y) = δ (h(u) − E[h | y]) / sd(h | Y), where h(u) = ε (q(u) − p) is
all that pseudo-labels show of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq

from sfboost.adaptation.decision import Decision
from sfboost.adaptation.fitting import UnstableModel
from sfboost.adaptation.problem import Problem
from sfboost.adaptation.scores import Yardstick
from sfboost.adaptation.training import Training
from sfboost.heads import SoftLogisticRegression
from sfboost.heads.objectives import log_proba_from_logits
from sfboost.marginal import PseudoLabelStatistics, floored_log, log_combine
from sfboost.marginal.probabilities import FloatArray

#: One-sided 5 %: how many standard errors the gain must be away from nothing.
SAMPLING_REACH = 1.64
_LARGEST_LEAK = 1.0
# A leak is seldom less, and nobody looks for it, where training domains are not known.
_USUAL = 0.2
# Heads drawn from the covariance of the fitted one.
_DRAWS = 40


@dataclass(frozen=True, eq=False)
class Guard:
    """What adapting is expected to gain, and how large a leak would undo it.

    How far f_S shows X_U within a class cannot be known in the new domain. f_U is used if its gain is beyond
    sampling error and beyond the worst that a leak of δ can do.

    Attributes
    ----------
    leak : float
        δ, the leak that is allowed for.
    leak_source : str
        Where δ comes from: "given", "training domains" or "assumed, …".
    gain : float
        What adapting is estimated to gain if there is no leak, without what it owes to chance: accuracy, or
        what else `metric` says.
    gain_error : float
        Its standard error.
    break_even : float
        δ*, the leak at which the gain is within doubt: f_U is used below it. 0 where sampling error is doubt
        enough, infinity where no leak below one undoes the gain.
    head_covariance : array of shape (P, P) or None
        Of the head's parameters on standardised features, where its equations are known.
    costs : array of shape (K, K) or None
        Of wrong decisions.
    metric : str
        What the gain is of.

    References
    ----------
    .. [1] C. Eastwood et al. (2023). Spuriosity Didn't Kill the Classifier: Using Invariant Predictions
       to Harness Spurious Features. NeurIPS 36. (The assumption that it allows to fail.)
    """

    leak: float
    leak_source: str
    gain: float = float("nan")
    gain_error: float = float("nan")
    break_even: float = float("nan")
    head_covariance: FloatArray | None = None
    costs: FloatArray | None = None
    metric: str = "accuracy"

    @property
    def accepts(self) -> bool:
        """Whether f_U is used."""
        return self.leak < self.break_even

    def __str__(self) -> str:
        return (
            f"guard: leak {self.leak:.4f} ({self.leak_source}), break-even {self.break_even:.4f}, "
            f"{self._told(2)}"
        )

    @property
    def yardstick(self) -> Yardstick:
        """What the gain is measured by."""
        return Yardstick(self.metric, self.costs)

    def _told(self, digits: int) -> str:
        """The gain in words."""
        told = self.yardstick.told(self.gain, self.gain_error, digits)
        return f"{'saving' if self.metric == 'cost' else 'gain'} of {told}"

    def decision(self, rows: str) -> Decision:
        """Whether f_U is used, and why; `rows` says what there was to learn from."""
        origin = f"leak {self.leak:.3f} ({self.leak_source}), break-even {self.break_even:.3f}"
        gain = f"an estimated {self._told(1)}"
        if self.accepts:
            return Decision("adapted", f"{rows}; {origin}: {gain}")
        doubt = "what such a leak can do" if self.break_even else "sampling error"
        return Decision("kept stable", f"{rows}; {origin}: {gain} is not beyond {doubt}")


def judge(
    problem: Problem,
    model: UnstableModel,
    leak: tuple[float, str],
    *,
    prior: FloatArray,
    confusion: FloatArray,
    covariance: FloatArray | None,
    pseudo_error: float = 0.0,
    random_state: int = 0,
    yardstick: Yardstick | None = None,
) -> Guard:
    """Judge the gain of f_U on the rows of `problem`.

    Parameters
    ----------
    leak : pair of float and str
        δ, and where it comes from.
    prior : array of shape (K,)
        Class shares of the new domain.
    confusion : array of shape (K, K)
        ε.
    covariance : array of shape (P, P) or None
        Of the parameters of our logistic head.
    pseudo_error : float
        Standard error of the mean pseudo-label at a row, for heads without `covariance`: what rows show by
        chance looks like a leak of that size.
    yardstick : Yardstick, optional
        What the gain is measured by; None is accuracy.
    """
    stable, weight, divisor = problem.stable, problem.weight, problem.prior
    by = Yardstick("accuracy") if yardstick is None else yardstick
    log_head = model.log_head(problem.X)
    log_unstable = model.corrected(log_head)
    base, unstable = np.exp(log_head), np.exp(log_unstable)
    joint = np.exp(log_combine(stable, log_unstable, divisor))
    plain = by.gain(stable, joint, joint, weight)
    # The head of the post-hoc correction estimates Pr[Ŷ | u] itself; any other one is seen through ε.
    shown = base - prior if model.confusion is not None else (unstable - prior) @ confusion.T
    worst = worst_leak(shown, unstable, weight) @ np.linalg.pinv(confusion).T

    def loss(size: float) -> float:
        moved = floored_log(unstable - size * worst)
        seen = np.exp(log_combine(stable, moved, divisor))
        return plain - by.gain(stable, joint, seen, weight)

    if covariance is None:
        chance, error = 0.0, loss(SAMPLING_REACH * pseudo_error) / SAMPLING_REACH
    else:
        chance, error = _sampling(problem, model, covariance, joint, random_state, by)
    gain = plain - chance
    undone = _break_even(loss, gain, error)
    return Guard(*leak, gain, error, undone, covariance, costs=by.costs, metric=by.metric)


def allowed_leak(training: Training, statistics: PseudoLabelStatistics) -> tuple[float, str]:
    """δ of a guard, and where it comes from."""
    if training.leak is None:
        return usual_leak(statistics)
    return training.leak, training.leak_source


def usual_leak(statistics: PseudoLabelStatistics) -> tuple[float, str]:
    """A leak to allow for where none was measured: f_S and X_U correlated by a fifth within a class."""
    prior, confusion = statistics.prior, statistics.confusion
    total = np.diag(statistics.cross) / statistics.weight
    within = float((total - confusion**2 @ prior).max())
    return _USUAL * float(np.sqrt(max(within, 0.0))), "assumed, a fifth of the spread of f_S within a class"


def worst_leak(shown: FloatArray, unstable: FloatArray, weight: FloatArray) -> FloatArray:
    """B(u) of the leak of size one that looks most like f_U, of shape (n, K).

    Within a class it is the deviation of `shown`, h, from its mean. What is left of that in the mean
    over the classes at u is little where X_U tells the classes apart, and all of h where it hardly does.
    """
    share = weight / weight.sum()
    joint = unstable * share[:, None]
    shares = joint.sum(axis=0)
    means = (joint.T @ shown) / np.maximum(shares, np.finfo(np.float64).tiny)[:, None]
    within = share @ shown**2 - shares @ means**2
    size = np.sqrt(max(float(within.max()), np.finfo(np.float64).tiny))
    return np.asarray((shown - unstable @ means) / size)


def _sampling(
    problem: Problem,
    model: UnstableModel,
    covariance: FloatArray,
    joint: FloatArray,
    random_state: int,
    by: Yardstick,
) -> tuple[float, float]:
    """How much the gain owes to chance, and its standard error: a parametric bootstrap of the head.

    A drawn head judges its own answers; the fitted one stands for the truth that it does not know.
    """
    assert isinstance(model.head, SoftLogisticRegression)  # other heads have no covariance
    stable, weight = problem.stable, problem.weight
    theta = np.column_stack([model.head.coef_, model.head.intercept_])
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    errors = []
    for noise in np.random.default_rng(random_state).normal(size=(_DRAWS, theta.size)):
        drawn = theta + (root @ noise).reshape(theta.shape)
        logits = np.asarray(problem.X @ drawn[:, :-1].T) + drawn[:, -1]
        log_unstable = model.corrected(log_proba_from_logits(logits))
        own = np.exp(log_combine(stable, log_unstable, problem.prior))
        errors.append(by.gain(stable, own, own, weight) - by.gain(stable, own, joint, weight))
    return float(np.mean(errors)), float(np.std(errors))


def _break_even(loss: Callable[[float], float], gain: float, error: float) -> float:
    """The leak at which both doubts, added like errors that know nothing of each other, are the gain."""
    if gain <= SAMPLING_REACH * error:
        return 0.0
    room = float(np.sqrt(gain**2 - (SAMPLING_REACH * error) ** 2))
    if loss(_LARGEST_LEAK) < room:
        return float("inf")
    return float(brentq(lambda size: loss(size) - room, 0.0, _LARGEST_LEAK, xtol=1e-5))
