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
from sfboost.adaptation.guard import Guard, judge
from sfboost.adaptation.outcome import Learned, conclude, first_decision
from sfboost.adaptation.problem import Problem
from sfboost.adaptation.regularisation import cross_fit
from sfboost.adaptation.row_sample import RowSketch
from sfboost.adaptation.settings import ANSWERS, Choices, Settings, resolve
from sfboost.adaptation.standardize import Standardizer
from sfboost.adaptation.training import Training
from sfboost.adaptation.uncertainty import head_covariance, uncertainty_of
from sfboost.marginal import as_probability_matrix, posterior
from sfboost.marginal.probabilities import FloatArray, as_class_shares


def adapt(
    stable_proba: Any,
    X_unstable: Any,
    *,
    y: Any = None,
    classes: Any = None,
    sample_weight: Any = None,
    training: Training | None = None,
    transport: str = "posterior",
    answer: str = "checked",
    settings: Settings | None = None,
    uncertainty: bool = False,
    random_state: int = 0,
) -> Adaptation:
    """Learn how to use unstable features in a new domain, from calibrated stable predictions alone.

    The features may be ones that changed their meaning, or ones that exist only in the new domain,
    such as a newly bought sensor: nothing about them is taken from training.

    Parameters
    ----------
    stable_proba : array-like of shape (n,) or (n, K)
        Calibrated probabilities of the stable predictor for rows of the new domain. A vector is the
        probability of the second of two classes.
    X_unstable : array-like, sparse matrix or DataFrame of shape (n, d)
        Unstable features of the same rows.
    y : array-like of shape (n,), optional
        Labels where they are known; None, NaN or (if it is not a class) -1 elsewhere. The class shares stay
        those that f_S implies for all rows, whichever are labelled, until every row is; what the unstable
        features mean is learned best if the labelled rows were not chosen by their label.
    classes : array-like of shape (K,), optional
        Names of the columns of `stable_proba`; 0..K-1 by default.
    sample_weight : array-like of shape (n,), optional
        Relative weights of the rows; their scale does not matter. For a given `l2` a row of weight two is
        that row twice. With l2="auto" it is not: a weighted row is one observation, so it is on one side of
        every split and the rows are worth (Σw)² / Σw²; copies of a row are not told from new rows.
    training : Training, optional
        What is known from labelled domains: the `training_` of a fitted `StableFeatureBoosting`, or your own,
        such as ``Training(leak=0.05)``.
    transport : {"posterior", "likelihood"}
        What transports from training: P(Y | X_S), the paper, or P(X_S | Y), label shift, where the class
        shares of the new domain are estimated too.
    answer : {"checked", "safe", "paper"}
        "checked" combines f_S with f_U as it was learned, and keeps f_S where the rows are too few for that
        or f_S is not shown to be informative. "safe" also guards: it keeps f_S unless the estimated gain of
        f_U is beyond sampling error and beyond what a leak of `training.leak` can do.
        "paper" never keeps f_S: what the others refuse is a warning.
    settings : Settings, optional
        How f_U is fitted.
    uncertainty : bool
        Also compute standard errors; see `Adaptation.uncertainty`. Its accuracies believe the assumptions,
        which this function cannot check: ask `sfboost.diagnostics.new_domain_alarm`.
    random_state : int
        Seed of the folds that choose the penalty, and of sampled pseudo-labels.

    Returns
    -------
    Adaptation

    Warns
    -----
    AdaptationRefused
        If the stable predictor is kept.
    AdaptationWarning
        If answer="paper" adapts where it would be kept, or a class cannot be learned.

    Examples
    --------
    A stable predictor that is right 75 % of the time, and a new sensor that is right 90 % of the time:

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.integers(0, 2, 5000)
    >>> stable = np.where(rng.random(5000) < 0.75, truth, 1 - truth) * 0.5 + 0.25
    >>> sensor = np.where(rng.random(5000) < 0.90, truth, 1 - truth).reshape(-1, 1)
    >>> adaptation = adapt(stable, sensor)
    >>> adaptation.decision.kind
    'adapted'
    >>> float((adaptation.predict(stable, sensor) == truth).mean().round(2))
    0.9

    References
    ----------
    .. [1] C. Eastwood et al. (2023). Spuriosity Didn't Kill the Classifier: Using Invariant Predictions
       to Harness Spurious Features. NeurIPS 36.
    """
    return adapt_rows(
        stable_proba,
        X_unstable,
        resolve(settings, transport=transport, random_state=random_state),
        y=y,
        classes=classes,
        sample_weight=sample_weight,
        training=Training() if training is None else training,
        answer=answer,
        uncertainty=uncertainty,
    )


def adapt_rows(
    stable_proba: Any,
    X_unstable: Any,
    choices: Choices,
    *,
    y: Any,
    classes: Any,
    sample_weight: Any,
    training: Training,
    answer: str,
    uncertainty: bool,
    alarm: str | None = None,
) -> Adaptation:
    """`adapt` with resolved settings, and with the alarm of those who can ask the new rows for one.

    `alarm` says why these rows contradict the assumptions: a safe answer then keeps the stable predictor, and
    no accuracy is claimed without labels.
    """
    if answer not in ANSWERS:
        raise ValueError(f"answer={answer!r} is not known: use one of {list(ANSWERS)}.")
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
    amount = amount_of(problem)
    decision, notes = first_decision(amount, training, answer, names)
    learned = None
    if decision.kind == "adapted":
        fitted = cross_fit(problem, choices) if choices.head is None else None
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
        joint = joint * problem.weight[:, None]
        confusion = (problem.stable.T @ joint) / joint.sum(axis=0)
    covariance, pseudo_error = head_covariance(problem, choices, unstable)
    some = problem
    if len(problem.stable) > START_ROWS:
        some = problem.take(RowSketch.of(problem.keys, START_ROWS).draw(START_ROWS, choices.random_state))
    return judge(
        some,
        unstable,
        training.allowed_leak,
        prior=learned.prior,
        confusion=confusion,
        covariance=covariance,
        pseudo_error=pseudo_error,
        random_state=choices.random_state,
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
