"""To adapt or to keep the stable predictor: the refusals that need no assumption."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from sfboost.adaptation.problem import Problem

#: What was done: the unstable features are used, not used, used in part, or used as `sfboost.leakage` does.
DecisionKind = Literal["adapted", "kept stable", "blended", "leak-corrected"]

FEWEST_LABELS = 30
LABELS_PER_PARAMETER = 10
# A contrast of classes worth less than one label is, for these rows, a missing rank of E[f_S f_Sᵀ].
_LEAST_CONTRAST = 1.0


class AdaptationWarning(UserWarning):
    """Something about an adaptation that a user should know."""


class AdaptationRefused(AdaptationWarning):
    """The stable predictor was kept; the message says what to pass to adapt all the same."""


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


def effective_labels(problem: Problem) -> float:
    """n·s for unlabelled rows, one for each known label."""
    shares = problem.weight / problem.weight.sum()
    known = float(shares[problem.labelled].sum())
    return problem.statistics.effective_labels * (1.0 - known) + problem.weight.sum() * known


def n_parameters(problem: Problem) -> int:
    """Parameters of a linear head: (d + 1)(K − 1)."""
    return (problem.X.shape[1] + 1) * (problem.n_classes - 1)


def _worth(problem: Problem) -> int:
    """Whole labels, rounded down: what is said and what is decided are the same number."""
    return int(effective_labels(problem) * (1.0 + 1e-9))


def refusals(problem: Problem, evidence: StableEvidence | None) -> list[str]:
    """Why not to adapt: f_S is not shown to be informative, or the rows are too few for the head."""
    worth = _worth(problem)
    needed = max(FEWEST_LABELS, LABELS_PER_PARAMETER * n_parameters(problem))
    sentences = []
    enough_labels = float(problem.weight[problem.labelled].sum()) >= needed
    if evidence is not None and not evidence.convincing and not (enough_labels or problem.all_labelled):
        sentences.append(
            f"on {evidence.n_rows} held-out training rows the stable predictor beats the class balance "
            f"by {evidence.gain:.2g} ± {evidence.standard_error:.2g} nats of log loss: not shown to be "
            "informative"
        )
    if worth < needed:
        sentences.append(
            f"{len(problem.stable)} rows are worth {worth} labels (informativeness "
            f"{problem.statistics.informativeness:.3f}), and {n_parameters(problem)} parameters need "
            f"{needed}"
        )
    return sentences


def decide(problem: Problem, doubts: list[str], *, refuse: bool) -> Decision:
    """Keep the stable predictor where there are doubts (`refusals`), if that is wanted."""
    if not doubts:
        return Decision("adapted", f"{len(problem.stable)} rows are worth {_worth(problem)} labels")
    told = "; ".join(doubts)
    return Decision("kept stable", told) if refuse else Decision("adapted", f"as asked, although {told}")


def _down(count: float) -> str:
    """Two digits, rounded down: .999 of a row is less than one."""
    return f"{np.floor(100.0 * count) / 100.0:.2g}"


def notes_on_classes(problem: Problem, classes: npt.NDArray[Any]) -> list[str]:
    """Sentences naming classes that are absent, or that f_S cannot tell apart.

    For K > 2 an informative f_S is not enough: E[f_S f_Sᵀ] must have rank K.
    """
    counts = problem.prior * problem.weight.sum()
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
