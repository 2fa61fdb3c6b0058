"""Standard errors of an adaptation, conditional on f_S: stacked estimating equations with a sandwich.

The head solves Σ ω ψ(θ, m) = 0, where m are means of functions of f_S (the prior, and E[f fᵀ] for ε). Its
influence function is H⁻¹ (ψ + ∂ψ/∂m · (m_i − m)), H the *observed* information: for the likelihood that is
Louis' complete minus missing information. Complete-data standard errors ignore the second term and cover
far too little. f_S itself is taken as given: its own estimation error is not in these intervals.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.stats import norm

from sfboost.adaptation.fitting import UnstableModel
from sfboost.adaptation.problem import Problem
from sfboost.adaptation.settings import Settings
from sfboost.adaptation.standardize import Standardizer
from sfboost.heads import SoftLogisticRegression
from sfboost.heads.linear import Loss
from sfboost.heads.objectives import (
    CrossEntropy,
    LogLikelihood,
    Objective,
    log_proba_from_logits,
)
from sfboost.marginal import PseudoLabelStatistics, correct_posthoc, floored_log, posterior
from sfboost.marginal.probabilities import FloatArray

_STEP = 1e-4
#: Beyond this many parameters the covariance costs more than the fit.
_MOST_PARAMETERS = 600
#: Rows times parameters that the influence of every row may take: 0.4 GB.
_MOST_NUMBERS = 50_000_000


@dataclass(frozen=True, eq=False)
class Estimate:
    """A number, or an array of them, with standard errors of the same shape.

    Examples
    --------
    >>> low, high = Estimate(np.array(0.5), np.array(0.1)).interval(0.95)
    >>> round(float(low), 3), round(float(high), 3)
    (0.304, 0.696)
    """

    value: FloatArray
    standard_error: FloatArray

    def interval(self, level: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """Normal interval that covers the truth with probability `level`."""
        if not 0.0 < level < 1.0:
            raise ValueError(f"level={level} is not a probability: use a number between 0 and 1.")
        reach = float(norm.ppf(0.5 + level / 2.0)) * self.standard_error
        return self.value - reach, self.value + reach


@dataclass(frozen=True, eq=False)
class Uncertainty:
    """Estimates of one adaptation with standard errors, conditional on f_S.

    Other rows of the same domain would have given other numbers; these are the sizes of the differences.

    Attributes
    ----------
    prior : Estimate of shape (K,)
    confusion : Estimate of shape (K, K)
        ε (Algorithm 2 line 3).
    informativeness : Estimate
        s.
    coef, intercept : Estimate of shape (columns, d) and (columns,), or None
        Of the head, in the units of the raw features. None for heads that are not our logistic one.
    accuracy, stable_accuracy : Estimate or None
        Expected accuracy in the new domain, estimated without labels, of the adapted and of the stable
        predictor. They believe f_S and the head: a leak is not in them.
    head_covariance : array of shape (P, P) or None
        Of the head's parameters on standardised features: columns first, intercept last in each.
    withheld : str
        Why no accuracy is given although it could be computed: the rows contradict what it believes.

    References
    ----------
    .. [1] T. A. Louis (1982). Finding the Observed Information Matrix when Using the EM Algorithm.
       Journal of the Royal Statistical Society B 44.
    .. [2] W. K. Newey and D. McFadden (1994). Large Sample Estimation and Hypothesis Testing. Handbook
       of Econometrics 4. (Stacked estimating equations.)
    """

    prior: Estimate
    confusion: Estimate
    informativeness: Estimate
    coef: Estimate | None = None
    intercept: Estimate | None = None
    accuracy: Estimate | None = None
    stable_accuracy: Estimate | None = None
    head_covariance: FloatArray | None = None
    withheld: str = ""

    def __str__(self) -> str:
        lines = ["Uncertainty (conditional on the stable predictor), 95 % intervals"]
        for name in ("informativeness", "accuracy", "stable_accuracy"):
            estimate = getattr(self, name)
            if estimate is not None:
                low, high = estimate.interval()
                lines.append(
                    f"  {name:<16} {float(estimate.value):.4f}  [{float(low):.4f}, {float(high):.4f}]"
                )
        if self.withheld:
            lines.append(f"  no accuracy without labels: {self.withheld}")
        return "\n".join(lines)


@dataclass(frozen=True, eq=False)
class _Equations:
    """The estimating equations at their solution, with weights ω that sum to one."""

    share: FloatArray
    moments: FloatArray  # p, then E[f fᵀ] row by row
    moment_rows: FloatArray
    influence: FloatArray  # of the head's parameters, one row each


def uncertainty_of(
    problem: Problem,
    settings: Settings,
    model: UnstableModel | None,
    standardizer: Standardizer | None,
    alarm: str | None = None,
) -> Uncertainty:
    """Standard errors of an adaptation of `problem`; what cannot be had, or not be believed, is None."""
    share = problem.weight / problem.weight.sum()
    rows = _moment_rows(problem)
    moments = share @ rows
    basics = _basics(rows, moments, share, problem.n_classes)
    if model is None or not has_equations(problem, settings, model):
        return Uncertainty(*basics)
    head = model.head
    assert isinstance(head, SoftLogisticRegression)  # has_equations says so
    equations = _Equations(
        share, moments, rows, _head_influence(problem, settings, head, rows, moments, share)
    )
    weighted = equations.influence * share[:, None]
    covariance = weighted.T @ weighted
    coef, intercept = raw_units(head, covariance, standardizer)
    if alarm:
        return Uncertainty(*basics, coef, intercept, head_covariance=covariance, withheld=alarm)
    return Uncertainty(
        *basics, coef, intercept, *_accuracies(problem, model, equations), head_covariance=covariance
    )


def head_covariance(
    problem: Problem, settings: Settings, model: UnstableModel
) -> tuple[FloatArray | None, float]:
    """Covariance of the head's parameters; or None, and a rough error of its fitted mean pseudo-label.

    Heads without known equations, and very wide ones, get √(parameters · Var f / n) for every row.
    """
    share = problem.weight / problem.weight.sum()
    width = problem.X.shape[1] + 1
    n_columns = 1 if problem.n_classes == 2 else problem.n_classes
    large = width * n_columns > _MOST_PARAMETERS or len(share) * width * n_columns > _MOST_NUMBERS
    if large or not has_equations(problem, settings, model):
        return None, rough_error(problem.statistics, width, float(share @ share))
    rows = _moment_rows(problem)
    assert isinstance(model.head, SoftLogisticRegression)  # has_equations says so
    weighted = _head_influence(problem, settings, model.head, rows, share @ rows, share) * share[:, None]
    return weighted.T @ weighted, 0.0


def rough_error(statistics: PseudoLabelStatistics, width: int, concentration: float | None = None) -> float:
    """√(parameters · Var f / n), the error of a mean pseudo-label; `concentration` is Σ share², else 1/n."""
    mean = statistics.total / statistics.weight
    spread = np.diag(statistics.cross) / statistics.weight - mean**2
    return float(np.sqrt(spread.max() * width * (concentration or 1.0 / statistics.weight)))


def has_equations(problem: Problem, settings: Settings, model: UnstableModel) -> bool:
    """Whether the head solves an equation that this module knows: one fit of our logistic head."""
    ours = isinstance(model.head, SoftLogisticRegression) and model.temperature is None
    single = settings.direct or settings.rounds == 1
    labels = settings.direct or not len(problem.labelled) or problem.all_labelled
    return ours and single and labels and settings.pseudo_labels == "soft"


def _moment_rows(problem: Problem) -> FloatArray:
    """One row of (class contribution, f fᵀ): their means are the prior and E[f fᵀ]."""
    classes = np.eye(problem.n_classes)[problem.known] if problem.all_labelled else problem.stable
    cross = problem.stable[:, :, None] * problem.stable[:, None, :]
    return np.column_stack([classes, problem.stable, cross.reshape(len(classes), -1)])


def _split(moments: FloatArray, n_classes: int) -> tuple[FloatArray, FloatArray]:
    """The prior and the confusion ε from stacked moments."""
    total = moments[n_classes : 2 * n_classes]
    cross = moments[2 * n_classes :].reshape(n_classes, n_classes)
    return moments[:n_classes], PseudoLabelStatistics(1.0, total, cross).confusion


def _basics(
    rows: FloatArray, moments: FloatArray, share: FloatArray, n_classes: int
) -> tuple[Estimate, Estimate, Estimate]:
    """Prior, ε and s: ratios of means, so their influence functions are closed forms."""
    prior, confusion = _split(moments, n_classes)
    total = np.where(moments[n_classes : 2 * n_classes] > 0.0, moments[n_classes : 2 * n_classes], 1.0)
    stable = rows[:, n_classes : 2 * n_classes]
    cross = rows[:, 2 * n_classes :].reshape(-1, n_classes, n_classes)
    influence = (cross - confusion * stable[:, None, :]) / total
    trace = np.trace(influence, axis1=1, axis2=2) / (n_classes - 1)
    claimed = np.array((np.trace(confusion) - 1.0) / (n_classes - 1))
    return (
        Estimate(prior, _root_mean_square(rows[:, :n_classes] - prior, share)),
        Estimate(confusion, _root_mean_square(influence, share)),
        Estimate(claimed, _root_mean_square(trace, share)),
    )


def _root_mean_square(influence: FloatArray, share: FloatArray) -> FloatArray:
    """Standard error of a weighted mean from centred influence rows."""
    return np.sqrt(np.tensordot(share**2, influence**2, axes=1))


def _objective(problem: Problem, settings: Settings, moments: FloatArray, share: FloatArray) -> Objective:
    """The head's loss as a function of the moments that it treats as known."""
    if problem.all_labelled:
        return CrossEntropy(np.eye(problem.n_classes)[problem.known], share)
    if settings.direct:
        prior, _ = _split(moments, problem.n_classes)
        return LogLikelihood(_at_prior(problem, prior).class_evidence, share)
    return CrossEntropy(problem.stable, share)


def _at_prior(problem: Problem, prior: FloatArray) -> Problem:
    """The problem with another p, unless p was given and is not estimated from the rows."""
    return problem.with_prior(prior) if problem.prior_is_estimated else problem


def _head_influence(
    problem: Problem,
    settings: Settings,
    head: SoftLogisticRegression,
    rows: FloatArray,
    moments: FloatArray,
    share: FloatArray,
) -> FloatArray:
    """Influence of each row on the head's parameters, of shape (n, P)."""
    X = problem.X.toarray() if sparse.issparse(problem.X) else problem.X
    design, theta = np.column_stack([X, np.ones(len(X))]), np.column_stack([head.coef_, head.intercept_])
    logits = design @ theta.T
    objective = _objective(problem, settings, moments, share)
    by_logit = objective.value_and_gradient(logits)[1]
    information = Loss(X, objective, head.l2).hessian(theta)
    score = -(by_logit[:, :, None] * design[:, None, :]).reshape(len(design), -1)
    score /= np.maximum(share, np.finfo(np.float64).tiny)[:, None]
    score[share <= 0.0] = 0.0
    away = head.coef_ if problem.centre is None else head.coef_ - problem.centre[:, :-1]
    penalty = head.l2 * np.column_stack([away, np.zeros(len(away))]).ravel()

    def mean_score(at: FloatArray) -> FloatArray:
        gradient = _objective(problem, settings, at, share).value_and_gradient(logits)[1]
        return -(gradient.T @ design).ravel()

    if problem.prior_is_estimated and not problem.all_labelled:
        score += (rows - moments) @ _jacobian(mean_score, moments).T
    # The shared intercept of K logit columns is free: the pseudo-inverse leaves it alone.
    inverse = np.linalg.pinv(information, rcond=1e-9, hermitian=True)
    return (score - penalty) @ inverse


def _jacobian(function: Callable[[FloatArray], FloatArray], at: FloatArray) -> FloatArray:
    """Central differences; steps are relative, so that a rare class stays positive."""
    columns = []
    for j in range(len(at)):
        step = np.zeros(len(at))
        step[j] = _STEP * max(abs(at[j]), 1e-6)
        columns.append((function(at + step) - function(at - step)) / (2.0 * step[j]))
    return np.column_stack(columns)


def raw_units(
    head: SoftLogisticRegression, covariance: FloatArray, standardizer: Standardizer | None
) -> tuple[Estimate, Estimate]:
    """Coefficients of the raw features: a linear map of those of the standardised ones."""
    columns, n_features = head.coef_.shape
    mean = np.zeros(n_features) if standardizer is None else standardizer.mean
    scale = np.ones(n_features) if standardizer is None else standardizer.scale
    back = np.diag(np.append(1.0 / scale, 1.0))
    back[-1, :-1] = -mean / scale
    theta = np.column_stack([head.coef_, head.intercept_]) @ back.T
    error = np.empty_like(theta)
    width = n_features + 1
    for k in range(columns):
        block = covariance[k * width : (k + 1) * width, k * width : (k + 1) * width]
        error[k] = np.sqrt(np.maximum(np.diag(back @ block @ back.T), 0.0))
    return Estimate(theta[:, :-1], error[:, :-1]), Estimate(theta[:, -1], error[:, -1])


def _accuracies(problem: Problem, model: UnstableModel, equations: _Equations) -> tuple[Estimate, Estimate]:
    """Expected accuracy of adapted and stable predictions, by the joint posterior of each row."""
    assert isinstance(model.head, SoftLogisticRegression)
    X: Any = problem.X
    head = model.head
    chosen = problem.stable.argmax(axis=1)

    def values(parameters: FloatArray) -> tuple[FloatArray, FloatArray]:
        moments = parameters[: len(equations.moments)]
        theta = parameters[len(equations.moments) :].reshape(len(head.coef_), -1)
        prior, confusion = _split(moments, problem.n_classes)
        log_head = log_proba_from_logits(np.asarray(X @ theta[:, :-1].T) + theta[:, -1])
        if model.confusion is not None:
            log_head = floored_log(correct_posthoc(np.exp(log_head), confusion))
        joint = posterior(log_head, _at_prior(problem, prior).log_weights)
        return joint.max(axis=1), joint[np.arange(len(joint)), chosen]

    theta = np.column_stack([head.coef_, head.intercept_]).ravel()
    at = np.concatenate([equations.moments, theta])
    mean_rows = equations.moment_rows - equations.moments
    slope = _jacobian(lambda p: np.array([equations.share @ v for v in values(p)]), at)
    carried = np.column_stack([mean_rows, equations.influence]) @ slope.T
    estimates = []
    for rows, extra in zip(values(at), carried.T, strict=True):
        mean = float(equations.share @ rows)
        error = _root_mean_square(rows - mean + extra, equations.share)
        estimates.append(Estimate(np.array(mean), error))
    return estimates[0], estimates[1]
