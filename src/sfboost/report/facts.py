"""Everything that a report shows, as plain numbers and sentences: `make_facts` gathers, the page lays out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

import sfboost
from sfboost.adaptation.costs import decided
from sfboost.boosting import METRICS, AdaptedClassifier, performance_without_labels, score_predictions
from sfboost.boosting.diagnosing import meanings_here, new_rows
from sfboost.boosting.evaluation import class_positions, pooled_proba
from sfboost.boosting.scored_domains import ANSWER
from sfboost.change.by_feature import FeatureMeaning
from sfboost.diagnostics import Performance, diagnose
from sfboost.diagnostics.result import p_in_words
from sfboost.report.changes import Changes, find_changes
from sfboost.report.slopes import ClassStory, tell_slopes
from sfboost.report.training import TrainingFacts
from sfboost.report.verdict import Headline, headline

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class CheckFact:
    """One assumption: where it was looked at, its number, its verdict, what to do."""

    name: str
    where: str
    verdict: str
    sentence: str
    remedy: str
    number: str


@dataclass(frozen=True)
class Scores:
    """Scores by method with the new domain's own labels, which nothing was fitted to."""

    n_rows: int
    metrics: tuple[str, ...]
    by_method: Mapping[str, Mapping[str, float]]


@dataclass(frozen=True, eq=False)
class ReportFacts:
    """The contents of a report."""

    title: str
    source: str
    version: str
    classes: tuple[str, ...]
    stable_features: tuple[str, ...]
    unstable_features: tuple[str, ...]
    headline: Headline
    prior: tuple[float, ...]
    stable_shares: tuple[float, ...]
    adapted_shares: tuple[float, ...]
    confusion: tuple[tuple[float, ...], ...]
    informativeness: float
    stories: tuple[ClassStory, ...]
    training: TrainingFacts
    checks: tuple[CheckFact, ...]
    leak: float | None
    leak_source: str
    break_even: float | None
    leak_rows: int
    changes: Changes
    scores: Scores | None
    remarks: tuple[str, ...]
    missing: tuple[tuple[str, tuple[float, ...], float], ...] = ()
    meanings: tuple[FeatureMeaning, ...] = ()
    foretold: Mapping[str, Performance] | None = None
    priced: bool = False
    n_labelled: int = 0


def labels_used(n_labelled: int) -> str:
    """How many labels of the new domain the answer was given.

    Examples
    --------
    >>> labels_used(0), labels_used(1), labels_used(20)
    ('none of them labelled', '1 of them labelled', '20 of them labelled')
    """
    return f"{n_labelled or 'none'} of them labelled"


def make_facts(
    adapted: AdaptedClassifier,
    training: TrainingFacts,
    X: pd.DataFrame,
    *,
    title: str = "The new domain",
    source: str = "",
    y: npt.NDArray[Any] | None = None,
    pooled: Any = None,
    cells: Sequence[Mapping[str, Any]] | None = None,
    remarks: Sequence[str] = (),
    missing: Mapping[str, float] | None = None,
) -> ReportFacts:
    """Gather the facts of one adaptation.

    Parameters
    ----------
    adapted : AdaptedClassifier
    training : TrainingFacts
        What `describe_training` kept.
    X : DataFrame
        The rows that were adapted to.
    y : array of shape (n,), optional
        Their labels, for scores alone; None or NaN where unknown.
    pooled : fitted classifier, optional
        To compare with, if labels are given; None is the model's own, if it has one.
    cells : rows as they were given, optional
        To show examples of changed predictions; None shows none.
    missing : mapping, optional
        Share of missing cells here, by column of the table.
    """
    model = adapted.model
    stable, joint = model.predict_proba(X), adapted.predict_proba(X)
    classes = tuple(str(name) for name in adapted.classes_)
    costs = model._costs()
    changes = find_changes(classes, stable, joint, cells, costs)
    stories = tell_slopes(adapted, training)
    meanings = () if adapted.change_ is None else meanings_here(model, X, change=adapted.change_)
    guard = adapted.adaptation.guard
    return ReportFacts(
        title=title,
        source=source,
        version=sfboost.__version__,
        classes=classes,
        stable_features=model.stable_columns_.sources,
        unstable_features=model.unstable_columns_.sources or model.unstable_columns_.names,
        headline=headline(adapted, changes, stories, meanings),
        prior=tuple(adapted.prior_.tolist()),
        stable_shares=_shares(stable, costs),
        adapted_shares=_shares(joint, costs),
        confusion=tuple(map(tuple, adapted.confusion_.tolist())),
        informativeness=adapted.informativeness_,
        stories=stories,
        training=training,
        checks=all_checks(adapted, training, X),
        leak=adapted.leak_,
        leak_source="" if guard is None else guard.leak_source,
        break_even=adapted.break_even_,
        leak_rows=int(adapted.depends_on_leak(X).sum()),
        changes=changes,
        scores=None if y is None else _scores(adapted, stable, joint, X, y, pooled),
        remarks=(*remarks, *adapted.warnings_),
        missing=_missing(training, missing or {}),
        meanings=meanings,
        foretold=foretold(adapted, X),
        priced=costs is not None,
        n_labelled=getattr(adapted.adaptation, "n_labelled", 0),  # a leak-corrected one has none
    )


def foretold(adapted: AdaptedClassifier, X: Any) -> Mapping[str, Performance] | None:
    """Scores here without labels, where own domains say how far off such figures are.

    Not where every row is labelled: the labels themselves say how good an answer is.
    """
    if getattr(adapted.adaptation, "n_labelled", 0) == len(X):  # a leak-corrected one has none
        return None
    if adapted.best is None or not any(case.surprises for case in adapted.model.training_.experience.cases):
        return None
    return performance_without_labels(adapted, X, labels_from="answer", cost=adapted.model._costs())


def all_checks(adapted: AdaptedClassifier, training: TrainingFacts, X: pd.DataFrame) -> tuple[CheckFact, ...]:
    """The checks of training as they were kept, then those of the new rows."""
    new = new_rows(adapted.model, X)
    judged = {result["check"] for result in training.checks}
    # Without labels informativeness is a claim; where training has judged it, the claim adds nothing.
    found_here = diagnose(new=new, random_state=adapted.model.random_state or 0)
    here = [result.to_dict() for result in found_here if result.check not in judged]
    if training.balance is not None:
        here.append(training.balance.check(new.stable).to_dict())
    if training.support is not None:
        stable = np.asarray(adapted.model.stable_columns_.take(X), dtype=float)
        here.append(training.support.check(stable).to_dict())
    found = [("training domains", result) for result in training.checks] + [
        ("new domain", result) for result in here
    ]
    return tuple(
        CheckFact(
            name=result["check"].removesuffix(", new domain"),
            where=where,
            verdict=result["verdict"],
            sentence=result["sentence"],
            remedy=result["remedy"],
            number=_number(result),
        )
        for where, result in found
    )


def _number(result: Mapping[str, Any]) -> str:
    value, error, p_value = (result.get(name) for name in ("statistic", "standard_error", "p_value"))
    parts = []
    if value is not None and np.isfinite(value):
        known = error is not None and np.isfinite(error)
        parts.append(f"{value:.3g} ± {error:.2g}" if known else f"{value:.3g}")
    if p_value is not None and np.isfinite(p_value):
        parts.append(p_in_words(p_value))
    return ", ".join(parts) or "–"


def _missing(
    training: TrainingFacts, here: Mapping[str, float]
) -> tuple[tuple[str, tuple[float, ...], float], ...]:
    """Column, shares by training domain and here; those that moved the most first."""
    nowhere = [0.0] * len(training.domains)
    rows = [
        (name, tuple(training.missing.get(name, nowhere)), here.get(name, 0.0))
        for name in dict.fromkeys((*training.missing, *here))
    ]
    return tuple(sorted(rows, key=lambda row: -abs(row[2] - np.mean(row[1] or 0.0))))


def _shares(
    proba: npt.NDArray[np.float64], costs: npt.NDArray[np.float64] | None = None
) -> tuple[float, ...]:
    counts = np.bincount(decided(proba, costs), minlength=proba.shape[1])
    return tuple((counts / len(proba)).tolist())


def _scores(
    adapted: AdaptedClassifier,
    stable: npt.NDArray[np.float64],
    joint: npt.NDArray[np.float64],
    X: pd.DataFrame,
    y: npt.NDArray[Any],
    pooled: Any,
) -> Scores | None:
    known = np.array([label is not None and label == label for label in y.tolist()])
    if not known.any():
        return None
    position = class_positions(adapted.classes_, np.array(y[known].tolist()))
    proba = {"stable": stable, ANSWER: joint}
    if pooled is not None:
        proba["pooled"] = np.asarray(pooled.predict_proba(X), dtype=np.float64)
    elif adapted.model.pooled_ is not None:
        proba["pooled"] = pooled_proba(adapted.model, X)
    costs = adapted.model._costs()
    scores = {method: score_predictions(position, values[known], costs) for method, values in proba.items()}
    return Scores(int(known.sum()), (*METRICS, *(["cost"] if costs is not None else [])), scores)
