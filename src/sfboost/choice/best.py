"""The answer to one target domain: a mixture of few predictors, with what moved and why."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfboost.adaptation import Adaptation
from sfboost.adaptation.settings import Settings
from sfboost.choice.choosing import USERS_WORD, Choice, shifted_side, with_labels
from sfboost.choice.predictors import (
    PooledPredictor,
    RealignedPredictor,
    RelearnedPredictor,
    StablePredictor,
    TargetPredictor,
    relearn,
)
from sfboost.choice.reasons import Reason
from sfboost.choice.recalibrating import put_right
from sfboost.choice.record import SourceRecord
from sfboost.marginal.probabilities import FloatArray, IntArray, log_softmax
from sfboost.shift import Change, DomainData, Shift, change_in
from sfboost.shift.testing import too_few

#: Fewer rows, for each class, teach a predictor nothing.
FEWEST_ROWS = 5
#: Holds a choice to a bound: the choice and the predictor that it names, and the choice that comes of it.
Bound = Callable[[Choice, TargetPredictor], Choice]


@dataclass(frozen=True, eq=False)
class BestAnswer:
    """What was chosen for a target domain.

    Attributes
    ----------
    shift : Shift
        What moved.
    prior : array of shape (K,)
        Class shares that the pooled classifier is moved to: those of training, if nothing asks for others.
    choice : Choice
    answers : mapping of str to TargetPredictor
        Every predictor, fitted to the target rows.
    """

    shift: Shift
    prior: FloatArray
    choice: Choice
    answers: Mapping[str, TargetPredictor]

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
    classes: Any,
    adaptation: Adaptation,
    known: IntArray | None = None,
    doubt: str | None = None,
    bound: Bound | None = None,
) -> BestAnswer:
    """Ask what moved, fit the predictors, and take the one that the evidence asks for.

    `adaptation` is SFB's. `known` has the class positions of labelled rows, −1 elsewhere:
    if there are any, they weigh the predictors and recalibrate them. `doubt` says why f_S is not to be
    trusted, if it is not; `bound` holds a safe answer back.
    """
    change, stable_change = _asked(rows, record)
    relearned = RelearnedPredictor(adaptation)
    answers: dict[str, TargetPredictor] = {"stable": StablePredictor(), "pooled": PooledPredictor()}
    if relearned.learned:
        answers["boosted"] = relearned
    answers |= _realigned(rows, record, change, stable_change)
    side = shifted_side(change, stable_change)
    name, prior = _answer_to(side, change, answers, rows, doubt), record.prior
    # Of so few rows nobody can tell whether their class shares moved or the rows happened to be such; and of
    # one source domain nobody can tell how far they do.
    if name == "pooled" and len(record.reference.domains) > 1 and not too_few(change.n_rows, prior):
        prior = record.shares.here(rows)
        if (prior != record.prior).any():
            answers["shares"], name = PooledPredictor(np.log(prior / record.prior)), "shares"
    moved = None
    if name == "shares":
        moved = tuple(zip(np.asarray(classes).tolist(), record.prior.tolist(), prior.tolist(), strict=True))
    shift = Shift(change, stable_change, side, moved)
    choice = Choice({name: 1.0}, _reason(shift, name, record.pooled_name, doubt))
    if bound is not None:
        choice = bound(choice, answers[name])
    if known is not None and (known >= 0).any():
        # SFB has learned from these labels: it is judged as it would be without them.
        blind = {"boosted": relearn(rows, choices, record.prior, classes)} if "boosted" in answers else {}
        answers, fits, random = put_right(answers, blind, rows, known)
        choice = with_labels(choice, fits, int((known >= 0).sum()), len(known), random)
    return BestAnswer(shift, prior, choice, answers)


def _asked(rows: DomainData, record: SourceRecord) -> tuple[Change, Change | None]:
    """What f_S says of X_U, and a classifier of X_U of X_S, where it can be asked."""
    change = change_in(record.reference, rows, misfit=record.misfit)
    if record.stable_reference is None or rows.log_unstable is None:
        return change, None
    level = change.level / USERS_WORD
    return change, change_in(
        record.stable_reference, rows.swapped(), level=level, misfit=record.stable_misfit
    )


def _reason(shift: Shift, name: str, classifier: str, doubt: str | None) -> Reason:
    """Why this predictor answers, in plain values."""
    change, stable = shift.unstable, shift.stable
    codes = {"class shares": "shares_moved", "nothing": "no_shift", "cannot tell": "cannot_tell"}
    values = {
        "p_value": change.p_value,
        "power": change.power,
        "n_domains": len(change.own),
        "unstable": list(change.changed),
        "weights": {name: 1.0},
        "classifier": classifier,
    }
    if stable is not None:
        values |= {"stable_p_value": stable.p_value, "stable": list(stable.changed)}
    if shift.shares is not None:
        values["shares"] = max(shift.shares, key=lambda share: abs(share[2] - share[1]))
    if doubt is not None:
        values["doubt"] = doubt
    return Reason(codes.get(shift.verdict, f"{shift.verdict}_shifted"), values)


def _realigned(
    rows: DomainData, record: SourceRecord, change: Change, stable_change: Change | None
) -> dict[str, TargetPredictor]:
    """The pooled classifier after the features of a side that shifted were put back."""
    made: dict[str, TargetPredictor] = {}
    if rows.ask is None:
        return made
    if record.feature_model is not None and change.verdict == "changed":
        made["realigned"] = RealignedPredictor(record.feature_model.realign(rows, *change.columns_left))
    shifted = stable_change is not None and stable_change.verdict == "changed"
    if record.stable_model is not None and stable_change is not None and shifted:
        realignment = record.stable_model.realign(rows.swapped(), *stable_change.columns_left)
        made["stable realigned"] = RealignedPredictor(realignment, "stable")
    return made


def _answer_to(
    side: str, change: Change, answers: Mapping[str, TargetPredictor], rows: DomainData, doubt: str | None
) -> str:
    """Which predictor answers a shift of this side, or none."""
    if side != "unstable":
        return "stable realigned" if side == "stable" and "stable realigned" in answers else "pooled"
    # What cannot be trusted to be stable must not teach anything, and a handful of rows has nothing to teach.
    if doubt is not None or change.n_rows < FEWEST_ROWS * rows.log_stable.shape[1]:
        return "stable"
    together = len(change.changed) == len(change.features)
    ranked = ["boosted", "realigned"] if together else ["realigned", "boosted"]
    return next(name for name in [*ranked, "stable"] if name in answers)
