"""The answer to one target domain: a mixture of few predictors, with what moved and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfboost.adaptation import Adaptation
from sfboost.adaptation.settings import Settings
from sfboost.choice.choosing import USERS_WORD, Choice, reason_of, shifted_side, with_labels
from sfboost.choice.predictors import (
    PooledPredictor,
    RealignedPredictor,
    RelearnedPredictor,
    StablePredictor,
    TargetPredictor,
    relearn,
)
from sfboost.choice.recalibrating import put_right
from sfboost.choice.record import SourceRecord
from sfboost.marginal.probabilities import FloatArray, IntArray, log_softmax
from sfboost.shift import Change, DomainData, change_in
from sfboost.shift.testing import too_few

#: Fewer rows, for each class, teach a predictor nothing.
FEWEST_ROWS = 5


@dataclass(frozen=True, eq=False)
class BestAnswer:
    """What was chosen for a target domain.

    Attributes
    ----------
    change : Change
        Of the unstable features.
    stable_change : Change or None
        Of the stable ones; None where nobody can ask them.
    shares : array of shape (K,)
        Class shares that the pooled classifier is moved to: those of training, if nothing asks for others.
    choice : Choice
    answers : mapping of str to TargetPredictor
        Every predictor, fitted to the target rows.
    """

    change: Change
    stable_change: Change | None
    shares: FloatArray
    choice: Choice
    answers: Mapping[str, TargetPredictor]

    @property
    def shares_moved(self) -> bool:
        """Whether the pooled classifier is moved to other class shares."""
        return "shares" in self.answers

    @property
    def as_in_training(self) -> bool:
        """Whether nothing is taken to have shifted: then source domains tell how good the answer is."""
        return set(self.choice.weights) <= {"pooled"}

    def log_proba(self, rows: DomainData) -> FloatArray:
        """The mixture, in log space, of shape (n, K)."""
        weights = self.choice.weights
        mixed = sum(weight * self.answers[name].log_proba(rows) for name, weight in weights.items())
        return log_softmax(np.asarray(mixed))

    def every_answer(self, rows: DomainData) -> dict[str, FloatArray]:
        """Probabilities of each predictor for these rows."""
        return {name: np.exp(answer.log_proba(rows)) for name, answer in self.answers.items()}


def best_answer(
    rows: DomainData,
    record: SourceRecord,
    choices: Settings,
    classes: Any = None,
    adaptation: Adaptation | None = None,
    known: IntArray | None = None,
    doubt: str | None = None,
) -> BestAnswer:
    """Ask what moved, fit the predictors, and weigh them by the evidence.

    `adaptation` is SFB's, if it is at hand. `known` has the class positions of labelled rows, −1 elsewhere:
    if there are any, they weigh the predictors and recalibrate them. `doubt` says why f_S is not to be
    trusted, if it is not.
    """
    change = change_in(record.reference, rows, misfit=record.misfit)
    stable_change = None
    if record.stable_reference is not None and rows.log_unstable is not None:
        level = change.level / USERS_WORD
        stable_change = change_in(
            record.stable_reference, rows.swapped(), level=level, misfit=record.stable_misfit
        )
    relearned = (
        relearn(rows, choices, record.prior, classes)
        if adaptation is None
        else RelearnedPredictor(adaptation)
    )
    answers: dict[str, TargetPredictor] = {"stable": StablePredictor(), "pooled": PooledPredictor()}
    if relearned.learned:
        answers["boosted"] = relearned
    answers |= _realigned(rows, record, change, stable_change)
    named = _answers_to(change, stable_change, answers, rows, doubt)
    weights, shares = {named[shifted_side(change, stable_change)]: 1.0}, record.prior
    # Of so few rows nobody can tell whether their class shares moved or the rows happened to be such.
    if weights == {"pooled": 1.0} and not too_few(change.n_rows, record.prior):
        shares = record.shares.here(rows)
        if (shares != record.prior).any():
            answers["shares"], weights = PooledPredictor(np.log(shares / record.prior)), {"shares": 1.0}
    reason, found = reason_of(
        change, stable_change, weights, _told(shares, record.prior, classes), record.pooled_name
    )
    if doubt is not None:
        but = f" But f_S is not shown to be stable, so that a shift may be hidden or imagined: {doubt}."
        reason, found = reason + but, found + but
    choice = Choice(weights, reason, found)
    if known is None or not (known >= 0).any():
        return BestAnswer(change, stable_change, shares, choice, answers)
    # SFB has learned from these labels: it is judged as it would be without them.
    blind = {"boosted": relearn(rows, choices, record.prior, classes)} if "boosted" in answers else {}
    answers, fits, random = put_right(answers, blind, rows, known)
    choice = with_labels(choice, fits, int((known >= 0).sum()), len(known), random)
    return BestAnswer(change, stable_change, shares, choice, answers)


def _realigned(
    rows: DomainData, record: SourceRecord, change: Change, stable_change: Change | None
) -> dict[str, TargetPredictor]:
    """The pooled classifier after the features of a side that shifted were put back."""
    made: dict[str, TargetPredictor] = {}
    if record.feature_model is not None and rows.ask is not None and change.verdict == "changed":
        made["realigned"] = RealignedPredictor(record.feature_model.realign(rows, *change.columns_left()))
    shifted = stable_change is not None and stable_change.verdict == "changed"
    if shifted and record.stable_model is not None and rows.ask is not None:
        realignment = record.stable_model.realign(rows.swapped(), *stable_change.columns_left())  # type: ignore[union-attr]
        made["stable realigned"] = RealignedPredictor(realignment, "stable")
    return made


def _answers_to(
    change: Change,
    stable_change: Change | None,
    answers: Mapping[str, TargetPredictor],
    rows: DomainData,
    doubt: str | None,
) -> dict[str, str]:
    """Which predictor answers a shift of each side, and none."""
    few = change.n_rows < FEWEST_ROWS * rows.log_stable.shape[1]
    together = _together(change)
    # What cannot be trusted to be stable must not teach anything, and a handful of rows has nothing to teach.
    ranked = ["stable"] if doubt is not None or few else ["realigned", "boosted", "stable"]
    ranked = ["boosted", *ranked] if together and ranked[0] != "stable" else ranked
    named = {
        "nothing": "pooled",
        "stable": "pooled",
        "unstable": next(name for name in ranked if name in answers),
    }
    if "stable realigned" in answers:
        named["stable"] = "stable realigned"
    return named


def _together(change: Change | None) -> bool:
    """Whether every feature shifted."""
    return change is not None and len(change.changed) == len(change.features)


def _told(shares: FloatArray, prior: FloatArray, classes: Any) -> str:
    """How far class shares moved, in words."""
    if (shares == prior).all():
        return ""
    most = int(np.abs(shares - prior).argmax())
    name = most if classes is None else classes[most]
    return (
        f" The class shares moved: {name} from {100 * prior[most]:.0f} % in training to about "
        f"{100 * shares[most]:.0f} % here."
    )
