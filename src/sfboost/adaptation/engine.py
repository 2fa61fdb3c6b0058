"""`adapt`: from stable probabilities and unstable features to an `Adaptation`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from sfboost.adaptation.adaptation import Adaptation
from sfboost.adaptation.checks import (
    as_rows,
    check_classes,
    check_known_labels,
    check_unstable,
    check_weight,
)
from sfboost.adaptation.decision import amount_of
from sfboost.adaptation.fitting import START_ROWS, UnstableModel, fit_unstable
from sfboost.adaptation.guard import Guard, allowed_leak, judge
from sfboost.adaptation.outcome import Learned, conclude, first_decision
from sfboost.adaptation.problem import Problem
from sfboost.adaptation.regularisation import cross_fit
from sfboost.adaptation.row_sample import RowSketch
from sfboost.adaptation.settings import ANSWERS, Choices, Settings, resolve
from sfboost.adaptation.shrinking import can_shrink, shrink
from sfboost.adaptation.standardize import Standardizer
from sfboost.adaptation.training import Training
from sfboost.adaptation.uncertainty import head_covariance, uncertainty_of
from sfboost.marginal import as_probability_matrix, posterior, pseudo_label_confusion
from sfboost.marginal.probabilities import FloatArray, as_class_shares


def adapt(
    stable_proba: Any,
    X_unstable: Any,
    *,
    settings: Settings | None = None,
    transport: str = "posterior",
    random_state: int = 0,
    **options: Any,
) -> Adaptation:
    """`sfboost.adapt` without its look at what the new rows contradict, and at what was not checked.

    References
    ----------
    .. [1] C. Eastwood et al. (2023). Spuriosity Didn't Kill the Classifier: Using Invariant Predictions
       to Harness Spurious Features. NeurIPS 36.
    """
    choices = resolve(settings, transport=transport, random_state=random_state)
    return adapt_rows(stable_proba, X_unstable, choices, **options)


def adapt_rows(
    stable_proba: Any,
    X_unstable: Any,
    choices: Choices,
    *,
    y: Any = None,
    classes: Any = None,
    sample_weight: Any = None,
    training: Training | None = None,
    answer: str = "checked",
    uncertainty: bool = False,
    alarm: str | None = None,
) -> Adaptation:
    """`adapt` with resolved settings, and with the alarm of those who can ask the new rows for one.

    `alarm` says why these rows contradict the assumptions: a safe answer then keeps the stable predictor, and
    no accuracy is claimed without labels.
    """
    if answer not in ANSWERS:
        raise ValueError(f"answer={answer!r} is not known: use one of {list(ANSWERS)}.")
    training = Training() if training is None else training
    stable = as_probability_matrix(stable_proba)
    names = check_classes(classes, stable.shape[1])
    weight = check_weight(sample_weight, len(stable))
    used = np.flatnonzero(weight)
    if len(used) == 1:
        raise ValueError(
            "One row cannot tell how the new domain differs: pass all unlabelled rows of the domain to "
            "`adapt`, and single rows to `predict_proba`."
        )
    known = check_known_labels(y, names, len(stable))
    X, standardizer, raw = _prepare(X_unstable, weight, choices)
    divisor = check_source_prior(training, choices, stable.shape[1])
    problem = Problem(stable, X, known, weight, divisor, raw)
    if len(used) < len(weight):  # a row of weight zero is no row
        problem = problem.take(used)
    amount, fitted = amount_of(problem), None
    if answer != "paper" and can_shrink(amount, choices):
        problem, fitted, amount = shrink(problem, choices, amount, training.mean_head(standardizer))
    decision, notes = first_decision(amount, training, answer, names)
    learned = None
    if decision.kind == "adapted":
        if fitted is None and choices.head is None:
            fitted = cross_fit(problem, choices)
        unstable = fit_unstable(problem, choices, fitted.l2 if fitted else None)
        learned = Learned(unstable, _class_shares(problem, unstable), fitted)
        if answer == "safe" and not problem.all_labelled:
            learned = replace(learned, guard=_guard(problem, choices, learned, training))
    return conclude(
        decision,
        learned,
        amount,
        alarm=alarm,
        classes=names,
        standardizer=standardizer,
        settings=choices,
        n_labelled=len(problem.labelled),
        warnings=notes,
        errors=lambda used: (
            uncertainty_of(problem, choices, used, standardizer, alarm) if uncertainty else None
        ),
    )


def check_source_prior(training: Training, choices: Choices, n_classes: int) -> FloatArray | None:
    """The p of w = f_S / p that label shift needs; None lets the rows themselves say it."""
    if choices.transport == "posterior":
        return None
    if training.source_prior is None:
        raise ValueError(
            'transport="likelihood" needs source_prior: pass training=Training(source_prior=...), the class '
            "shares of the rows that stable_proba was calibrated on."
        )
    return as_class_shares(training.source_prior, n_classes, name="source_prior")


def _class_shares(problem: Problem, unstable: UnstableModel) -> FloatArray:
    """Pr[Y] in the new domain: the mean of f_S, or of f_U if the training prior says nothing of it."""
    if problem.prior_is_estimated:
        return problem.prior
    share = problem.weight / problem.weight.sum()
    return share @ np.exp(unstable.log_proba(problem.X))


def _guard(problem: Problem, choices: Choices, learned: Learned, training: Training) -> Guard:
    """The guard of rows that are here; 20 000 of them are enough to judge a gain."""
    unstable, confusion = learned.unstable, problem.statistics.confusion
    if not problem.prior_is_estimated:
        # Under label shift ε is not a function of f_S alone: use the fitted joint posterior as labels.
        joint = posterior(unstable.log_proba(problem.X), problem.class_evidence)
        confusion = pseudo_label_confusion(problem.stable, joint, problem.weight)
    covariance, pseudo_error = head_covariance(problem, choices, unstable)
    some = problem
    if len(problem.stable) > START_ROWS:
        some = problem.take(RowSketch.of(problem.keys, START_ROWS).draw(START_ROWS, choices.random_state))
    return judge(
        some,
        unstable,
        allowed_leak(training, problem.statistics),
        prior=learned.prior,
        confusion=confusion,
        covariance=covariance,
        pseudo_error=pseudo_error,
        random_state=choices.random_state,
        yardstick=choices.yardstick("accuracy"),
    )


def _prepare(X_unstable: Any, weight: Any, choices: Choices) -> tuple[Any, Standardizer | None, Any]:
    """Check the unstable features and standardise them unless a wrapped pipeline does its own.

    The third are the checked ones as they were given, where they were standardised.
    """
    if choices.wraps_head and choices.standardize is not True:
        return as_rows(X_unstable, len(weight)), None, None
    X = check_unstable(X_unstable, n_rows=len(weight))
    if choices.standardize is False:
        return X, None, None
    standardizer = Standardizer.fit(X, weight)
    return standardizer.apply(X), standardizer, X
