"""`Experience`: what own domains teach about answers. Numbers only, no rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from sfboost.adaptation.scores import Yardstick
from sfboost.adaptation.settings import Settings
from sfboost.answers.mending import Habits
from sfboost.answers.play import AS_IS, USUAL_METRIC, Case, play, settings_of_play
from sfboost.answers.quiet import QuietAnswers
from sfboost.change import DomainData, Reference
from sfboost.change.domain_data import average_unstable
from sfboost.marginal.probabilities import IntArray

#: Domains that are put through changes, at most, and rows of each.
MOST_PLAYED, MOST_ROWS = 8, 1000
# A Brier score within so much of a guess's is no better.
_NO_BETTER = 0.95


@dataclass(frozen=True, eq=False)
class Experience:
    """Made by `StableFeatureBoosting.fit`, part of its `training_`.

    Attributes
    ----------
    reference : Reference
        What the unstable features say in each own domain, blind.
    habits : Habits or None
        How they go with all other features; None if the pooled classifier cannot be asked what it would say.
    cases : tuple of Case
        How every candidate answer did on own domains, as they are and after changes.
    learner : str
        What the pooled classifier is, in words.
    pooled : fitted classifier or None
        Of the centred log f_S and U, where training came as arrays.
    quiet : QuietAnswers or None
        For further answers to rows that nothing happened to.
    """

    reference: Reference
    habits: Habits | None
    cases: tuple[Case, ...]
    learner: str = ""
    pooled: Any = None
    quiet: QuietAnswers | None = None

    @property
    def doubt(self) -> str | None:
        """Why f_S is not to be trusted, if own domains that it was not trained on say so."""
        if not self.reference.misled:
            return None
        return (
            "in your own domains, each left out in turn, it is worse than a guess at random (Brier score "
            f"{self.reference.stable_brier:.2f}, the guess has {self.reference.guess_brier:.2f})"
        )

    @property
    def helpless(self) -> str | None:
        """What own domains say where neither pooled nor stable is better than a guess there; else None.

        It is asked of Brier scores alone: what a guess has in another score depends on the class shares.
        """
        untouched = [case for case in self.cases if case.kind == AS_IS and case.judges]
        if not untouched or untouched[0].metric != "brier" or "pooled" not in untouched[0].loss:
            return None
        guess = self.reference.guess_brier
        stable, pooled = (
            float(np.mean([case.loss[name] for case in untouched])) for name in ("stable", "pooled")
        )
        if min(stable, pooled) < _NO_BETTER * guess:
            return None
        return (
            "In your own domains, each left out in turn, neither all features as trained nor the stable ones "
            f"alone were better than a guess at random (Brier score {pooled:.2f} and {stable:.2f}, the guess "
            f"has {guess:.2f})"
        )

    def yardstick(self, choices: Settings) -> Yardstick:
        """What own domains judged answers by, with the costs of today."""
        by = choices.yardstick(USUAL_METRIC)
        metric = self.cases[0].metric if self.cases else by.metric
        return Yardstick(by.metric if metric == "cost" and by.costs is None else metric, by.costs)

    @classmethod
    def learn(
        cls,
        rows: Sequence[DomainData],
        labels: Sequence[IntArray],
        domains: Sequence[Any],
        choices: Settings,
        *,
        names: Sequence[str] | None = None,
        groups: Sequence[int] | None = None,
        learner: str = "",
        changed: Callable[[Reference], bool] = lambda _: True,
        foretelling: bool = True,
        seed: int = 0,
    ) -> Self:
        """Learn from labelled domains, each seen by predictors that were trained without it.

        They are put through changes if `changed` asks for that, knowing what is usual. Without `foretelling`
        nobody will ask how good an answer is: `Case.surprises` are left out.
        """
        neutral = average_unstable(rows)
        rows = [part.beside(neutral) for part in rows]
        reference = Reference.learn(rows, labels, domains, names, groups)
        can_mend = all(part.ask is not None for part in rows)
        habits = Habits.learn(rows) if can_mend else None
        rng = np.random.default_rng(seed)
        played = np.sort(rng.permutation(len(rows))[:MOST_PLAYED])
        some = [_at_most(rows[i], labels[i], rng) for i in played]
        parts, known = [part for part, _ in some], [y for _, y in some]
        quiet, said = None, None
        if habits is not None:
            settings = settings_of_play(choices, reference)
            quiet = QuietAnswers.learn(rows, labels, habits)
            quiet, said = quiet.played(parts, known, played, habits, settings)
        cases = play(
            parts,
            known,
            [domains[i] for i in played],
            reference,
            habits,
            choices,
            quiet=said,
            changed=changed(reference),
            foretelling=foretelling,
            seed=seed,
        )
        return cls(reference, habits, cases, learner, quiet=quiet)


def _at_most(rows: DomainData, y: IntArray, rng: np.random.Generator) -> tuple[DomainData, IntArray]:
    """Few enough rows to play with."""
    if len(y) <= MOST_ROWS:
        return rows, y
    kept = np.sort(rng.permutation(len(y))[:MOST_ROWS])
    return rows.take(kept), y[kept]
