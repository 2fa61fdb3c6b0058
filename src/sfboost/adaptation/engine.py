"""`adapt`: from stable probabilities and unstable features to an `Adaptation`."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from sfboost.adaptation.adaptation import Adaptation
from sfboost.adaptation.checks import (
    as_rows,
    check_classes,
    check_known_labels,
    check_unstable,
    check_weight,
)
from sfboost.adaptation.decision import (
    AdaptationRefused,
    AdaptationWarning,
    Amount,
    Decision,
    decide,
    notes_on_classes,
    refusals,
)
from sfboost.adaptation.fitting import UnstableModel, fit_unstable
from sfboost.adaptation.problem import Problem
from sfboost.adaptation.regularisation import can_shrink, cross_fit, shrink
from sfboost.adaptation.settings import Settings, resolve
from sfboost.adaptation.standardize import Standardizer
from sfboost.adaptation.training import Training
from sfboost.marginal import as_probability_matrix
from sfboost.marginal.probabilities import FloatArray, as_class_shares
from sfboost.notices import warn


def adapt(
    stable_proba: Any,
    X_unstable: Any,
    *,
    settings: Settings | None = None,
    transport: str = "posterior",
    random_state: int = 0,
    **options: Any,
) -> Adaptation:
    """SFB on arrays, as settings say: `adapt_rows` with every choice made.

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
    settings: Settings,
    *,
    y: Any = None,
    classes: Any = None,
    sample_weight: Any = None,
    training: Training | None = None,
    refuse: bool | None = None,
) -> Adaptation:
    """Learn f_U from f_S, or keep f_S where there is nothing to learn from.

    `refuse` is whether f_S is kept where the rows are too few or f_S is not shown to be informative; None is
    yes, but for the paper's method, which adapts whatever the rows are and warns.
    """
    training = Training() if training is None else training
    refuse = settings.method != "paper" if refuse is None else refuse
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
    X, standardizer, raw = _prepare(X_unstable, weight, settings)
    problem = Problem(stable, X, known, weight, _source_prior(training, settings, stable.shape[1]), raw)
    if len(used) < len(weight):  # a row of weight zero is no row
        problem = problem.take(used)
    amount = Amount(problem)
    if refuse and can_shrink(amount, settings):
        amount = shrink(amount, settings, training.mean_head(standardizer))
    problem, fitted = amount.problem, amount.held_out
    decision, notes = _first_decision(amount, training, refuse, names)
    prior, unstable = problem.prior, None
    if decision.kind == "adapted":
        if fitted is None and settings.head is None:
            fitted = cross_fit(problem, settings)
        unstable = fit_unstable(problem, settings, fitted.l2 if fitted else None)
        notes += _notes_on_head(unstable)
        prior = _class_shares(problem, unstable)
    else:
        tell_kept(decision)
    return Adaptation(
        classes=names,
        decision=decision,
        prior=prior,
        divisor=problem.prior,
        statistics=problem.statistics,
        unstable=unstable,
        standardizer=standardizer,
        cross_fit=fitted if unstable else None,
        settings=settings,
        n_rows=len(problem.stable),
        n_labelled=len(problem.labelled),
        n_features=problem.X.shape[1],
        warnings=notes,
    )


def tell_kept(decision: Decision) -> None:
    """Warn that f_S is the answer, and say why."""
    warn(
        f"The stable predictor was kept: {decision.reason}. settings=Settings('paper') adapts all the same.",
        AdaptationRefused,
    )


def _first_decision(
    amount: Amount, training: Training, refuse: bool, classes: npt.NDArray[Any]
) -> tuple[Decision, tuple[str, ...]]:
    """Whether a head is fitted at all, and what else a user is warned of."""
    doubts = refusals(amount, training.evidence)
    decision = decide(amount, doubts, refuse=refuse)
    notes = notes_on_classes(amount.problem, classes) if decision.kind == "adapted" else []
    if decision.kind == "adapted" and doubts:
        notes.insert(0, f"Adapted although {'; '.join(doubts)}.")
    for note in notes:
        warn(note, AdaptationWarning)
    return decision, tuple(notes)


def _notes_on_head(unstable: UnstableModel) -> tuple[str, ...]:
    """What a head that was stopped too early says of itself; a wrapped classifier says nothing."""
    if getattr(unstable.head, "converged_", True):
        return ()
    note = (
        f"{type(unstable.head).__name__} has not converged after {unstable.head.n_iter_} steps: the unstable "
        "features have less of a say than they should. Give it more steps, or scale the features."
    )
    warn(note, AdaptationWarning)
    return (note,)


def _source_prior(training: Training, settings: Settings, n_classes: int) -> FloatArray | None:
    """The p of w = f_S / p that label shift needs; None lets the rows themselves say it."""
    if settings.transport == "posterior":
        return None
    if training.source_prior is None:
        raise ValueError(
            'transport="likelihood" needs source_prior: pass training=Training(source_prior=...), the class '
            "shares of the rows that stable_proba was calibrated on."
        )
    return as_class_shares(training.source_prior, n_classes, name="source_prior")


def _class_shares(problem: Problem, unstable: UnstableModel) -> FloatArray:
    """Pr[Y] in the new domain: the mean of f_S, or of f_U if the training prior says nothing of it."""
    if problem.given_prior is None:
        return problem.prior
    share = problem.weight / problem.weight.sum()
    return share @ np.exp(unstable.log_proba(problem.X))


def _prepare(X_unstable: Any, weight: Any, settings: Settings) -> tuple[Any, Standardizer | None, Any]:
    """Check the unstable features and standardise them unless a wrapped pipeline does its own.

    The third are the checked ones as they were given, where they were standardised.
    """
    if settings.wraps_head and settings.standardize is not True:
        return as_rows(X_unstable, len(weight)), None, None
    X = check_unstable(X_unstable, n_rows=len(weight))
    if settings.standardize is False:
        return X, None, None
    standardizer = Standardizer.fit(X, weight)
    return standardizer.apply(X), standardizer, X
