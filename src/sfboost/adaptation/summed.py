"""`adapt` for rows that are not here: the same head, decision and guard from passes that return sums.

A pass is a function that gives the sum of something over all rows. A sample of the rows, the same one
whichever the order (`row_sample`), chooses the penalty and the start; Newton's method (L-BFGS for wide heads)
then climbs ℓ of *all* rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from sfboost.adaptation.adaptation import Adaptation
from sfboost.adaptation.decision import Amount
from sfboost.adaptation.engine import adapt_rows, check_source_prior
from sfboost.adaptation.fitting import FINE, UnstableModel, fit_unstable
from sfboost.adaptation.guard import allowed_leak, judge
from sfboost.adaptation.likelihood_sums import LikelihoodSums, Point, likelihood_sums
from sfboost.adaptation.outcome import Learned, conclude, first_decision
from sfboost.adaptation.problem import Problem
from sfboost.adaptation.regularisation import cross_fit
from sfboost.adaptation.settings import Choices
from sfboost.adaptation.shrinking import can_shrink
from sfboost.adaptation.standardize import Standardizer
from sfboost.adaptation.summed_errors import (
    influence_map,
    penalty_by_parameter,
    summed_covariance,
    summed_uncertainty,
)
from sfboost.adaptation.training import Training
from sfboost.adaptation.uncertainty import rough_error
from sfboost.heads import SoftLogisticRegression
from sfboost.heads.lbfgs import descend, white_rows
from sfboost.heads.linear import LinearFit
from sfboost.heads.whitening import Whitening
from sfboost.marginal import PseudoLabelStatistics
from sfboost.marginal.probabilities import FloatArray

#: Of a function of (stable, raw X) of some rows: its sum over all of them.
Pass = Callable[[Callable[[FloatArray, FloatArray], Any]], Any]

#: Beyond this many parameters second derivatives cost more than they save.
_MOST_CURVED = 400
_TOLERANCE = 1e-9
_MOST_PASSES = 60
# After a shorter step the next point may be the last, where errors are wanted too.
_NEAR = 1e-3


@dataclass(frozen=True, eq=False)
class Overview:
    """What a first pass over the rows tells.

    Attributes
    ----------
    statistics : PseudoLabelStatistics
    standardizer : Standardizer
    stable, X : arrays
        f_S and raw unstable features of the sampled rows.
    all_certain : bool
        Whether f_S is one or zero for every row.
    """

    statistics: PseudoLabelStatistics
    standardizer: Standardizer
    stable: FloatArray
    X: FloatArray
    all_certain: bool = False


def adapt_summed(
    overview: Overview,
    over_all: Pass,
    choices: Choices,
    *,
    classes: npt.NDArray[Any],
    training: Training,
    answer: str,
    uncertainty: bool = False,
    alarm: str | None = None,
) -> Adaptation:
    """`adapt_rows` of rows that only passes see; unlabelled and of equal weight."""
    if not choices.direct or choices.head is not None or choices.standardize is False:
        raise ValueError(
            "Rows that do not fit into memory are adapted to with the default head and settings (l2 may be "
            "given): leave `unstable` and the other settings out, or pass fewer rows as a table."
        )
    statistics, n_rows = overview.statistics, overview.statistics.weight
    divisor = check_source_prior(training, choices, statistics.n_classes)
    prior = statistics.prior if divisor is None else divisor
    rows = overview.standardizer.apply(overview.X)
    sample = Problem.unlabelled(overview.stable, rows, divisor, overview.X)
    amount = Amount(statistics, int(n_rows), overview.X.shape[1], prior, all_certain=overview.all_certain)
    if answer != "paper" and can_shrink(amount, choices) and len(overview.stable) == n_rows:
        rest: dict[str, Any] = {"answer": answer, "uncertainty": uncertainty, "alarm": alarm}
        return adapt_rows(
            overview.stable, overview.X, choices, classes=classes, training=training, **rest
        )  # the sample is all rows
    decision, notes = first_decision(amount, training, answer, classes)
    learned, errors = None, None
    if decision.kind == "adapted":
        fitted = cross_fit(sample, choices, total=n_rows)
        unstable, sums, theta = _climb(sample, over_all, choices, fitted.l2, prior, overview.standardizer)
        influence = None
        if sums.hessian.size:
            influence = influence_map(sums, theta, fitted.l2, prior_is_estimated=divisor is None)
        learned = Learned(unstable, prior if divisor is None else sums.unstable / n_rows, fitted)
        if answer == "safe":
            covariance = None if influence is None else summed_covariance(sums, influence)
            guard = judge(
                sample,
                unstable,
                allowed_leak(training, statistics),
                prior=learned.prior,
                confusion=statistics.confusion if divisor is None else sums.joint / sums.joint.sum(axis=0),
                covariance=covariance,
                pseudo_error=rough_error(statistics, overview.X.shape[1] + 1) if covariance is None else 0.0,
                random_state=choices.random_state,
                yardstick=choices.yardstick("accuracy"),
            )
            learned = replace(learned, guard=guard)
        if uncertainty and influence is not None:
            assert isinstance(unstable.head, SoftLogisticRegression)
            errors = summed_uncertainty(
                sums, statistics, unstable.head, overview.standardizer, influence, alarm, divisor is None
            )
    return conclude(
        decision,
        learned,
        amount,
        alarm=alarm,
        classes=classes,
        standardizer=overview.standardizer,
        settings=choices,
        n_labelled=0,
        warnings=notes,
        errors=lambda _: errors,
    )


@dataclass(frozen=True, eq=False)
class Climb:
    """The pass of one step: the sums at a point."""

    point: Point

    def __call__(self, stable: FloatArray, X: FloatArray) -> LikelihoodSums:
        """Of some rows."""
        return likelihood_sums(stable, X, self.point)


def _climb(
    sample: Problem,
    over_all: Pass,
    choices: Choices,
    l2: float,
    prior: FloatArray,
    standardizer: Standardizer,
) -> tuple[UnstableModel, LikelihoodSums, FloatArray]:
    """The maximum of penalised ℓ over all rows, from that over the sample, and the sums there."""
    start = fit_unstable(sample, choices, l2).linear_fit
    assert start is not None  # the default head has one
    theta = np.vstack([start.coef, start.intercept]).T
    if theta.size > _MOST_CURVED:
        sums, theta = _many_steps(sample, over_all, l2, start, prior, standardizer)
    else:
        sums, theta = _newton(over_all, l2, theta, prior, standardizer)
    value = sums.value / sums.n_rows + 0.5 * l2 * float(np.vdot(theta[:, :-1], theta[:, :-1]))
    fit = LinearFit(theta[:, :-1].T, theta[:, -1], value, 0, True)
    head = choices.make_head(l2)
    assert isinstance(head, SoftLogisticRegression)
    head.take(fit)
    return UnstableModel(head, history=(-sums.value / sums.n_rows,)), sums, theta


def _newton(
    over_all: Pass, l2: float, theta: FloatArray, prior: FloatArray, standardizer: Standardizer
) -> tuple[LikelihoodSums, FloatArray]:
    """Newton's method, damped where ℓ is not concave or a step is too long; one pass for each step."""
    ridge = penalty_by_parameter(theta, l2)

    def look(at: FloatArray, errors: bool) -> tuple[LikelihoodSums, float, FloatArray]:
        sums: LikelihoodSums = over_all(Climb(Point(at, prior, standardizer, errors=errors)))
        value = sums.value / sums.n_rows + 0.5 * float(ridge @ at.ravel() ** 2)
        return sums, value, sums.gradient.ravel() / sums.n_rows + ridge * at.ravel()

    sums, value, gradient = look(theta, False)
    damping = 0.0
    for _ in range(_MOST_PASSES):
        if np.abs(gradient).max() <= _TOLERANCE:
            break
        step = _solve(sums.hessian / sums.n_rows + np.diag(ridge), gradient, damping)
        trial = theta - step.reshape(theta.shape)
        new = look(trial, bool(np.abs(step).max() < _NEAR))
        if new[1] <= value + 1e-12 * abs(value):
            theta, damping = trial, damping / 10.0 if damping > 1e-6 else 0.0
            sums, value, gradient = new
        elif np.abs(step).max() <= 1e-9:
            break  # nothing but rounding is left
        else:
            damping = max(10.0 * damping, 1e-3)
    if not sums.products.size:
        sums = look(theta, True)[0]
    # The mean of K intercepts is free; centring makes the fit unique.
    shift = theta[:, -1].mean() if len(theta) > 1 else 0.0
    return sums, np.column_stack([theta[:, :-1], theta[:, -1] - shift])


def _solve(hessian: FloatArray, gradient: FloatArray, damping: float) -> FloatArray:
    """A step that goes down: the Hessian with as much ridge as it needs to be positive."""
    ridge = max(damping, 1e-10)
    while True:
        try:
            return np.asarray(cho_solve(cho_factor(hessian + ridge * np.eye(len(hessian))), gradient))
        except LinAlgError:
            ridge *= 10.0


def _many_steps(
    sample: Problem,
    over_all: Pass,
    l2: float,
    start: LinearFit,
    prior: FloatArray,
    standardizer: Standardizer,
) -> tuple[LikelihoodSums, FloatArray]:
    """L-BFGS, for heads too wide for second derivatives; one pass for each evaluation."""
    last: list[LikelihoodSums] = []

    def evaluate(theta: FloatArray) -> tuple[float, FloatArray]:
        sums: LikelihoodSums = over_all(Climb(Point(theta, prior, standardizer, curved=False)))
        last[:] = [sums]
        penalty = np.column_stack([l2 * theta[:, :-1], np.zeros(len(theta))])
        value = sums.value / sums.n_rows + 0.5 * float(np.vdot(penalty, theta))
        return value, sums.gradient / sums.n_rows + penalty

    theta = np.column_stack([start.coef.T, start.intercept])
    coordinates = white_rows(Whitening.of(sample.X, sample.weight), l2, len(theta))
    found = descend(evaluate, theta, coordinates, FINE, 1000)
    return last[0], found.theta
