"""The best answer to one new domain: a mixture of few candidates, with its reason."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from sfboost.adaptation import Adaptation
from sfboost.answers.candidates import Answer, BoostSettings, believed_loss, boost, fit_candidates
from sfboost.answers.choosing import ALSO_QUIET, Choice, choose, quiet_answer, with_labels
from sfboost.answers.experience import Experience
from sfboost.answers.recalibrating import put_right
from sfboost.answers.suspecting import change_of_rows
from sfboost.change import Change, DomainData
from sfboost.marginal.probabilities import FloatArray, IntArray, log_softmax

#: Fewer rows, for each class, teach an answer nothing: put back to their mean, features may say the opposite.
FEWEST_ROWS = 5


@dataclass(frozen=True, eq=False)
class BestAnswer:
    """What was chosen for a new domain.

    Attributes
    ----------
    change : Change
    choice : Choice
    answers : mapping of str to Answer
        Every candidate, fitted to the new rows.
    """

    change: Change
    choice: Choice
    answers: Mapping[str, Answer]

    def log_proba(self, rows: DomainData) -> FloatArray:
        """The mixture, in log space, of shape (n, K)."""
        weights = self.choice.weights
        mixed = sum(weight * self.answers[name].log_proba(rows) for name, weight in weights.items())
        return log_softmax(np.asarray(mixed))

    def every_answer(self, rows: DomainData) -> dict[str, FloatArray]:
        """Probabilities of each candidate for these rows."""
        return {name: np.exp(answer.log_proba(rows)) for name, answer in self.answers.items()}


def best_answer(
    rows: DomainData,
    experience: Experience,
    settings: BoostSettings,
    adaptation: Adaptation | None = None,
    known: IntArray | None = None,
    doubt: str | None = None,
) -> BestAnswer:
    """Test the new rows for a change, fit the candidates, and weigh them by what own domains teach.

    `adaptation` is SFB's, if it is at hand. `known` has the class positions of labelled rows, −1 elsewhere:
    if there are any, they weigh the candidates and put them right. `doubt` says why f_S is not to be
    trusted, if it is not.
    """
    change = change_of_rows(experience.reference, experience.habits, rows)
    answers = dict(fit_candidates(rows, change, experience.habits, settings, adaptation))
    quiet = quiet_answer(experience.cases, [*answers, *ALSO_QUIET])
    if quiet in ALSO_QUIET and experience.quiet is not None and experience.habits is not None:
        answers[quiet] = experience.quiet.answer(quiet, rows, experience.habits, settings)
    # What cannot be trusted to be stable must not teach anything, and a handful of rows has nothing to teach.
    few = change.n_rows < FEWEST_ROWS * len(experience.reference.prior)
    taught = doubt is None and not few
    trusted = [name for name in answers if taught or name in ("stable", "pooled")]
    by = experience.yardstick(settings.choices)
    choice = choose(
        change,
        experience.cases,
        trusted,
        experience.learner,
        lambda answer, other: believed_loss(answers[answer], answers[other], rows, by),
    )
    if doubt is not None:
        # What changes is seen against f_S: one that reads the unstable part hides it.
        told = "so that a change may be hidden or imagined, and nothing was learned anew"
        but = f" But f_S is not shown to be stable, {told}: {doubt}."
        choice = replace(choice, reason=choice.reason + but, found=choice.found + but)
    if known is None or not (known >= 0).any():
        return BestAnswer(change, choice, answers)
    # SFB has learned from these labels: it is judged as it would be without them.
    blind = {"boosted": boost(answers["stable"], rows, settings)} if "boosted" in answers else {}
    answers, fits, random = put_right(answers, blind, rows, known)
    choice = with_labels(choice, fits, int((known >= 0).sum()), len(known), random)
    return BestAnswer(change, choice, answers)
