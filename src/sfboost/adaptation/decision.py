"""To adapt or to keep the stable predictor: the refusals that need no assumption."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from sfboost.adaptation.problem import Problem
from sfboost.marginal import PseudoLabelStatistics

if TYPE_CHECKING:
    from sfboost.adaptation.regularisation import CrossFit

#: What was done: the unstable features are used, or not.
DecisionKind = Literal["adapted", "kept stable"]

FEWEST_LABELS = 30
LABELS_PER_PARAMETER = 10
# A contrast of classes worth less than one label is, for these rows, a missing rank of E[f_S f_Sᵀ].
_LEAST_CONTRAST = 1.0


class AdaptationWarning(UserWarning):
    """Something about an adaptation that a user should know."""


class AdaptationRefused(AdaptationWarning):
    """The stable predictor was kept; the message says what to pass to adapt all the same."""


@contextmanager
def unwarned(*also: type[Warning]) -> Iterator[None]:
    """Leave out what an adaptation warns of: for one that is tried, or whose decision is told elsewhere."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AdaptationWarning)
        for category in also:
            warnings.simplefilter("ignore", category)
        yield


@dataclass(frozen=True)
class StableEvidence:
    """How much f_S beats the class balance on held-out labelled rows, in nats of log loss per row."""

    gain: float
    standard_error: float
    n_rows: int

    @property
    def convincing(self) -> bool:
        """Whether the gain exceeds zero by 1.64 standard errors (one-sided 5 %)."""
        return self.gain > 1.64 * self.standard_error


@dataclass(frozen=True)
class Decision:
    """What to do, and why in one sentence."""

    kind: DecisionKind
    reason: str


@dataclass(frozen=True, eq=False)
class Amount:
    """How much there is to learn from: what a decision looks at.

    Attributes
    ----------
    problem : Problem
    effective : float or None
        Parameters that a penalty leaves of the head, if the rows are too few for all (`shrink`).
    held_out : CrossFit or None
        What that head tells of rows that it was not fitted to.
    """

    problem: Problem
    effective: float | None = None
    held_out: CrossFit | None = None

    @property
    def statistics(self) -> PseudoLabelStatistics:
        """Of the pseudo-labels."""
        return self.problem.statistics

    @property
    def labelled(self) -> float:
        """Weight of the rows whose label is known."""
        return float(self.problem.weight[self.problem.labelled].sum())

    @property
    def n_parameters(self) -> int:
        """Parameters of a linear head: (d + 1)(K − 1)."""
        return (self.problem.X.shape[1] + 1) * (self.problem.n_classes - 1)

    @property
    def needed(self) -> int:
        """Labels that the head needs as it is."""
        return max(FEWEST_LABELS, LABELS_PER_PARAMETER * self.n_parameters)

    @property
    def is_wide(self) -> bool:
        """Whether there is something to learn from, and the head has too many parameters for it."""
        return FEWEST_LABELS <= self.worth < self.needed

    @property
    def worth(self) -> int:
        """n·s for unlabelled rows, one for each known label.

        Whole labels, rounded down: what is said and what is decided are the same number.
        """
        known = self.labelled / self.statistics.weight
        labels = self.statistics.effective_labels * (1.0 - known) + self.statistics.weight * known
        return int(labels * (1.0 + 1e-9))


def refusals(amount: Amount, evidence: StableEvidence | None) -> list[str]:
    """Why not to adapt: f_S is not shown to be informative, or the rows are too few for the head."""
    sentences = []
    enough_labels = amount.labelled >= amount.needed or amount.problem.all_labelled
    if evidence is not None and not evidence.convincing and not enough_labels:
        sentences.append(
            f"on {evidence.n_rows} held-out training rows the log loss of the stable predictor is "
            f"{evidence.gain:.2g} ± {evidence.standard_error:.2g} below that of the class shares: not shown "
            "to be informative"
        )
    told = f"{len(amount.problem.stable)} rows are worth {amount.worth} labels (informativeness "
    told += f"{amount.statistics.informativeness:.3f}), and {amount.n_parameters} parameters "
    if amount.held_out is None and amount.worth < amount.needed:
        sentences.append(f"{told}need {amount.needed}")
    elif amount.held_out is not None and not amount.held_out.convincing:
        sentences.append(
            f"{told}that are shrunk to {amount.effective:.0f} tell nothing of rows that were held out "
            f"({amount.held_out.gain:.2g} ± {amount.held_out.standard_error:.2g} nats)"
        )
    return sentences


def decide(amount: Amount, doubts: list[str], *, refuse: bool) -> Decision:
    """Keep the stable predictor where there are doubts (`refusals`), if that is wanted."""
    if not doubts:
        told = f"{len(amount.problem.stable)} rows say as much as {amount.worth} labels"
        if amount.effective is not None:
            told += f", enough for {amount.n_parameters} parameters, shrunk to {amount.effective:.0f}"
        return Decision("adapted", told)
    told = "; ".join(doubts)
    return Decision("kept stable", told) if refuse else Decision("adapted", f"as asked, although {told}")


def _down(count: float) -> str:
    """Two digits, rounded down: .999 of a row is less than one."""
    return f"{np.floor(100.0 * count) / 100.0:.2g}"


def notes_on_classes(problem: Problem, classes: npt.NDArray[Any]) -> list[str]:
    """Sentences naming classes that are absent, or that f_S cannot tell apart.

    For K > 2 an informative f_S is not enough: E[f_S f_Sᵀ] must have rank K.
    """
    counts = problem.prior * problem.statistics.weight
    sentences = [
        f"Class {name} has an expected count of {_down(count)} in the new domain, less than one row: what "
        "the unstable features say of it is not learned."
        for name, count in zip(classes, counts, strict=True)
        if count < 1.0
    ]
    if problem.all_labelled:
        return sentences
    if (problem.stable.max(axis=1) == 1.0).all():
        sentences.append(
            "Every stable prediction is certain, so nothing can change it: pass calibrated probabilities, "
            "not predicted classes."
        )
    if problem.n_classes == 2:
        return sentences
    for contrast in problem.statistics.weak_contrasts(_LEAST_CONTRAST):
        strong = np.abs(contrast) >= 0.25 * np.abs(contrast).max()
        names = ", ".join(str(name) for name in classes[strong])
        sentences.append(
            f"The stable predictor hardly separates the classes {names}: how the unstable features "
            "distinguish them is not identified without labels."
        )
    return sentences
