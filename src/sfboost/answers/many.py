"""The best answer to each of many new domains: chosen as for one, and by what happened in the others.

What is *said* of a domain, "changed" or not, is held over all of them. How its answers are *weighed* goes by
how likely a change is there, given all: how common changes are, and what they do to which feature, is
borrowed. Where domains are too few to say that, each goes by its p-value, as one alone does.

Most domains are like the own ones, and for them the test's moments are all that is worked out. Candidates are
fitted where a meaning may have changed, and there only those that are chosen. Domains that cannot tell by
themselves are asked together: if nothing else is known they get the answer to all of them as one domain.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache, cached_property
from typing import Any, Self

import numpy as np

from sfboost.answers.best import FEWEST_ROWS
from sfboost.answers.candidates import (
    AFTER_CHANGE,
    Answer,
    BoostedAnswer,
    BoostSettings,
    MendedAnswer,
    PooledAnswer,
    StableAnswer,
    after_change,
    believed_loss,
)
from sfboost.answers.choosing import FIRST_DOUBT, LEAST_CHANCE, WORDS, Choice, choose, portfolio, quiet_answer
from sfboost.answers.experience import Experience
from sfboost.answers.mending import Habits
from sfboost.answers.rows import AnswerRows
from sfboost.answers.suspecting import explains
from sfboost.change import Change
from sfboost.change.many import ManyChanges
from sfboost.change.testing import too_few
from sfboost.diagnostics.by_domain import rows_by_domain
from sfboost.marginal.probabilities import FloatArray, IntArray, log_softmax

# Domains that say what is usual where something changed.
_ENOUGH_CHANGED = 10
# Number of all domains that cannot tell by themselves.
_AS_ONE = -2


@dataclass(frozen=True, eq=False)
class ManyAnswers:
    """What was chosen for many domains, by number.

    Attributes
    ----------
    changes : ManyChanges
    decisions : list of str
        Of each domain, as in `Choice`; the last one is of a domain that was not adapted to.
    weights : array of shape (D + 1, C)
        Of the candidates, in the order of `WORDS`; the last row as above.
    fitted : dict of int to dict of str to Answer
        Candidates that were fitted to one domain, by its number.
    without : list of int
        Domains whose changed features could not be learned anew on top of the others.
    available : tuple of str
        Candidates that a domain can have.
    believed : dict of int to float
        What is believed to be at stake in a domain; see `choose`.
    silent : tuple of int
        Domains that cannot tell by themselves whether a meaning changed, if there are several.
    together : ManyAnswers or None
        What was chosen for all of these as one domain, whose number is 0.
    everywhere : list of int
        Domains whose change is put down to all features; see `explains`.
    """

    changes: ManyChanges
    decisions: list[str]
    weights: FloatArray
    fitted: dict[int, dict[str, Answer]]
    without: list[int]
    available: tuple[str, ...]
    believed: dict[int, float] = field(default_factory=dict)
    silent: tuple[int, ...] = ()
    together: ManyAnswers | None = None
    everywhere: list[int] = field(default_factory=list)

    @classmethod
    def choose(
        cls,
        rows: AnswerRows,
        domains: Sequence[IntArray],
        experience: Experience,
        settings: BoostSettings,
        *,
        can_boost: bool,
        doubt: str | None = None,
    ) -> Self:
        """Choose for each of `domains`, positions among the rows.

        `can_boost` says whether heads can be learned, `doubt` why f_S is not trusted.
        """
        reference = experience.reference
        parts = [rows.take(mine) for mine in domains]
        can_mend = experience.habits is not None and rows.log_pooled is not None
        able = {
            "boosted": can_boost,
            **dict.fromkeys(AFTER_CHANGE, can_mend),
            "grafted": can_mend and can_boost,
        }
        available = ("stable", "pooled", *(name for name in able if able[name] and doubt is None))
        changes = ManyChanges.measure(reference, (part.view for part in parts))
        chances, quiet = changes.chances, changes.silent
        together, silent = None, np.flatnonzero(quiet).tolist()
        if len(silent) > 1:
            whole = np.concatenate([domains[number] for number in silent])
            together = cls.choose(rows, [whole], experience, settings, can_boost=can_boost, doubt=doubt)
            if chances is not None and together.changes.verdicts[0] != "changed":
                # What happened elsewhere may have happened here, if there is anything to mend it with.
                few = changes.n_rows < FEWEST_ROWS * len(reference.prior)
                silent = np.flatnonzero(quiet & few).tolist()
        made = cls(
            changes,
            [],
            np.zeros((len(parts) + 1, len(WORDS))),
            {},
            [],
            available,
            silent=() if together is None else tuple(silent),
            together=together,
        )
        # The same for all domains where nothing changed.
        some = replace(changes.change(experience.reference, 0), verdict="unchanged", p_value=1.0)
        usual = choose(some, experience.cases, available)
        doubtful = changes.p_value < FIRST_DOUBT if chances is None else chances.chance > LEAST_CHANCE
        doubtful[list(made.silent)] = False  # they get another answer below
        choices = [
            made._fit(number, part, experience, settings) if doubtful[number] else usual
            for number, part in enumerate(parts)
        ]
        choices.append(portfolio(experience.cases, available))
        made.decisions.extend(choice.decision for choice in choices)
        made.weights[:] = [[choice.weights.get(name, 0.0) for name in WORDS] for choice in choices]
        if together is not None:
            made.weights[silent] = together.weights[0]
            for number in silent:
                made.decisions[number] = together.decisions[0]
        return made

    @cached_property
    def _silent(self) -> frozenset[int]:
        return frozenset(self.silent)

    def _fit(self, number: int, rows: AnswerRows, experience: Experience, settings: BoostSettings) -> Choice:
        """Choose for a domain that may have changed, and fit what is chosen."""
        change, habits = self.change(number, experience), experience.habits
        if not explains(change, experience.reference, habits, rows):
            self.everywhere.append(number)
            change = self.change(number, experience)

        @cache
        def fitted(name: str) -> Answer | None:
            if name in ("stable", "pooled"):
                return StableAnswer() if name == "stable" else PooledAnswer()
            if habits is None or name == "boosted":  # heads of many domains are learned together, later
                return None
            return after_change(name, rows, change, habits, settings)

        by = experience.yardstick(settings.choices)

        def stake(answer: str, other: str) -> float:
            ours, theirs = fitted(answer), fitted(other)
            if ours is not None and theirs is not None:
                self.believed[number] = believed_loss(ours, theirs, rows, by)
            return self.believed.get(number, 0.0)

        choice = self._choice(number, change, experience, stake)
        made = {name: fitted(name) for name in choice.weights if name in AFTER_CHANGE}
        if made.get("grafted", self) is None:
            self.without.append(number)
            choice = self._choice(number, change, experience, stake)
            made = {name: fitted(name) for name in choice.weights if name in AFTER_CHANGE}
        found = {name: answer for name, answer in made.items() if answer is not None}
        if found:
            self.fitted[number] = found
        return choice

    def _saved_state(self) -> dict[str, Any]:
        """What a file keeps: the habits of training once, and not in every domain that was mended."""
        state = {part.name: getattr(self, part.name) for part in fields(self)}
        known = [habits for made in self.fitted.values() for habits in map(_habits_of, made.values())]
        state["habits"] = next((habits for habits in known if habits is not None), None)
        state["fitted"] = _each(self.fitted, None)
        return state

    @classmethod
    def _from_saved_state(cls, state: dict[str, Any]) -> Self:
        habits = state.pop("habits")
        return cls(**state if habits is None else state | {"fitted": _each(state["fitted"], habits)})

    def change(self, number: int, experience: Experience) -> Change:
        """The test in one domain."""
        return self.changes.change(experience.reference, number, everywhere=number in self.everywhere)

    def choice(self, number: int, experience: Experience) -> Choice:
        """Weights of one domain, and why."""
        if self.together is not None and number in self._silent:
            choice = self.together.choice(0, experience)
            why = f"Cannot tell by itself. Of all {self.changes.silent.sum()} domains like that as one: "
            return replace(choice, reason=why + choice.reason)
        return self._choice(number, self.change(number, experience), experience)

    def _choice(
        self,
        number: int,
        change: Change,
        experience: Experience,
        stake: Callable[[str, str], float] | None = None,
    ) -> Choice:
        chances, n_rows = self.changes.chances, int(self.changes.n_rows[number])
        prior = experience.reference.prior
        weighed = chances is not None and n_rows >= FEWEST_ROWS * len(prior)
        if too_few(n_rows, prior) and not weighed:
            # Nothing can be fitted to so few either.
            found = portfolio(experience.cases, ("stable", "pooled"))
            why = f"{n_rows} rows are too few to ask. {found.reason[:-1]}, as on your own domains."
            return replace(found, reason=why)
        known = self.believed.get(number, 0.0)
        available = [name for name in self.available if name != "grafted" or number not in self.without]
        stakes = stake or (lambda answer, other: known)
        chance = None if chances is None else float(chances.chance[number])
        return choose(change, experience.cases, available, experience.learner, stakes, chance)

    @property
    def needs_heads(self) -> IntArray | None:
        """Numbers of the domains that are answered by heads that are learned anew; None if nothing is."""
        asked = self.weights[:, list(WORDS).index("boosted")] > 0.0
        return np.flatnonzero(asked[:-1]) if asked.any() else None

    def heads_beside(self, experience: Experience) -> tuple[IntArray, IntArray]:
        """Numbers of the domains whose heads answer a change, and of those that have probably changed.

        Such heads lean on each other, if they are enough; all others lean on training.
        """
        chances, needed = self.changes.chances, self.needs_heads
        none = np.empty(0, dtype=np.intp)
        among = none if chances is None else np.flatnonzero(chances.chance > 0.5)
        if needed is None or len(among) < _ENOUGH_CHANGED:
            return none, none
        usual = quiet_answer(experience.cases, self.available) == "boosted"
        return np.intersect1d(needed, among) if usual else needed, among

    def log_proba(self, rows: AnswerRows, number: IntArray, boosted: Callable[[], FloatArray]) -> FloatArray:
        """Log-probabilities of rows of numbered domains (−1: none of these), of shape (n, K).

        `boosted` says those of the heads.
        """
        weights = dict(zip(WORDS, self.weights[number].T, strict=True))
        mixed = weights["stable"][:, None] * rows.view.log_stable
        mixed += weights["pooled"][:, None] * rows.view.log_pooled
        if weights["boosted"].any():
            mixed += weights["boosted"][:, None] * boosted()
        fitted = self.fitted
        if self.together is not None:
            number = np.where(np.isin(number, self.silent), _AS_ONE, number)
            fitted = fitted | {_AS_ONE: self.together.fitted.get(0, {})}
        by_name: dict[str, list[tuple[IntArray, Answer]]] = {}
        for one, mine in rows_by_domain(number):
            for name, answer in fitted.get(one, {}).items():
                by_name.setdefault(name, []).append((mine, answer))
        for name, parts in by_name.items():
            answered = np.concatenate([mine for mine, _ in parts])
            said = _each_its_own(rows, parts)
            mixed[answered] += weights[name][answered, None] * said
        return log_softmax(mixed)


def _each_its_own(rows: AnswerRows, parts: list[tuple[IntArray, Answer]]) -> FloatArray:
    """What answers say of some rows each, one after the other; of all that is mended pooled is asked once."""
    mended = [answer for _, answer in parts if isinstance(answer, MendedAnswer)]
    if len(mended) < len(parts):
        return np.concatenate([answer.log_proba(rows.take(mine)) for mine, answer in parts])
    put_back = [one.mending.apply(rows.take(mine).view) for (mine, _), one in zip(parts, mended, strict=True)]
    every = rows.take(np.concatenate([mine for mine, _ in parts]))
    return every.with_unstable(np.concatenate(put_back)).view.log_pooled


def _habits_of(answer: Any) -> Habits | None:
    """The habits in an answer, or in what it is on top of."""
    if isinstance(answer, MendedAnswer):
        return answer.mending.habits
    return _habits_of(answer.base) if isinstance(answer, BoostedAnswer) else None


def _each(fitted: dict[int, dict[str, Answer]], habits: Any) -> dict[int, dict[str, Answer]]:
    """The same answers with these habits."""

    def put(answer: Any) -> Any:
        if isinstance(answer, MendedAnswer):
            return replace(answer, mending=replace(answer.mending, habits=habits))
        return replace(answer, base=put(answer.base)) if isinstance(answer, BoostedAnswer) else answer

    return {number: {name: put(one) for name, one in made.items()} for number, made in fitted.items()}
