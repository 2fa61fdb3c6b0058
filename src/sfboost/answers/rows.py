"""The rows of one domain, and what the pooled classifier would say of them if U were another."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing

from sfboost.change import View
from sfboost.marginal.probabilities import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class AnswerRows:
    """What a candidate answer is given.

    Attributes
    ----------
    view : View
    log_pooled : callable or None
        Log-probabilities of the pooled classifier for these rows (or those at given positions) with another U
        in place of theirs; None where that cannot be asked (probabilities came as arrays, or a pipeline reads
        text).
    positions : integer array or None
        Which of the rows that `log_pooled` knows these are; None is all.
    given : array, sparse matrix or frame, or None
        U as it was given, if that is not how `view` has it.
    """

    view: View
    log_pooled: Callable[[FloatArray, IntArray | None], FloatArray] | None = None

    positions: IntArray | None = None
    given: Any = None

    @property
    def unstable(self) -> Any:
        """U as it was given: what a head reads that the user brought along."""
        return self.view.unstable if self.given is None else self.given

    def take(self, positions: IntArray) -> AnswerRows:
        """Some of the rows."""
        view = self.view
        weight = view.weight[positions]
        part = View(
            view.log_stable[positions],
            view.unstable[positions],
            view.log_pooled[positions],
            view.features[positions],
            weight / weight.sum(),
            None if view.log_neutral is None else view.log_neutral[positions],
        )
        before = np.arange(len(view.weight)) if self.positions is None else self.positions
        given = self.given
        if given is not None:  # scikit-learn takes longer to look at an array than to take rows of it
            plain = isinstance(given, np.ndarray)
            given = given[positions] if plain else _safe_indexing(given, positions)
        return replace(self, view=part, positions=before[positions], given=given)

    def beside(self, neutral: FloatArray | None) -> AnswerRows:
        """The same rows, their evidence measured by what pooled says of this U; see `View.evidence`."""
        if self.log_pooled is None or neutral is None:
            return self
        said = self.log_pooled(np.tile(neutral, (len(self.view.weight), 1)), self.positions)
        return replace(self, view=replace(self.view, log_neutral=said))

    def with_unstable(self, unstable: FloatArray) -> AnswerRows:
        """The same rows with another U."""
        if self.log_pooled is None:
            raise ValueError("The pooled classifier cannot be asked about other values of these features.")
        pooled = self.log_pooled(unstable, self.positions)
        view = replace(self.view, unstable=unstable, log_pooled=pooled)
        return replace(self, view=view, given=None)
