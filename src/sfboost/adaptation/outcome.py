"""What is decided before a head is fitted, and what becomes of it after; for rows and for sums alike."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy.typing as npt

from sfboost.adaptation.adaptation import Adaptation
from sfboost.adaptation.decision import (
    AdaptationRefused,
    AdaptationWarning,
    Amount,
    Decision,
    decide,
    notes_on_classes,
    refusals,
)
from sfboost.adaptation.fitting import UnstableModel
from sfboost.adaptation.guard import Guard
from sfboost.adaptation.regularisation import CrossFit
from sfboost.adaptation.settings import Choices
from sfboost.adaptation.standardize import Standardizer
from sfboost.adaptation.training import Training
from sfboost.adaptation.uncertainty import Uncertainty
from sfboost.marginal.probabilities import FloatArray
from sfboost.notices import warn


@dataclass(frozen=True, eq=False)
class Learned:
    """What was learned of the new rows.

    Attributes
    ----------
    unstable : UnstableModel
    prior : array of shape (K,)
        Class shares of the new domain.
    cross_fit : CrossFit or None
    guard : Guard or None
    """

    unstable: UnstableModel
    prior: FloatArray
    cross_fit: CrossFit | None = None
    guard: Guard | None = None


def first_decision(
    amount: Amount, training: Training, answer: str, classes: npt.NDArray[Any]
) -> tuple[Decision, tuple[str, ...]]:
    """Whether a head is fitted at all, and what else a user is warned of."""
    doubts = refusals(amount, training.evidence)
    decision = decide(amount, doubts, refuse=answer != "paper")
    notes = notes_on_classes(amount, classes) if decision.kind == "adapted" else []
    if decision.kind == "adapted" and doubts:
        notes.insert(0, f"Adapted although {'; '.join(doubts)}.")
    for note in notes:
        warn(note, AdaptationWarning)
    return decision, tuple(notes)


def conclude(
    decision: Decision,
    learned: Learned | None,
    amount: Amount,
    *,
    alarm: str | None,
    classes: npt.NDArray[Any],
    standardizer: Standardizer | None,
    settings: Choices,
    n_labelled: int,
    warnings: tuple[str, ...],
    errors: Callable[[UnstableModel | None], Uncertainty | None],
) -> Adaptation:
    """The adaptation; a guard, or the alarm of a guarded answer, may keep the stable predictor after all.

    `errors` gives the standard errors of what is used.
    """
    guard = None if learned is None else learned.guard
    unstable = None if learned is None else learned.unstable
    withheld = None
    if guard is not None:
        decision = Decision("kept stable", alarm) if alarm else guard.decision(decision.reason)
    if decision.kind == "kept stable":
        unstable, withheld = None, unstable
        _tell_kept(decision)
    return Adaptation(
        classes=classes,
        decision=decision,
        prior=amount.prior if learned is None else learned.prior,
        divisor=amount.prior,
        statistics=amount.statistics,
        unstable=unstable,
        standardizer=standardizer,
        cross_fit=None if learned is None else learned.cross_fit,
        settings=settings,
        n_rows=amount.n_rows,
        n_labelled=n_labelled,
        n_features=amount.n_features,
        warnings=warnings,
        guard=guard,
        withheld=withheld,
        uncertainty=errors(unstable),
    )


def keep_stable(adaptation: Adaptation, reason: str) -> Adaptation:
    """The same with f_U withheld, for a reason that was found later."""
    decision = Decision("kept stable", reason)
    _tell_kept(decision)
    return replace(adaptation, decision=decision, unstable=None, withheld=adaptation.unstable)


def _tell_kept(decision: Decision) -> None:
    warn(
        f"The stable predictor was kept: {decision.reason}. Pass answer='paper' to adapt all the same.",
        AdaptationRefused,
    )
