"""The rows of one domain, and what the pooled classifier would say of them if U were another."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from sfboost.change import View
from sfboost.marginal.probabilities import FloatArray

IntArray = npt.NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Rows:
    """What a candidate answer is given.

    Attributes
    ----------
    view : View
    log_pooled : callable or None
        Log-probabilities of the pooled classifier for these rows (or those at given positions) with another U
        in place of theirs; None where that cannot be asked (probabilities came as arrays, or a pipeline reads
        text).
    """

    view: View
    log_pooled: Callable[[FloatArray, IntArray | None], FloatArray] | None = None

    positions: IntArray | None = None

    def take(self, positions: IntArray) -> Rows:
        """Some of the rows."""
        view = self.view
        weight = view.weight[positions]
        part = View(
            view.log_stable[positions],
            view.unstable[positions],
            view.log_pooled[positions],
            view.features[positions],
            weight / weight.sum(),
        )
        before = np.arange(len(view.weight)) if self.positions is None else self.positions
        return replace(self, view=part, positions=before[positions])

    def with_unstable(self, unstable: FloatArray) -> Rows:
        """The same rows with another U."""
        if self.log_pooled is None:
            raise ValueError("The pooled classifier cannot be asked about other values of these features.")
        pooled = self.log_pooled(unstable, self.positions)
        return replace(self, view=replace(self.view, unstable=unstable, log_pooled=pooled))
