"""What `fit` leaves behind for reports: shares, slopes, curves and verdicts of training, no rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from sfboost.adaptation.scores import LOSSES, METRICS
from sfboost.boosting import DomainEvaluation, DomainSummary, StableFeatureBoosting
from sfboost.boosting.diagnosing import held_out_rows
from sfboost.boosting.scored_domains import ANSWER, COMPARED
from sfboost.calibration import ReliabilityCurve
from sfboost.calibration.reliability import bin_confidence
from sfboost.diagnostics import diagnose
from sfboost.json_values import json_values
from sfboost.marginal.probabilities import FloatArray

if TYPE_CHECKING:
    import pandas as pd

Curve = Mapping[str, list[float]]


@dataclass(frozen=True)
class DomainFacts:
    """One training domain.

    Attributes
    ----------
    slopes : list of lists, of shape (columns, d), or None
        Of a logistic regression of the unstable features on this domain's labels, in raw units; None in a
        list where the feature does not vary. One column for two classes.
    accuracy, ece_before, ece_after : float or None
        Of the stable predictor on held-out rows.
    """

    name: str
    n_rows: int
    shares: list[float]
    slopes: list[list[float | None]] | None
    accuracy: float | None
    ece_before: float | None
    ece_after: float | None


@dataclass(frozen=True, eq=False)
class TrainingFacts:
    """Everything about training that a report shows.

    Attributes
    ----------
    domains : tuple of DomainFacts
    units : list of float
        Standard deviation of each unstable feature within training domains: the unit slopes are shown in.
    before, after : mapping with "confidence", "accuracy", "weight", or None
        Reliability of the stable predictor on held-out rows of all domains, before and after calibration.
    checks : list of dict
        The checks of the training domains, as `CheckResult.to_dict` gives them.
    evaluation : list of dict
        Rows of `DomainEvaluation`, with the reason of each decision; empty if it was not run.
    missing : dict of lists
        Share of missing cells by column and training domain, of the columns where any is.
    drifts : list of dict
        What the search for stable columns found of each, in order; empty if nothing was searched for.
    """

    domains: tuple[DomainFacts, ...]
    units: list[float]
    before: Curve | None
    after: Curve | None
    checks: list[dict[str, Any]]
    evaluation: list[dict[str, Any]]
    missing: dict[str, list[float]] = field(default_factory=dict)
    drifts: list[dict[str, Any]] = field(default_factory=list)

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
    within = [
        np.asarray(model.unstable_columns_.take(X[domain == name]), dtype=np.float64) for name in set(domain)
    ]
    spread = np.sqrt(sum(len(part) * part.var(axis=0) for part in within) / len(X))
    return replace(
        training_of(model),
        units=spread.tolist(),
        checks=[json_values(result.to_dict()) for result in checks],
    )


def training_of(model: StableFeatureBoosting) -> TrainingFacts:
    """What a fitted model itself keeps of training: no checks."""
    curves = [summary.calibration for summary in model.domains_ if summary.calibration is not None]
    sizes = [curve.n_rows for curve in curves]
    scales = [(d.n_rows, d.feature_scale) for d in model.domains_ if d.feature_scale is not None]
    n_rows = sum(n for n, _ in scales)
    variance = sum((n * scale**2 for n, scale in scales), np.zeros(len(model.unstable_columns_)))
    return TrainingFacts(
        domains=tuple(_domain_facts(summary) for summary in model.domains_),
        units=np.sqrt(variance / max(n_rows, 1)).tolist(),
        before=_pooled([curve.reliability_raw for curve in curves], sizes),
        after=_pooled([curve.reliability for curve in curves], sizes),
        checks=[],
        evaluation=[],
        drifts=_drifts(model),
    )


def _drifts(model: StableFeatureBoosting) -> list[dict[str, Any]]:
    selector = getattr(model, "selector_", None)
    if selector is None:
        return []
    return [
        json_values(
            {
                **{"name": c.name, "verdict": c.verdict, "selected": bool(c.selected), "why": c.why},
                **{"drift": c.drift, "upper": c.drift_upper, "by_domain": list(c.by_domain)},
            }
        )
        for c in selector.selection_.in_order
    ]


def evaluation_rows(evaluation: DomainEvaluation) -> list[dict[str, Any]]:
    """Plain records with the reason of each decision; what is not a number is None."""
    reasons = {domain.domain: domain.reason for domain in evaluation.domains}
    return [
        json_values(row | {"domain": str(row["domain"]), "reason": reasons[row["domain"]]})
        for row in evaluation.rows()
    ]


def own_domains(evaluation: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """One record per domain: that of the answer and, as "scores", what each method has in what counts."""
    by_name: dict[str, dict[str, Mapping[str, Any]]] = {}
    for record in evaluation:
        by_name.setdefault(record["domain"], {})[record["method"]] = record
    made = []
    for methods in by_name.values():
        answer = methods[ANSWER]
        scores = {method: record[answer["metric"]] for method, record in methods.items()}
        known = [scores[method] for method in COMPARED[:-1] if scores[method] is not None]
        best = (min if answer["metric"] in LOSSES else max)(known, default=None)
        made.append({**answer, "scores": scores, "best_score": best})
    return made


def mean_of(own: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The mean of such records, each domain counting the same; what is not known of a domain is left out."""

    def mean(values: Iterable[float | None]) -> float | None:
        known = [value for value in values if value is not None]
        return sum(known) / len(known) if known else None

    scores = {method: mean(one["scores"][method] for one in own) for method in COMPARED}
    means = {name: mean(one[name] for one in own) for name in (*METRICS, "regret")}
    unsaid = {"decision": "", "best": "", "best_score": None, "unclear": False, "p_value": None}
    rows = {"domain": "mean", "n_rows": sum(one["n_rows"] for one in own), "metric": own[0]["metric"]}
    return {**unsaid, **rows, **means, "scores": scores}


def raw_slopes(coef: FloatArray, scale: FloatArray) -> list[list[float | None]]:
    """Coefficients in raw units; None where a feature did not vary, so that its coefficient stayed zero."""
    raw = coef if len(coef) == 1 else coef - coef.mean(axis=0)
    silent = (coef == 0.0).all(axis=0)
    return [
        [None if quiet else float(v) for v, quiet in zip(row, silent, strict=True)] for row in raw / scale
    ]


def _domain_facts(summary: DomainSummary) -> DomainFacts:
    coef, held_out = getattr(summary.head, "coef_", None), summary.calibration
    known = coef is not None and summary.feature_scale is not None
    return DomainFacts(
        name=str(summary.name),
        n_rows=summary.n_rows,
        shares=summary.class_balance.tolist(),
        slopes=raw_slopes(coef, summary.feature_scale) if known else None,  # type: ignore[arg-type]
        accuracy=None if held_out is None else held_out.accuracy,
        ece_before=None if held_out is None else held_out.reliability_raw.ece,
        ece_after=None if held_out is None else held_out.reliability.ece,
    )


def _pooled(curves: list[ReliabilityCurve], sizes: list[int]) -> Curve | None:
    """One curve of several, bin by bin; a bin is known by the confidence in it."""
    if not curves:
        return None
    confidence, accuracy = (
        np.concatenate([getattr(c, name) for c in curves]) for name in ("confidence", "accuracy")
    )
    weight = np.concatenate([curve.weight * size for curve, size in zip(curves, sizes, strict=True)])
    return {
        name: values.tolist() for name, values in vars(bin_confidence(confidence, accuracy, weight)).items()
    }
