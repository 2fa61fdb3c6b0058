"""The explicit list of checks: one name, one function, what it needs, and the question it answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sfboost.diagnostics.calibration import check_calibration
from sfboost.diagnostics.complementarity import check_complementarity
from sfboost.diagnostics.feasibility import check_feasibility
from sfboost.diagnostics.gain import check_gain
from sfboost.diagnostics.informativeness import check_informativeness, check_lower_bound
from sfboost.diagnostics.inputs import CheckInputs
from sfboost.diagnostics.kind import check_kind_of_stability
from sfboost.diagnostics.linearity import check_linearity
from sfboost.diagnostics.prior import check_prior_drift
from sfboost.diagnostics.result import CheckResult
from sfboost.diagnostics.stability import check_stability
from sfboost.diagnostics.support import check_support


@dataclass(frozen=True)
class Check:
    """One check.

    Attributes
    ----------
    needs : tuple of str
        Of "training", "new", "training X_U", "new X_U", "training X_S", "new X_S".
    question : str
        What is checked, in words that need no formula.
    either : bool
        Whether one of the needs is enough.
    """

    name: str
    run: Callable[[CheckInputs], CheckResult]
    needs: tuple[str, ...]
    question: str
    either: bool = False

    def ready(self, inputs: CheckInputs) -> bool:
        """Whether the inputs have what this check needs."""
        there = [need in available(inputs) for need in self.needs]
        return any(there) if self.either else all(there)


def available(inputs: CheckInputs) -> set[str]:
    """Names of the parts that are there."""
    parts = set()
    for name, rows in (("training", inputs.training), ("new", inputs.new)):
        if rows is None:
            continue
        parts.add(name)
        if rows.X_unstable is not None:
            parts.add(f"{name} X_U")
        if rows.X_stable is not None:
            parts.add(f"{name} X_S")
    return parts


#: Every check, in the order in which a reader wants them.
CHECKS: tuple[Check, ...] = (
    Check(
        "stability",
        check_stability,
        ("training",),
        "Do the stable features mean the same in every training domain?",
    ),
    Check(
        "kind of stability",
        check_kind_of_stability,
        ("training",),
        "Is it the label given the features that stays, or the features given the label?",
    ),
    Check(
        "informativeness",
        check_informativeness,
        ("training", "new"),
        "Do the stable features tell the class at all?",
        either=True,
    ),
    Check(
        "informativeness bound",
        check_lower_bound,
        ("new", "new X_U"),
        "Do they tell as much here as they claim?",
    ),
    Check(
        "calibration",
        check_calibration,
        ("training",),
        "Can the stable probabilities be taken at their word?",
    ),
    Check(
        "complementarity",
        check_complementarity,
        ("training", "training X_U"),
        "Within a class, are stable and unstable features independent?",
    ),
    Check(
        "complementarity, new domain",
        check_linearity,
        ("new", "new X_U"),
        "Within a class, are stable and unstable features independent?",
    ),
    Check(
        "feasibility, new domain",
        check_feasibility,
        ("new", "new X_U"),
        "Could any class explain what the rows show?",
    ),
    Check(
        "anything to gain",
        check_gain,
        ("new", "new X_U"),
        "Do the unstable features have anything to add here?",
    ),
    Check(
        "prior drift",
        check_prior_drift,
        ("training", "new"),
        "Are the classes about as frequent as in training?",
    ),
    Check(
        "support",
        check_support,
        ("training X_S", "new X_S"),
        "Do the rows lie where the training rows lay?",
    ),
)
