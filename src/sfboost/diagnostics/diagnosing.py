"""`diagnose`: every check that the rows allow, in one frozen report."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from sfboost.diagnostics.complementarity import check_complementarity
from sfboost.diagnostics.informativeness import check_calibration, check_informativeness
from sfboost.diagnostics.new_domain import check_new_domain
from sfboost.diagnostics.result import VERDICTS, CheckResult, Verdict
from sfboost.diagnostics.rows import CheckInputs, NewRows, TrainingRows
from sfboost.diagnostics.stability import check_kind_of_stability, check_stability
from sfboost.json_values import json_values


@dataclass(frozen=True)
class Check:
    """One check, a function of the rows with a name.

    Attributes
    ----------
    need : {"training", "training X_U", "new X_U"}
        What must be there.
    question : str
        What is checked, in words that need no formula.
    """

    name: str
    need: str
    question: str
    run: Callable[[CheckInputs], CheckResult]


_INDEPENDENT = "Within a class, are stable and unstable features independent?"
_KIND = "Which is the same in every domain: the label given the features, or the features given the label?"
#: Every check, in the order in which a reader wants them.
CHECKS = (
    Check(
        "stability",
        "training",
        "Do the stable features mean the same in every training domain?",
        check_stability,
    ),
    Check("kind of stability", "training", _KIND, check_kind_of_stability),
    Check(
        "informativeness",
        "training",
        "Do the stable features say anything about the class?",
        check_informativeness,
    ),
    Check(
        "calibration", "training", "Can the stable probabilities be taken at their word?", check_calibration
    ),
    Check("complementarity", "training X_U", _INDEPENDENT, check_complementarity),
    Check("complementarity, new domain", "new X_U", _INDEPENDENT, check_new_domain),
)


@dataclass(frozen=True)
class Diagnosis:
    """Results of the checks. Prints as a list; exports to dict, JSON and DataFrame.

    Attributes
    ----------
    results : tuple of CheckResult
    skipped : mapping-like tuple of (name, what was missing)
    level : float
        Nominal false-alarm rate of each check.
    meanings : tuple of FeatureMeaning
        Whether each unstable feature changed its meaning in the new domain, where that was asked.
    """

    results: tuple[CheckResult, ...]
    skipped: tuple[tuple[str, str], ...]
    level: float
    meanings: tuple[Any, ...] = ()

    def __getitem__(self, check: str) -> CheckResult:
        for result in self.results:
            if result.check == check:
                return result
        raise KeyError(f"No check {check!r} was run; there are {[result.check for result in self.results]}.")

    def __iter__(self) -> Iterator[CheckResult]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)

    @property
    def verdict(self) -> Verdict:
        """The most alarming verdict of all."""
        return max((result.verdict for result in self.results), key=VERDICTS.index, default="cannot tell")

    def __str__(self) -> str:
        lines = [f"Diagnosis: {self.verdict} (each check at level {self.level:g})"]
        for result in self.results:
            lines.append(f"  {result.check:<28} {result.verdict:<12} {result.sentence}")
            if result.remedy:
                lines.append(f"  {'':<28} {'':<12} → {result.remedy}")
        lines += [f"  {name:<28} {'not run':<12} needs {what}" for name, what in self.skipped]
        lines += [f"  {meaning}" for meaning in self.meanings]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {
            "verdict": self.verdict,
            "level": self.level,
            "results": [result.to_dict() for result in self.results],
            "skipped": dict(self.skipped),
            "features": [vars(meaning) for meaning in self.meanings],
        }

    def to_json(self, indent: int | None = 2) -> str:
        """The report as JSON; what is not a number becomes null."""
        return json.dumps(json_values(self.to_dict()), indent=indent, ensure_ascii=False, allow_nan=False)

    def to_frame(self) -> Any:
        """One row per check, as a pandas DataFrame."""
        import pandas as pd

        return pd.DataFrame([result.to_dict() for result in self.results]).drop(columns="details")


def diagnose(
    training: TrainingRows | None = None,
    new: NewRows | None = None,
    *,
    level: float = 0.05,
    random_state: int = 0,
) -> Diagnosis:
    """Run every check that the given rows allow.

    Parameters
    ----------
    training : TrainingRows, optional
        Labelled rows with held-out f_S; see `make_training_rows`.
    new : NewRows, optional
        Unlabelled rows of the new domain; see `make_new_rows`.
    level : float
        Nominal false-alarm rate of each check.

    Examples
    --------
    >>> from sfboost.diagnostics import diagnose, make_new_rows
    >>> from sfboost_lab.testing import Dials, simulate
    >>> new = simulate(Dials(), seed=0).new
    >>> report = diagnose(new=make_new_rows(new.posterior, new.X_unstable))
    >>> report["complementarity, new domain"].verdict
    'holds'
    """
    if training is None and new is None:
        raise ValueError("There is nothing to check: pass training rows, new rows, or both.")
    if new is not None and len(new.stable) < 2:
        raise ValueError("One row shows nothing of a new domain: pass all unlabelled rows of the domain.")
    if not 0.0 < level < 0.5:
        raise ValueError(f"level={level} is no false-alarm rate: use a number between 0 and 0.5.")
    inputs = CheckInputs(training, new, level, random_state)
    results = tuple(check.run(inputs) for check in CHECKS if check.need in inputs.available)
    skipped = tuple((check.name, check.need) for check in CHECKS if check.need not in inputs.available)
    return Diagnosis(results, skipped, level)
