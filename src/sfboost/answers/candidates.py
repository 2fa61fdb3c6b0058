"""The candidate answers: each a small frozen predictor of rows. Those to a change are in `AFTER_CHANGE`."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from sfboost.adaptation import Adaptation, AdaptationWarning, Training
from sfboost.adaptation.engine import adapt_rows
from sfboost.adaptation.scores import Yardstick
from sfboost.adaptation.settings import Settings
from sfboost.answers.mending import Habits, Mending
from sfboost.change import Change, DomainData
from sfboost.heads import SoftLogisticRegression
from sfboost.marginal.probabilities import FloatArray


class Answer(Protocol):
    """Fitted to one new domain; says log-probabilities of any of its rows."""

    def log_proba(self, rows: DomainData) -> FloatArray:
        """Log-probabilities, of shape (n, K)."""
        ...


#: Answers to a change, which are fitted to the rows of one domain.
AFTER_CHANGE = ("mended", "dropped", "grafted")


@dataclass(frozen=True, eq=False)
class StableAnswer:
    """The stable predictor alone."""

    def log_proba(self, rows: DomainData) -> FloatArray:
        """Log f_S."""
        return rows.log_stable


@dataclass(frozen=True, eq=False)
class PooledAnswer:
    """All features as trained."""

    def log_proba(self, rows: DomainData) -> FloatArray:
        """What the pooled classifier says."""
        return rows.log_pooled


@dataclass(frozen=True, eq=False)
class MendedAnswer:
    """All features as trained, after the changed ones were put back, or dropped."""

    mending: Mending

    def log_proba(self, rows: DomainData) -> FloatArray:
        """What the pooled classifier says of mended rows."""
        return rows.with_unstable(self.mending.apply(rows)).log_pooled


@dataclass(frozen=True, eq=False)
class BoostSettings:
    """How SFB is run: its choices, the names of the classes, and their shares in training.

    With `always` it is run however few the rows are: who has labels can see what that is worth.
    """

    choices: Settings
    source_prior: FloatArray
    classes: Any = None
    always: bool = False


@dataclass(frozen=True, eq=False)
class BoostedAnswer:
    """SFB: what the unstable features mean is learned anew, from f_S or from another answer in its place.

    Attributes
    ----------
    base : Answer
        What takes the place of f_S.
    adaptation : Adaptation
    columns : tuple of int or None
        Unstable columns that are learned anew; None is all of them.
    """

    base: Any
    adaptation: Adaptation
    columns: tuple[int, ...] | None = None

    @property
    def learned(self) -> bool:
        """Whether there was enough to learn from."""
        return self.adaptation.decision.kind == "adapted"

    def log_proba(self, rows: DomainData) -> FloatArray:
        """Log f + log f_U − log p."""
        unstable = rows.as_given if self.columns is None else rows.unstable[:, list(self.columns)]
        return self.adaptation.predict_log_proba(np.exp(self.base.log_proba(rows)), unstable)


def boost(
    base: Answer, rows: DomainData, settings: BoostSettings, columns: tuple[int, ...] | None = None
) -> BoostedAnswer:
    """Learn the unstable features anew, on top of another answer."""
    choices = settings.choices
    if columns is not None and choices.wraps_head:
        # A head that the user brought along may read all columns, or other types than numbers.
        choices = replace(choices, head=None, rounds=None)
    unstable = rows.as_given if columns is None else rows.unstable[:, list(columns)]
    with warnings.catch_warnings():
        # What could not be learned is in its decision; this is one candidate of several.
        warnings.simplefilter("ignore", AdaptationWarning)
        adaptation = adapt_rows(
            np.exp(base.log_proba(rows)),
            unstable,
            choices,
            y=None,
            classes=settings.classes,
            sample_weight=rows.weight * len(rows.weight),
            training=Training(source_prior=settings.source_prior),
            answer="paper" if settings.always else "checked",
            uncertainty=False,
        )
    return BoostedAnswer(base, adaptation, columns)


def believed_loss(answer: Answer, other: Answer, rows: DomainData, by: Yardstick) -> float:
    """How much worse one answer believes another to be on these rows."""
    ours, theirs = (np.exp(one.log_proba(rows)) for one in (answer, other))
    return by.gain(theirs, ours, ours, rows.weight)


def fit_candidates(
    rows: DomainData,
    change: Change,
    habits: Habits | None,
    settings: BoostSettings,
    adaptation: Adaptation | None = None,
) -> Mapping[str, Answer]:
    """Every answer that can be given to these rows. `adaptation` is that of f_S, if it is at hand."""
    made: dict[str, Answer] = {"stable": StableAnswer(), "pooled": PooledAnswer()}
    base = StableAnswer()
    boosted = boost(base, rows, settings) if adaptation is None else BoostedAnswer(base, adaptation)
    if boosted.learned:
        made["boosted"] = boosted
    if habits is None or rows.ask is None:
        return made
    after = {
        name: after_change(name, rows, change, habits, with_penalty(settings, boosted))
        for name in AFTER_CHANGE
    }
    return made | {name: answer for name, answer in after.items() if answer is not None}


def after_change(
    name: str, rows: DomainData, change: Change, habits: Habits, settings: BoostSettings
) -> Answer | None:
    """One of `AFTER_CHANGE`, fitted to these rows; None if nothing can be learned for it."""
    if name == "mended":
        return MendedAnswer(habits.mend(rows, *change.columns_left()))
    columns, _ = change.columns_left(change.suspects)
    dropped = MendedAnswer(habits.mend(rows, columns, [0.0] * len(columns)))
    if name == "dropped":
        return dropped
    if len(columns) == rows.unstable.shape[1]:
        return None  # there are no others
    grafted = boost(dropped, rows, settings, tuple(columns))
    return grafted if grafted.learned else None


def with_penalty(settings: BoostSettings, boosted: BoostedAnswer) -> BoostSettings:
    """The same with the penalty that was found before, if one was: of the same rows it is about the same."""
    found = boosted.adaptation.cross_fit
    if settings.choices.head is not None or found is None:
        return settings
    head = SoftLogisticRegression(l2=found.l2)
    return replace(settings, choices=replace(settings.choices, l2="auto", head=head))
