"""The rows of one domain, and what the pooled classifier would say of them if U were another."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from sfboost.change import View
from sfboost.marginal.probabilities import FloatArray


@dataclass(frozen=True, eq=False)
class Rows:
    """What a candidate answer is given.

    Attributes
    ----------
    view : View
    log_pooled : callable or None
        Log-probabilities of the pooled classifier for these rows with another U in place of theirs; None
        where that cannot be asked (probabilities came as arrays, or a pipeline reads text).
    """

    view: View
    log_pooled: Callable[[FloatArray], FloatArray] | None = None

    def with_unstable(self, unstable: FloatArray) -> Rows:
        """The same rows with another U."""
        if self.log_pooled is None:
            raise ValueError("The pooled classifier cannot be asked about other values of these features.")
        pooled = self.log_pooled(unstable)
        return replace(self, view=replace(self.view, unstable=unstable, log_pooled=pooled))
