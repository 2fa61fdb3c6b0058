"""`sfboost.adapt`: arrays from any model, behind the checks that the new rows alone allow."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sfboost.adaptation import Adaptation, AdaptationWarning, Settings, Training
from sfboost.adaptation.checks import check_unstable, check_weight
from sfboost.adaptation.engine import adapt_rows, keep_stable
from sfboost.adaptation.guard import Guard, judge, usual_leak
from sfboost.adaptation.problem import Problem
from sfboost.adaptation.row_sample import RowSketch
from sfboost.adaptation.settings import resolve
from sfboost.boosting.diagnosing import most_judged, rows_to_judge, with_note
from sfboost.diagnostics import new_domain_alarm
from sfboost.marginal import as_probability_matrix
from sfboost.notices import warn

# A leak is small, where none was measured, up to so many times the one that is assumed; settled on tables of
# the shift suite.
_SMALL = 1.25
NOT_CHECKED = (
    "Not checked, since no training domains are known: whether the assumptions failed there already, and "
    "whether a meaning changed (sfboost.learn_training makes `training`)"
)


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
        What is known from labelled domains: of `sfboost.learn_training`, the `training_` of a fitted
        `StableFeatureBoosting`, or your own, such as ``Training(leak=0.05)``. Without it nobody knows whether
        the assumptions failed in training already: `decision.reason` says so, and a gain that a small leak
        would undo is warned of.
    transport : {"posterior", "likelihood"}
        What transports from training: P(Y | X_S), the paper, or P(X_S | Y), label shift, where the class
        shares of the new domain are estimated too.
    answer : {"checked", "safe", "paper"}
        "checked" combines f_S with f_U as it was learned, and keeps f_S where the rows are too few for that,
        f_S is not shown to be informative, or the rows contradict the assumptions
        (`sfboost.diagnostics.new_domain_alarm`). "safe" also guards: it keeps f_S unless the estimated gain
        of f_U is beyond sampling error and beyond what a leak of `training.leak` can do; where no leak is
        known, one of a fifth of the spread of f_S within classes. "paper" never keeps
        f_S: what the others refuse is a warning.
    settings : Settings, optional
        How f_U is fitted.
    uncertainty : bool
        Also compute standard errors; see `Adaptation.uncertainty`. Its accuracies believe the assumptions,
        and are withheld where the rows contradict them (answer="paper" does not ask).
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
        If answer="paper" adapts where it would be kept, a class cannot be learned, or no training domains are
        known and a small leak would undo the gain.

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
    known = Training() if training is None else training
    choices = resolve(settings, transport=transport, random_state=random_state)
    alarm = None
    if answer != "paper":
        stable = as_probability_matrix(stable_proba)
        if not choices.wraps_head:
            check_unstable(X_unstable, n_rows=len(stable))  # before the alarm looks at it
        rows = rows_to_judge(stable, X_unstable, sample_weight, choices, known)
        del stable  # a copy is kept by who adapts, and one is enough
        alarm = new_domain_alarm(rows, random_state)
        del rows
    found = adapt_rows(
        stable_proba,
        X_unstable,
        choices,
        y=y,
        classes=classes,
        sample_weight=sample_weight,
        training=known,
        answer=answer,
        uncertainty=uncertainty,
        alarm=alarm,
    )
    if found.n_labelled == found.n_rows:
        return found  # nothing was assumed
    if answer == "checked" and alarm is not None and found.unstable is not None:
        found = keep_stable(found, alarm)
    if answer == "paper" or known.leak is not None:
        return found
    if found.unstable is not None:
        guard = found.guard or _without_sampling_error(found, stable_proba, X_unstable, sample_weight)
        if guard.break_even < _SMALL * guard.leak:
            warn(
                f"The estimated gain of {guard.yardstick.told(guard.gain)} would be undone by a leak of "
                f"{guard.break_even:.3f}: if X_U follows f_S by more within a class, adapting makes "
                f"answers worse. {NOT_CHECKED}.",
                AdaptationWarning,
            )
    return with_note(found, NOT_CHECKED)


def _without_sampling_error(
    found: Adaptation, stable_proba: Any, X_unstable: Any, sample_weight: Any
) -> Guard:
    """What a usual leak would do to the gain; that the rows are enough is known by now."""
    assert found.unstable is not None
    stable = as_probability_matrix(stable_proba)
    most = most_judged(stable.shape[1])
    problem = Problem.unlabelled(stable, found._check(X_unstable, len(stable)), found.divisor)
    problem = replace(problem, weight=check_weight(sample_weight, len(stable)))
    if len(stable) > most:
        problem = problem.take(RowSketch.of(problem.keys, most).draw(most))
    return judge(
        problem,
        found.unstable,
        usual_leak(found.statistics),
        prior=found.prior,
        confusion=found.confusion,
        covariance=None,
        yardstick=found.settings.yardstick("accuracy"),
    )
