"""Fitting f_U in the new domain: the corrections, the likelihood, and EM rounds.

Guarantee (tested): with the logistic head, whose refit does not lower its own penalised objective, the
penalised likelihood never falls from the first fitted head on. The step from a clipped post-hoc f_U to
the first refitted head may lower it, and a wrapped classifier promises nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sfboost.adaptation.problem import Problem
from sfboost.adaptation.row_sample import draw_rows
from sfboost.adaptation.settings import Settings
from sfboost.calibration import Temperature, fit_temperature
from sfboost.heads import SoftLabelMixin, SoftLogisticRegression
from sfboost.heads.linear import NARROW, LinearFit
from sfboost.heads.objectives import (
    CrossEntropy,
    LogLikelihood,
    log_proba_from_logits,
)
from sfboost.heads.whitening import Whitening
from sfboost.marginal import (
    correct_posthoc,
    floored_log,
    make_pseudo_labels,
    posterior,
    pseudo_label_confusion,
)
from sfboost.marginal.probabilities import FloatArray

#: Rows on which the likelihood is maximised first when there are many more.
START_ROWS = 20_000
#: Largest entry of the gradient where ℓ is said to be at its maximum: within 1e-6 in probability.
FINE = 1e-8
# A start needs fewer digits than what is fitted from it.
_START_TOLERANCE = 1e-3


@dataclass(frozen=True, eq=False)
class UnstableModel:
    """f_U: a fitted head, and the correction still to be applied to its output (or None).

    Attributes
    ----------
    confusion : array of shape (K, K) or None
        If given, the head estimates Pr[Ŷ | X_U] and the post-hoc correction turns it into Pr[Y | X_U].
    temperature : Temperature or None
        Of the head against its pseudo-labels ("CU").
    history : tuple of float
        Mean ℓ after each round of pseudo-labelling; empty if every label was known.
    """

    head: SoftLabelMixin
    confusion: FloatArray | None = None
    temperature: Temperature | None = None
    history: tuple[float, ...] = ()

    def log_proba(self, X: Any) -> FloatArray:
        """Log f_U, finite, for standardised rows."""
        return self.corrected(self.log_head(X))

    def corrected(self, log_head: FloatArray) -> FloatArray:
        """Log f_U of what the head says."""
        if self.confusion is None:
            return log_head
        return floored_log(correct_posthoc(np.exp(log_head), self.confusion))

    @property
    def linear_fit(self) -> LinearFit | None:
        """The parameters of our logistic head, to start another fit from."""
        return self.head.linear_fit_ if isinstance(self.head, SoftLogisticRegression) else None

    def log_head(self, X: Any) -> FloatArray:
        """Log-probabilities of the head before the post-hoc correction."""
        if isinstance(self.head, SoftLogisticRegression):
            log_head = log_proba_from_logits(self.head.logits_of(X))
        else:
            log_head = self.head.predict_log_proba(X)
        return log_head if self.temperature is None else self.temperature.apply(log_head)


def fit_unstable(
    problem: Problem,
    settings: Settings,
    l2: float | None,
    *,
    start: LinearFit | None = None,
    tol: float = FINE,
    whitening: Whitening | None = None,
) -> UnstableModel:
    """Fit f_U as `settings` say; `start`, `tol` and `whitening` are for our logistic head.

    Stable predictions of the new rows stand in for their labels; that they are wrong in a known way is put
    right after the fit ("posthoc") or by the likelihood of both.

    References
    ----------
    .. [1] C. Eastwood et al. (2023). Spuriosity Didn't Kill the Classifier: Using Invariant Predictions
       to Harness Spurious Features. NeurIPS 36. Algorithms 1 and 2.
    .. [2] A. P. Dempster, N. M. Laird and D. B. Rubin (1977). Maximum Likelihood from Incomplete Data
       via the EM Algorithm. Journal of the Royal Statistical Society B 39.
    """
    if problem.all_labelled:
        labels = problem.fix_labels(problem.stable, np.eye(problem.n_classes))
        head = settings.make_head(l2, tol)
        if isinstance(head, SoftLogisticRegression):
            share = problem.weight / problem.weight.sum()
            return UnstableModel(head.fit_objective(problem.X, CrossEntropy(labels, share), start, whitening))
        return UnstableModel(head.fit_soft(problem.X, labels, problem.weight))
    if settings.direct:
        return _maximise_likelihood(problem, settings, l2, start, tol, whitening)
    model = _with_history(_first_round(problem, settings, l2), problem)
    for _ in range((settings.rounds or 1) - 1):
        model = _em_round(model, problem, settings, l2)
    return model


def _with_history(model: UnstableModel, problem: Problem, before: tuple[float, ...] = ()) -> UnstableModel:
    value = problem.mean_log_likelihood(model.log_proba(problem.X))
    return UnstableModel(model.head, model.confusion, model.temperature, (*before, value))


def _first_round(problem: Problem, settings: Settings, l2: float | None) -> UnstableModel:
    """One fit to pseudo-labels, corrected by name; EM starts from the post-hoc correction."""
    pseudo = make_pseudo_labels(problem.stable, settings.pseudo_labels, settings.random_state)
    confusion = pseudo_label_confusion(pseudo, problem.stable, problem.weight)
    head = settings.make_head(l2)
    if settings.correction == "none":
        targets = problem.fix_labels(pseudo, np.eye(problem.n_classes))
        head.fit_soft(problem.X, targets, problem.weight)
        return UnstableModel(head, None, _temperature(head, problem, targets, settings))
    # The expected pseudo-label of a row that is known to be y is column y of ε.
    targets = problem.fix_labels(pseudo, confusion.T)
    head.fit_soft(problem.X, targets, problem.weight)
    return UnstableModel(head, confusion, _temperature(head, problem, targets, settings))


def _temperature(
    head: SoftLabelMixin, problem: Problem, targets: FloatArray, settings: Settings
) -> Temperature | None:
    """Scale the head against its (soft) pseudo-labels, by ECE: the paper's "CU"."""
    if not settings.calibrate_unstable:
        return None
    n_rows, n_classes = targets.shape
    log_head = np.tile(head.predict_log_proba(problem.X), (n_classes, 1))
    labels = np.repeat(np.arange(n_classes), n_rows)
    weight = np.maximum(targets, 0.0).T.ravel() * np.tile(problem.weight, n_classes)
    return fit_temperature(log_head, labels, criterion="ece", sample_weight=weight)


def _maximise_likelihood(
    problem: Problem,
    settings: Settings,
    l2: float | None,
    start: LinearFit | None,
    tol: float,
    whitening: Whitening | None,
) -> UnstableModel:
    """Maximise ℓ directly. It is not concave in the parameters, so the start is fixed: the soft-label head.

    With many rows the start is the same maximum on some of them: it costs little and is very close.
    """
    head = settings.make_head(l2, tol)
    assert isinstance(head, SoftLogisticRegression)  # settings refuse any other
    share = problem.weight / problem.weight.sum()
    if whitening is None and problem.X.shape[1] > NARROW:  # once for the start and what follows
        whitening = Whitening.of(problem.X, problem.weight)
    if problem.centre is not None:
        return _maximise_around(problem, problem.centre, head, start, whitening)
    if start is None and len(problem.stable) > 2 * START_ROWS:
        some = draw_rows(problem.keys, START_ROWS, settings.random_state)
        start = _maximise_likelihood(problem.take(some), settings, l2, None, tol, whitening).linear_fit
    elif start is None:
        start = _soft_start(problem, settings, l2, tol, whitening)
    head.fit_objective(problem.X, LogLikelihood(problem.class_evidence, share), start, whitening)
    # The objective is −ℓ plus the penalty: no second pass over the rows is needed.
    return UnstableModel(head, history=(_penalty(head.linear_fit_, head.l2) - head.objective_,))


def _penalty(fit: LinearFit, l2: float) -> float:
    return 0.5 * l2 * float(np.vdot(fit.coef, fit.coef))


def _maximise_around(
    problem: Problem,
    centre: FloatArray,
    head: SoftLogisticRegression,
    start: LinearFit | None,
    whitening: Whitening | None,
) -> UnstableModel:
    """Maximise ℓ with a penalty on what the head differs by from `centre`, whose logits are given weights."""
    share = problem.weight / problem.weight.sum()
    given = log_proba_from_logits(np.asarray(problem.X @ centre[:, :-1].T) + centre[:, -1])
    if start is not None:
        start = replace(start, coef=start.coef - centre[:, :-1].T, intercept=start.intercept - centre[:, -1])
    head.fit_objective(
        problem.X, LogLikelihood(problem.class_evidence + given, share, given), start, whitening
    )
    moved = head.linear_fit_
    value = _penalty(moved, head.l2) - moved.value
    head.take(replace(moved, coef=moved.coef + centre[:, :-1].T, intercept=moved.intercept + centre[:, -1]))
    return UnstableModel(head, history=(value,))


def _soft_start(
    problem: Problem, settings: Settings, l2: float | None, tol: float, whitening: Whitening | None
) -> LinearFit:
    """The head that fits the pseudo-labels as they are; its arrays are gone before the likelihood's come."""
    share = problem.weight / problem.weight.sum()
    soft = CrossEntropy(problem.fix_labels(problem.stable, np.eye(problem.n_classes)), share)
    head = settings.make_head(l2, max(tol, _START_TOLERANCE))
    assert isinstance(head, SoftLogisticRegression)  # settings refuse any other
    return head.fit_objective(problem.X, soft, whitening=whitening).linear_fit_


def _em_round(model: UnstableModel, problem: Problem, settings: Settings, l2: float | None) -> UnstableModel:
    """E-step: joint posterior with the prior fixed. M-step: refit the head to it."""
    joint = posterior(model.log_proba(problem.X), problem.class_evidence)
    head = settings.make_head(l2).fit_soft(problem.X, joint, problem.weight)
    return _with_history(UnstableModel(head), problem, model.history)
