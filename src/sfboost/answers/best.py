"""The best answer to one new domain: a mixture of few candidates, with its reason."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import log_softmax

from sfboost.adaptation.settings import Choices
from sfboost.answers.candidates import Answer, fit_candidates
from sfboost.answers.choosing import Choice, choose
from sfboost.answers.experience import Experience
from sfboost.answers.rows import Rows
from sfboost.change import Change, change_in
from sfboost.marginal.probabilities import FloatArray


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

    def log_proba(self, rows: Rows) -> FloatArray:
        """The mixture, in log space, of shape (n, K)."""
        weights = self.choice.weights
        mixed = sum(weight * self.answers[name].log_proba(rows) for name, weight in weights.items())
        return np.asarray(log_softmax(mixed, axis=1))

    def every_answer(self, rows: Rows) -> dict[str, FloatArray]:
        """Probabilities of each candidate for these rows."""
        return {name: np.exp(answer.log_proba(rows)) for name, answer in self.answers.items()}


def best_answer(rows: Rows, experience: Experience, choices: Choices, classes: Any) -> BestAnswer:
    """Test the new rows for a change, fit the candidates, and weigh them by what own domains teach."""
    change = change_in(experience.reference, rows.view)
    answers = fit_candidates(rows, change, experience.habits, choices, classes)
    return BestAnswer(change, choose(change, experience.cases, list(answers)), answers)
