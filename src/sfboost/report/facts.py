"""Everything that a report shows, as plain numbers: the decision, what moved, what changed, what holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

import sfboost
from sfboost.adaptation.costs import decided
from sfboost.adaptation.explanation import in_digits
from sfboost.boosting import METRICS, AdaptedClassifier, performance_without_labels, score_predictions
from sfboost.boosting.diagnosing import new_rows
from sfboost.boosting.evaluation import class_positions, pooled_proba
from sfboost.boosting.scored_domains import ANSWER
from sfboost.diagnostics import Performance, diagnose
from sfboost.diagnostics.result import p_in_words
from sfboost.marginal.probabilities import FloatArray
from sfboost.report.training import TrainingFacts, raw_slopes
from sfboost.report.words import Headline, headline
from sfboost.shift.by_feature import FeatureMeaning, feature_meanings

if TYPE_CHECKING:
    import pandas as pd

#: Features that are shown for a class; the others are counted.
MOST_SHOWN = 12
_MOST_CLASSES, _MOST_EXAMPLES, _MOST_CELLS = 6, 8, 8
# A slope below this, per standard deviation, changes log-odds too little to call it a direction.
_FLAT = 0.1
_REACH = 1.64


@dataclass(frozen=True)
class FeatureStory:
    """One unstable feature, in log-odds per standard deviation of training.

    Attributes
    ----------
    name : str
    training : tuple of float or None
        By training domain; None where it did not vary.
    here, error : float or None
        In the new domain, learned without labels, and its standard error conditional on the stable predictor.
    change : str
        In words: "reversed", "as in training", ...
    """

    name: str
    training: tuple[float | None, ...]
    here: float | None
    error: float | None
    change: str

    @property
    def reversed(self) -> bool:
        """Whether it says the opposite here of what it said in every training domain."""
        return self.change == "reversed"

    @property
    def size(self) -> float:
        """How much there is to tell: the largest slope anywhere."""
        return max((abs(v) for v in (*self.training, self.here) if v is not None), default=0.0)


@dataclass(frozen=True)
class ClassStory:
    """The features of one class: of the second one, if there are two."""

    label: str
    features: tuple[FeatureStory, ...]
    n_hidden: int


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
    """The contents of a report.

    `prior` has the class shares here as f_S estimates them, `shares` those that the answer was moved to, if
    it was; `meanings` are of the unstable features, `stable_meanings` of the stable ones.
    """

    title: str
    source: str
    classes: tuple[str, ...]
    stable_features: tuple[str, ...]
    unstable_features: tuple[str, ...]
    headline: Headline
    prior: tuple[float, ...]
    shares: tuple[float, ...] | None
    confusion: tuple[tuple[float, ...], ...]
    informativeness: float
    stories: tuple[ClassStory, ...]
    training: TrainingFacts
    checks: tuple[CheckFact, ...]
    leak: float | None
    leak_source: str
    break_even: float | None
    changes: Changes
    scores: Scores | None
    remarks: tuple[str, ...]
    missing: tuple[tuple[str, tuple[float, ...], float], ...]
    meanings: tuple[FeatureMeaning, ...]
    stable_meanings: tuple[FeatureMeaning, ...]
    foretold: Mapping[str, Performance] | None
    priced: bool
    n_labelled: int
    version: str = sfboost.__version__


def make_facts(
    adapted: AdaptedClassifier,
    training: TrainingFacts,
    X: pd.DataFrame,
    *,
    title: str = "The new domain",
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
    model, guard = adapted.model, adapted.adaptation.guard
    stable, joint, costs = model.predict_proba(X), adapted.predict_proba(X), model._costs()
    classes = tuple(str(name) for name in adapted.classes_)
    changes = find_changes(classes, stable, joint, cells, costs)
    stories = tell_slopes(adapted, training)
    meanings, stable_meanings = tell_meanings(adapted, X)
    best = adapted.best
    return ReportFacts(
        title=title,
        source=source,
        classes=classes,
        stable_features=model.stable_columns_.sources,
        unstable_features=model.unstable_columns_.sources or model.unstable_columns_.names,
        headline=headline(adapted, changes, stories, meanings, stable_meanings),
        prior=tuple(adapted.prior_.tolist()),
        shares=tuple(best.shares.tolist()) if best is not None and best.shares_moved else None,
        confusion=tuple(map(tuple, adapted.confusion_.tolist())),
        informativeness=adapted.informativeness_,
        stories=stories,
        training=training,
        checks=all_checks(adapted, training, X),
        leak=adapted.leak_,
        leak_source="" if guard is None else guard.leak_source,
        break_even=adapted.break_even_,
        changes=changes,
        scores=None if y is None else _scores(adapted, stable, joint, X, y),
        remarks=(*remarks, *adapted.warnings_),
        missing=_missing(training, missing or {}),
        meanings=meanings,
        stable_meanings=stable_meanings,
        foretold=foretold(adapted, X),
        priced=costs is not None,
        n_labelled=adapted.adaptation.n_labelled,
    )


def tell_meanings(
    adapted: AdaptedClassifier, X: Any
) -> tuple[tuple[FeatureMeaning, ...], tuple[FeatureMeaning, ...]]:
    """What became of each unstable and of each stable feature; nothing where no test was asked."""
    best, record = adapted.best, adapted.model.training_.record
    rows = None if best is None else adapted.model.answer_rows(X)
    if best is None or rows is None:
        return (), ()
    unstable = feature_meanings(record.reference, rows, best.change)
    if best.stable_change is None:
        return unstable, ()
    return unstable, feature_meanings(record.stable_reference, rows.swapped(), best.stable_change)


def tell_slopes(adapted: AdaptedClassifier, training: TrainingFacts) -> tuple[ClassStory, ...]:
    """What each unstable feature did in each training domain and does here, the steepest first."""
    here, error = _slopes_here(adapted)
    labels = [str(name) for name in adapted.classes_]
    labels = labels[1:] if len(labels) == 2 else labels[:_MOST_CLASSES]
    stories = []
    for k, label in enumerate(labels):
        features = []
        for j, (name, unit) in enumerate(
            zip(adapted.model.unstable_columns_.names, training.units, strict=True)
        ):
            before = tuple(
                None if domain.slopes is None else _times(domain.slopes[k][j], unit)
                for domain in training.domains
            )
            now = None if here is None else _times(here[k][j], unit)
            spread = None if error is None or now is None else float(error[k, j] * unit)
            features.append(FeatureStory(name, before, now, spread, change_in_words(before, now, spread)))
        features.sort(key=lambda story: -story.size)
        stories.append(ClassStory(label, tuple(features[:MOST_SHOWN]), max(0, len(features) - MOST_SHOWN)))
    return tuple(stories)


def _slopes_here(adapted: AdaptedClassifier) -> tuple[list[list[float | None]] | None, FloatArray | None]:
    """Raw slopes of the head, also of one that the guard withheld, and their standard errors."""
    adaptation = adapted.adaptation
    learned = adaptation.unstable or adaptation.withheld
    coef = None if learned is None else getattr(learned.head, "coef_", None)
    if learned is None or coef is None or adaptation.standardizer is None:
        return None, None
    if learned.temperature is not None:
        coef = coef / learned.temperature.temperature
    uncertain = adaptation.uncertainty
    error = None if uncertain is None or uncertain.coef is None else uncertain.coef.standard_error
    return raw_slopes(np.asarray(coef), adaptation.standardizer.scale), error


def _times(slope: float | None, unit: float) -> float | None:
    return None if slope is None else float(slope * unit)


def change_in_words(training: tuple[float | None, ...], here: float | None, error: float | None) -> str:
    """What became of a feature, beyond sampling error.

    Examples
    --------
    >>> change_in_words((0.9, 1.2), -0.8, 0.2), change_in_words((0.9, -1.2), 0.5, 0.1)
    ('reversed', 'differed between training domains')
    """
    if here is None:
        return "not learned here"
    signs = {_sign(value, 0.0) for value in training if value is not None} - {0}
    now = _sign(here, _REACH * (error or 0.0))
    if len(signs) > 1:
        return "differed between training domains"
    if now == 0:
        return "says little here" if signs else "says little anywhere"
    if not signs:
        return "speaks only here"
    return "as in training" if now in signs else "reversed"


def _sign(value: float, doubt: float) -> int:
    return 0 if abs(value) < max(_FLAT, doubt) else int(np.sign(value))


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
    chosen = changed[np.argsort(-moved, kind="stable")][:_MOST_EXAMPLES]
    examples = (
        []
        if cells is None
        else [
            Example(
                row=int(i) + 1,
                cells={name: _shown(value) for name, value in list(cells[i].items())[:_MOST_CELLS]},
                stable_class=classes[before[i]],
                adapted_class=classes[after[i]],
                stable=float(stable[i, after[i]]),
                adapted=float(adapted[i, after[i]]),
            )
            for i in chosen
        ]
    )
    return Changes(len(stable), len(changed), tuple(map(tuple, counts.tolist())), tuple(examples))


def _shown(value: Any) -> str:
    if value is None or value != value:
        return "–"
    return in_digits(value) if isinstance(value, float) else str(value)[:40]


def foretold(adapted: AdaptedClassifier, X: Any) -> Mapping[str, Performance] | None:
    """Scores here without labels, where own domains say how far off such figures are.

    Not where every row is labelled: the labels themselves say how good an answer is.
    """
    if adapted.adaptation.n_labelled == len(X):
        return None
    if adapted.best is None or not adapted.best.as_in_training:
        return None
    return performance_without_labels(adapted, X, labels_from="answer", cost=adapted.model._costs())


def all_checks(adapted: AdaptedClassifier, training: TrainingFacts, X: pd.DataFrame) -> tuple[CheckFact, ...]:
    """The checks of training as they were kept, then those of the new rows."""
    new = new_rows(adapted.model, X)
    here = [result.to_dict() for result in diagnose(new=new, random_state=adapted.model.random_state or 0)]
    found = [("training domains", result) for result in training.checks]
    return tuple(
        CheckFact(
            name=result["check"].removesuffix(", new domain"),
            where=where,
            verdict=result["verdict"],
            sentence=result["sentence"],
            remedy=result["remedy"],
            number=_number(result),
        )
        for where, result in (*found, *(("new domain", result) for result in here))
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


def _scores(
    adapted: AdaptedClassifier,
    stable: FloatArray,
    joint: FloatArray,
    X: pd.DataFrame,
    y: npt.NDArray[Any],
) -> Scores | None:
    known = np.array([label is not None and label == label for label in y.tolist()])
    if not known.any():
        return None
    position = class_positions(adapted.classes_, np.array(y[known].tolist()))
    proba = {"stable": stable, ANSWER: joint}
    if adapted.model.pooled_ is not None:
        proba["pooled"] = pooled_proba(adapted.model, X)
    costs = adapted.model._costs()
    scores = {method: score_predictions(position, values[known], costs) for method, values in proba.items()}
    return Scores(int(known.sum()), (*METRICS, *(["cost"] if costs is not None else [])), scores)
