"""Everything that a report shows, as plain numbers: the decision, what moved, what changed, what holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

import sfboost
from sfboost.adaptation.costs import decided
from sfboost.adaptation.explanation import in_digits
from sfboost.boosting import METRICS, AdaptedClassifier, performance_without_labels, score_predictions
from sfboost.boosting.diagnosing import new_rows
from sfboost.boosting.evaluation import class_positions
from sfboost.boosting.scored_domains import ANSWER
from sfboost.diagnostics import Performance, diagnose
from sfboost.diagnostics.result import p_in_words
from sfboost.marginal.probabilities import FloatArray
from sfboost.report.training import TrainingFacts
from sfboost.report.words import Headline, has_turned, headline
from sfboost.shift.by_feature import FeatureMeaning, feature_meanings

if TYPE_CHECKING:
    import pandas as pd

#: Features that are drawn; the others are in the table.
MOST_SHOWN = 12
_MOST_EXAMPLES, _MOST_CELLS = 8, 8

_EVERY_CHECK = frozenset(
    {"stability", "kind of stability", "informativeness", "calibration", "complementarity"}
)
#: The checks that bear on a predictor: what it takes for granted.
BEARING = {
    "pooled": frozenset[str](),
    "shares": frozenset[str](),
    "stable realigned": frozenset[str](),
    "realigned": frozenset({"stability"}),
    "stable": frozenset({"stability", "informativeness", "calibration"}),
    "boosted": _EVERY_CHECK,
}


@dataclass(frozen=True)
class Example:
    """One row whose predicted class changed; probabilities are of the class that is now predicted."""

    row: int
    cells: Mapping[str, str]
    stable_class: str
    adapted_class: str
    stable: float
    adapted: float


@dataclass(frozen=True)
class Changes:
    """How many predictions changed, and some of them; `counts[i][j]`: from stable class i to class j."""

    n_rows: int
    n_changed: int
    counts: tuple[tuple[int, ...], ...]
    examples: tuple[Example, ...]


@dataclass(frozen=True)
class CheckFact:
    """One assumption: where it was looked at, its number, its verdict, what to do.

    `bears` is whether the chosen answer rests on it.
    """

    name: str
    where: str
    verdict: str
    sentence: str
    remedy: str
    number: str
    bears: bool


@dataclass(frozen=True)
class Scores:
    """Scores by method with the target domain's own labels, which nothing was fitted to."""

    n_rows: int
    metrics: tuple[str, ...]
    by_method: Mapping[str, Mapping[str, float]]


@dataclass(frozen=True, eq=False)
class ReportFacts:
    """The contents of a report.

    `prior` has the class shares here as f_S estimates them, `shares` those that the answer was moved to, if
    it was; `features` says what became of each unstable feature, `stable_features` of each stable one;
    `estimated` has the scores to expect of the answer, with their intervals.
    """

    title: str
    source: str
    classes: tuple[str, ...]
    stable_names: tuple[str, ...]
    unstable_names: tuple[str, ...]
    decision: str
    code: str
    reason: str
    headline: Headline
    prior: tuple[float, ...]
    shares: tuple[float, ...] | None
    informativeness: float
    training: TrainingFacts
    checks: tuple[CheckFact, ...]
    changes: Changes
    scores: Scores | None
    remarks: tuple[str, ...]
    missing: tuple[tuple[str, tuple[float, ...], float], ...]
    p_value: float | None
    stable_p_value: float | None
    features: tuple[FeatureMeaning, ...]
    stable_features: tuple[FeatureMeaning, ...]
    estimated: Performance | None
    priced: bool
    n_labelled: int
    version: str = sfboost.__version__

    def to_dict(self) -> dict[str, Any]:
        """What the page shows, as plain values; docs/command-line.md says what each key holds."""
        estimated, ends = self.estimated, ("value", "lower", "upper")
        return {
            "title": self.title,
            "decision": self.decision,
            "code": self.code,
            "reason": self.reason,
            "headline": asdict(self.headline),
            "rows": self.changes.n_rows,
            "changed": self.changes.n_changed,
            "labelled": self.n_labelled,
            "classes": self.classes,
            "prior": self.prior,
            "shares": self.shares,
            "informativeness": self.informativeness,
            "p_value": self.p_value,
            "stable_p_value": self.stable_p_value,
            "features": [vars(feature) for feature in self.features],
            "stable_features": [vars(feature) for feature in self.stable_features],
            "reversed": [one.name for one in (*self.features, *self.stable_features) if has_turned(one)],
            "checks": [vars(check) for check in self.checks],
            "estimated": None if estimated is None else {end: getattr(estimated, end) for end in ends},
            "scores": None if self.scores is None else self.scores.by_method,
            "evaluation": self.training.evaluation,
            "proposal": self.training.proposal,
            "missing": {name: {"source": shares, "target": here} for name, shares, here in self.missing},
            "remarks": self.remarks,
        }


def make_facts(
    adapted: AdaptedClassifier,
    training: TrainingFacts,
    X: pd.DataFrame,
    *,
    title: str = "The target domain",
    source: str = "",
    y: npt.NDArray[Any] | None = None,
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
    cells : rows as they were given, optional
        To show examples of changed predictions; None shows none.
    missing : mapping, optional
        Share of missing cells here, by column of the table.
    """
    model, shift = adapted.model, adapted.shift_
    stable, answer, costs = model.predict_stable_proba(X), adapted.predict_proba(X), model._costs()
    classes = tuple(str(name) for name in adapted.classes_)
    changes = find_changes(classes, stable, answer, cells, costs)
    features, stable_features = tell_features(adapted, X)
    return ReportFacts(
        title=title,
        source=source,
        classes=classes,
        stable_names=model.stable_columns_.sources,
        unstable_names=model.unstable_columns_.sources or model.unstable_columns_.names,
        decision=adapted.decision_,
        code=adapted.reason_.code,
        reason=str(adapted.reason_),
        headline=headline(adapted, changes, features, stable_features, unsure=training.nothing_stable),
        prior=tuple(adapted.prior_.tolist()),
        shares=None if shift is None or shift.shares is None else tuple(here for _, _, here in shift.shares),
        informativeness=adapted.informativeness_,
        training=training,
        checks=all_checks(adapted, training, X),
        changes=changes,
        scores=None if y is None else _scores(adapted, stable, answer, X, y),
        remarks=(*remarks, *adapted.warnings_),
        missing=_missing(training, missing or {}),
        p_value=None if shift is None else shift.unstable.p_value,
        stable_p_value=None if shift is None or shift.stable is None else shift.stable.p_value,
        features=features,
        stable_features=stable_features,
        estimated=estimate(adapted, X),
        priced=costs is not None,
        n_labelled=adapted.adaptation.n_labelled,
    )


def tell_features(
    adapted: AdaptedClassifier, X: Any
) -> tuple[tuple[FeatureMeaning, ...], tuple[FeatureMeaning, ...]]:
    """What became of each unstable and of each stable feature; nothing where no test could be made."""
    shift, record = adapted.shift_, adapted.model.training_.record
    rows = None if shift is None else adapted.model.answer_rows(X)
    if shift is None or rows is None:
        return (), ()
    unstable = feature_meanings(record.reference, rows, shift.unstable)
    if shift.stable is None:
        return unstable, ()
    return unstable, feature_meanings(record.stable_reference, rows.swapped(), shift.stable)


def find_changes(
    classes: Sequence[str],
    stable: FloatArray,
    adapted: FloatArray,
    cells: Sequence[Mapping[str, Any]] | None,
    costs: FloatArray | None = None,
) -> Changes:
    """Compare two predictions of the same rows.

    Parameters
    ----------
    stable, adapted : arrays of shape (n, K)
    cells : the rows as they were given, or None to show none of them
    costs : array of shape (K, K), optional
        Of wrong decisions: predicted classes are then the cheapest ones.
    """
    before, after = decided(stable, costs), decided(adapted, costs)
    counts = np.zeros((len(classes), len(classes)), dtype=int)
    np.add.at(counts, (before, after), 1)
    changed = np.flatnonzero(before != after)
    moved = adapted[changed, after[changed]] - stable[changed, after[changed]]
    # The surest changes first; ties keep the order of the table.
    chosen = changed[np.argsort(-moved, kind="stable")][:_MOST_EXAMPLES] if cells is not None else ()
    examples = tuple(
        Example(
            row=int(i) + 1,
            cells={name: _shown(value) for name, value in list(cells[i].items())[:_MOST_CELLS]},  # type: ignore[index]
            stable_class=classes[before[i]],
            adapted_class=classes[after[i]],
            stable=float(stable[i, after[i]]),
            adapted=float(adapted[i, after[i]]),
        )
        for i in chosen
    )
    return Changes(len(stable), len(changed), tuple(map(tuple, counts.tolist())), examples)


def _shown(value: Any) -> str:
    if value is None or value != value:
        return "–"
    return in_digits(value) if isinstance(value, float) else str(value)[:40]


def estimate(adapted: AdaptedClassifier, X: Any) -> Performance | None:
    """Scores of the answer without labels, where source domains say how far off such figures are.

    Not where a feature shifted; nor where every row is labelled, and the labels say how good the answer is.
    """
    best = adapted.best
    if best is None or not best.as_in_training or adapted.adaptation.n_labelled == len(X):
        return None
    if best.shift.side != "nothing":
        return None
    return performance_without_labels(adapted, X, labels_from=ANSWER, cost=adapted.model._costs())[ANSWER]


def all_checks(adapted: AdaptedClassifier, training: TrainingFacts, X: pd.DataFrame) -> tuple[CheckFact, ...]:
    """The checks of training as they were kept, then those of the new rows."""
    new = new_rows(adapted.model, X)
    here = [result.to_dict() for result in diagnose(new=new, random_state=adapted.model.random_state or 0)]
    found = [("source domains", result) for result in training.checks]
    found += [("target domain", result) for result in here]
    bearing = _bearing(adapted)
    names = [result["check"].removesuffix(", new domain") for _, result in found]
    return tuple(
        CheckFact(
            name=name,
            where=where,
            verdict=result["verdict"],
            sentence=result["sentence"],
            remedy=result["remedy"],
            number=_number(result),
            bears=name in bearing,
        )
        for name, (where, result) in zip(names, found, strict=True)
    )


def _bearing(adapted: AdaptedClassifier) -> frozenset[str]:
    """The names of the checks that bear on the answer; on a mixture all that bear on a part of it."""
    if adapted.best is None:
        return BEARING["stable" if adapted.decision_ == "kept stable" else "boosted"]
    return frozenset().union(*(BEARING.get(name, _EVERY_CHECK) for name in adapted.best.choice.weights))


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
    """Column, shares by source domain and here; those that moved the most first."""
    nowhere = [0.0] * len(training.domains)
    rows = [
        (name, tuple(training.missing.get(name, nowhere)), here.get(name, 0.0))
        for name in dict.fromkeys((*training.missing, *here))
    ]
    return tuple(sorted(rows, key=lambda row: -abs(row[2] - np.mean(row[1] or 0.0))))


def _scores(
    adapted: AdaptedClassifier, stable: FloatArray, answer: FloatArray, X: pd.DataFrame, y: npt.NDArray[Any]
) -> Scores | None:
    known = np.array([label is not None and label == label for label in y.tolist()])
    if not known.any():
        return None
    position = class_positions(adapted.classes_, np.array(y[known].tolist()))
    proba = {"stable": stable, ANSWER: answer}
    rows = adapted.model.answer_rows(X)
    if rows is not None:
        proba["pooled"] = np.exp(rows.log_pooled)
    costs = adapted.model._costs()
    scores = {method: score_predictions(position, values[known], costs) for method, values in proba.items()}
    return Scores(int(known.sum()), (*METRICS, *(["cost"] if costs is not None else [])), scores)
