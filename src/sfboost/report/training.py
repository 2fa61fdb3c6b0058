"""What `fit` leaves behind for reports: shares, scores and verdicts of training, no rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

import numpy.typing as npt

from sfboost.adaptation import DomainSummary
from sfboost.boosting import DomainEvaluation, StableFeatureBoosting
from sfboost.boosting.diagnosing import held_out_rows
from sfboost.columns import Selection
from sfboost.diagnostics import diagnose
from sfboost.json_values import json_values

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class DomainFacts:
    """One source domain.

    Attributes
    ----------
    accuracy, ece_before, ece_after : float or None
        Of the stable predictor on held-out rows.
    """

    name: str
    n_rows: int
    shares: list[float]
    accuracy: float | None
    ece_before: float | None
    ece_after: float | None


@dataclass(frozen=True, eq=False)
class TrainingFacts:
    """Everything about training that a report shows.

    Attributes
    ----------
    domains : tuple of DomainFacts
    checks : list of dict
        The checks of the source domains, as `CheckResult.to_dict` gives them.
    evaluation : list of dict
        What `evaluation_rows` says of each domain; empty if it was not run.
    missing : dict of lists
        Share of missing cells by column and source domain, of the columns where any is.
    proposal : list of dict
        What the search for stable columns found of each, in order; empty if nothing was searched for.
    """

    domains: tuple[DomainFacts, ...]
    checks: list[dict[str, Any]]
    evaluation: list[dict[str, Any]]
    missing: dict[str, list[float]] = field(default_factory=dict)
    proposal: list[dict[str, Any]] = field(default_factory=list)

    @property
    def nothing_stable(self) -> bool:
        """Whether stable columns were searched for, and none was found."""
        return bool(self.proposal) and not any(column["selected"] for column in self.proposal)

    def to_dict(self) -> dict[str, Any]:
        """What a model file keeps."""
        return vars(self) | {"domains": [vars(domain) for domain in self.domains]}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """The inverse of `to_dict`."""
        return cls(**(values | {"domains": tuple(DomainFacts(**domain) for domain in values["domains"])}))


def describe_training(
    model: StableFeatureBoosting,
    X: pd.DataFrame,
    y: npt.NDArray[Any],
    domain: npt.NDArray[Any],
) -> TrainingFacts:
    """Summarise the rows that `model` is to be fitted to; fits it on the way."""
    rows = held_out_rows(model, X, y, domain)
    checks = diagnose(rows, random_state=model.random_state or 0)
    return replace(training_of(model), checks=[json_values(result.to_dict()) for result in checks])


def training_of(model: StableFeatureBoosting) -> TrainingFacts:
    """What a fitted model itself keeps of training: no checks."""
    return TrainingFacts(
        domains=tuple(_domain_facts(summary) for summary in model.domains_),
        checks=[],
        evaluation=[],
        proposal=ranked(model.selector_.selection_) if hasattr(model, "selector_") else [],
    )


def ranked(
    selection: Selection, costs: Mapping[str, tuple[float, float]] | None = None
) -> list[dict[str, Any]]:
    """Columns that were searched, the chosen ones and the least drift first, as plain values.

    `costs` has the accuracy that is lost without a column and its standard error, by name.
    """
    unknown, made = (None, None), []
    for column in selection.in_order:
        cost, error = (costs or {}).get(column.name, unknown)
        made.append(
            {
                "name": column.name,
                "verdict": column.verdict,
                "selected": bool(column.selected),
                "why": column.why,
                "drift": column.drift,
                "upper": column.drift_upper,
                "by_domain": list(column.by_domain),
                "cost": cost,
                "cost_error": error,
            }
        )
    return [json_values(one) for one in made]


def evaluation_rows(evaluation: DomainEvaluation) -> list[dict[str, Any]]:
    """One record per domain, with `scores[method][metric]`; what is not a number is None."""
    names = ("n_rows", "decision", "reason", "metric", "p_value", "unclear", "best", "regret", "scores")
    return [
        json_values({"domain": str(one.domain)} | {name: getattr(one, name) for name in names})
        for one in evaluation.domains
    ]


def mean_of(domains: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The mean of such records, each domain counting the same; what is not known of a domain is left out."""

    def mean(values: Iterable[float | None]) -> float | None:
        known = [value for value in values if value is not None]
        return sum(known) / len(known) if known else None

    first = domains[0]
    scores = {
        method: {metric: mean(one["scores"][method][metric] for one in domains) for metric in by_metric}
        for method, by_metric in first["scores"].items()
    }
    return {
        "domain": "mean",
        "n_rows": sum(one["n_rows"] for one in domains),
        "decision": "",
        "metric": first["metric"],
        "p_value": None,
        "unclear": False,
        "best": "",
        "regret": mean(one["regret"] for one in domains),
        "scores": scores,
    }


def _domain_facts(summary: DomainSummary) -> DomainFacts:
    held_out = summary.calibration
    return DomainFacts(
        name=str(summary.name),
        n_rows=summary.n_rows,
        shares=summary.class_balance.tolist(),
        accuracy=None if held_out is None else held_out.accuracy,
        ece_before=None if held_out is None else held_out.reliability_raw.ece,
        ece_after=None if held_out is None else held_out.reliability.ece,
    )
