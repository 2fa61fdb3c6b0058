"""What would adapting have gained in the source domains? Each is left out in turn, its labels hidden."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from joblib import Parallel, delayed
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import _safe_indexing

from sfboost.adaptation.decision import unwarned
from sfboost.adaptation.engine import adapt_rows
from sfboost.adaptation.scores import LOSSES, METRICS, check_metric
from sfboost.boosting.columns import tell_before_many_fits
from sfboost.boosting.metrics import score_predictions
from sfboost.boosting.scored_domains import ANSWER, COMPARED, SKIPPED, DomainEvaluation, DomainScores, skipped
from sfboost.diagnostics.rows import check_domain
from sfboost.frames import EncodingWarning
from sfboost.heads import SoftLogisticRegression
from sfboost.marginal.probabilities import FloatArray, IntArray

if TYPE_CHECKING:
    from sfboost.boosting.estimator import StableFeatureBoosting


_LOG = logging.getLogger(__name__)
_FEWEST_ROWS = 10
#: Up to so many domains are left out one by one, and more in so many groups: a fit without one of a hundred
#: domains is almost the fit without five of them.
MOST_FITS = 20
# Of a domain's own labels, so that no row is predicted by a head that saw it; half of a long one is plenty.
_FOLDS, _FOLDS_OF_MANY, _MANY = 5, 2, 20_000


def evaluate_domains(
    model: StableFeatureBoosting,
    X: Any,
    y: Any,
    sample_domain: Any,
    sample_weight: Any,
    answer: str,
    metric: str | None,
) -> DomainEvaluation:
    """Leave each domain out in turn; see `StableFeatureBoosting.evaluate`."""
    domain = np.asarray(sample_domain, dtype=object)
    X = X if hasattr(X, "shape") else np.asarray(X)
    labels = np.asarray(y)
    if domain.shape != (X.shape[0],) or labels.shape != (X.shape[0],):
        raise ValueError(
            f"X has {X.shape[0]} rows, y has shape {labels.shape} and sample_domain {domain.shape}: "
            "pass one label and one domain per row."
        )
    check_domain(domain, len(labels))
    weight = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    names = list(dict.fromkeys(domain.tolist()))
    if len(names) < 2:
        raise ValueError(
            f"evaluate needs at least two domains, got {names}: with one there is none left to train on."
        )
    by = metric_of(model, metric)
    tell_before_many_fits(model, X)
    sizes = Counter(domain.tolist())
    playing = [name for name, n_rows in sizes.items() if n_rows >= _FEWEST_ROWS]

    def rounds() -> Iterator[Any]:
        begun = 0
        for together in turns(playing):
            begun += len(together)
            _LOG.info("Source domains left out: %d of %d begun", begun, len(playing))
            yield delayed(_score_turn)(
                model, X, labels, domain, together, weight=weight, answer=answer, by=by
            )

    made = {one.domain: one for turn in Parallel(n_jobs=model.n_jobs)(rounds()) for one in turn}
    scores = tuple(made.get(name) or too_few(name, sizes[name], by) for name in names)
    if all(one.decision == SKIPPED for one in scores):
        raise ValueError(f"No domain can be left out. {scores[0].domain}: {scores[0].reason}")
    return DomainEvaluation(scores)


def turns(names: Sequence[Any]) -> list[list[Any]]:
    """Domains that are left out together: each by itself, or groups where there are many.

    Examples
    --------
    >>> turns(["a", "b"]), len(turns(range(161))), turns(range(161))[0]
    ([['a'], ['b']], 20, [0, 20, 40, 60, 80, 100, 120, 140, 160])
    """
    return [list(names[first::MOST_FITS]) for first in range(min(MOST_FITS, len(names)))]


def too_few(name: Any, n_rows: int, metric: str) -> DomainScores:
    """What is said of a domain that has too few rows to be left out and scored."""
    rows = "1 row is" if n_rows == 1 else f"{n_rows} rows are"
    return skipped(name, n_rows, f"{rows} too few to adapt to and to score", metric)


def _score_turn(
    model: StableFeatureBoosting,
    X: Any,
    labels: npt.NDArray[Any],
    domain: npt.NDArray[Any],
    together: Sequence[Any],
    *,
    weight: FloatArray | None,
    answer: str,
    by: str,
) -> list[DomainScores]:
    """Let each of some domains play the new one, with a clone of `model` that learned from all others."""
    places = {name: np.flatnonzero(domain == name) for name in together}
    try:
        with unwarned(EncodingWarning):  # told once of all rows, at the caller's own line
            fitted = fit_without(model, set(together), X, labels, domain, weight)
            scored = {
                name: compare_on_domain(fitted, _safe_indexing(X, rows), labels[rows], answer, by)
                for name, rows in places.items()
            }
        return [replace(scores, domain=name) for name, scores in scored.items()]
    except ValueError as error:  # the others lack a class, or rows: that must not stop the rest
        if len(together) == 1:
            return [skipped(together[0], len(places[together[0]]), str(error), by)]
    # Without all of them something is missing, such as a class that they alone have.
    alone: dict[str, Any] = {"weight": weight, "answer": answer, "by": by}
    return [one for name in together for one in _score_turn(model, X, labels, domain, [name], **alone)]


def metric_of(model: StableFeatureBoosting, metric: str | None = None) -> str:
    """By which answers are compared: what is asked for, or what the model's settings judge by."""
    by = model._choices(model.settings).yardstick("accuracy")
    return by.metric if metric is None else check_metric(metric, by.costs is not None)


def fit_without(
    model: StableFeatureBoosting,
    names: Collection[Any],
    X: Any,
    y: npt.NDArray[Any],
    domain: npt.NDArray[Any],
    weight: FloatArray | None = None,
) -> StableFeatureBoosting:
    """A clone of `model`, fitted to rows of other domains than `names`."""
    rest = np.flatnonzero([name not in names for name in domain.tolist()])
    fitted: StableFeatureBoosting = clone(model)
    if fitted.validation_domain is not None and fitted.validation_domain in names:
        fitted.set_params(validation_domain=None)
    part = None if weight is None else weight[rest]
    fitted._fit(_safe_indexing(X, rest), y[rest], domain[rest], part)
    return fitted


def compare_on_domain(
    fitted: StableFeatureBoosting,
    X_new: Any,
    y_new: Any,
    answer: str = "best",
    metric: str | None = None,
) -> DomainScores:
    """Score every method of `COMPARED` in one target domain, with a fitted model.

    Only `labelled` is given labels of it. A model without a classifier of all features has no pooled score.
    """
    y_new, by = np.asarray(y_new), metric_of(fitted, metric)
    if len(y_new) < _FEWEST_ROWS:
        return too_few(None, len(y_new), by)
    price = fitted._costs()
    position = class_positions(fitted.classes_, y_new)
    # The decision is in the result; a warning per domain would say it twice.
    with unwarned():
        adapted = fitted.adapt(X_new, answer=answer)
        labelled = labelled_proba(fitted, X_new, y_new)
    answers = dict(adapted.answers_ or {})
    if "stable" not in answers:
        answers["stable"] = fitted.predict_stable_proba(X_new)
    if "pooled" not in answers and (fitted.pooled_ is not None or fitted.components_ is not None):
        answers["pooled"] = fitted.predict_proba(X_new)  # with components f_S reads all columns
    given = adapted.predict_proba(X_new)
    if adapted.best is None and adapted.head_ is not None:
        answers["boosted"] = given
    proba = answers | {ANSWER: given, "labelled": labelled}
    scores = {
        name: score_predictions(position, said, price, None if name in COMPARED else by)
        for name, said in proba.items()
    }
    unknown = dict.fromkeys((*METRICS, by), float("nan"))
    return DomainScores(
        domain=None,
        n_rows=len(y_new),
        decision=adapted.decision_,
        reason=str(adapted.reason_),
        scores={method: scores.get(method, unknown) for method in COMPARED},
        p_value=float("nan") if adapted.shift_ is None else adapted.shift_.p_value,
        candidates={name: scores[name][by] for name in answers},
        shares=tuple((np.bincount(position, minlength=len(fitted.classes_)) / len(position)).tolist()),
        metric=by,
        moved="" if adapted.shift_ is None else adapted.shift_.verdict,
    )


def default_classifier(X: Any) -> Pipeline:
    """Logistic regression on standardised features (sparse ones are scaled only)."""
    return make_pipeline(StandardScaler(with_mean=not sparse.issparse(X)), LogisticRegression(max_iter=1000))


def class_positions(classes: npt.NDArray[Any], labels: npt.NDArray[Any]) -> IntArray:
    """Position of each label among the classes; a label that training never saw is refused."""
    unseen = set(labels.tolist()) - set(classes.tolist())
    if unseen:
        raise ValueError(
            f"The new domain has the classes {sorted(unseen, key=str)}, which no training domain has: "
            "drop those rows, or merge the classes."
        )
    return np.searchsorted(classes, labels)


def labelled_proba(fitted: StableFeatureBoosting, X: Any, y: npt.NDArray[Any]) -> FloatArray:
    """Adapted with the domain's own labels; every row predicted by a head that did not see it."""
    rng = np.random.default_rng(0)
    folds = rng.permutation(len(y)) % min(_FOLDS_OF_MANY if len(y) >= _MANY else _FOLDS, len(y))
    log_stable, unstable = fitted.stable_and_unstable(X)
    stable, choices = np.exp(log_stable), fitted._choices(fitted.settings)
    proba = np.empty((len(y), len(fitted.classes_)))
    for fold in np.unique(folds):
        inside, outside = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        head = adapt_rows(
            stable[inside],
            _safe_indexing(unstable, inside),
            choices,
            y=y[inside],
            classes=fitted.classes_,
            training=fitted.training_,
            refuse=False,
        )
        proba[outside] = np.exp(head.predict_log_proba(stable[outside], _safe_indexing(unstable, outside)))
        if len(y) > _MANY and head.cross_fit is not None and choices.head is None:
            # Of so many rows any four fifths want the same penalty.
            choices = replace(choices, l2="auto", head=SoftLogisticRegression(l2=head.cross_fit.l2))
    return proba


def adapted_scorer(metric: str = "accuracy", answer: str = "best") -> Callable[..., float]:
    """Make a scorer for `GridSearchCV` that adapts to the held-out rows without their labels.

    Use it with a splitter that holds out whole domains (`LeaveOneGroupOut`); rows of several domains may
    be told apart by passing `sample_domain` to the scorer. Losses are negated, so more is better.

    Examples
    --------
    >>> from sklearn.model_selection import GridSearchCV, LeaveOneGroupOut
    >>> from sfboost import Settings, StableFeatureBoosting
    >>> search = GridSearchCV(
    ...     StableFeatureBoosting(stable_features=[0], settings=Settings()),
    ...     {"settings__correction": ["likelihood", "posthoc"]},
    ...     scoring=adapted_scorer("log_loss"),
    ...     cv=LeaveOneGroupOut(),
    ... )
    """
    if metric not in METRICS:
        raise ValueError(f"metric={metric!r} is not known: use one of {list(METRICS)}.")
    return _AdaptedScorer(metric, answer)


@dataclass(frozen=True)
class _AdaptedScorer:
    """A picklable callable, so that it works with `n_jobs`."""

    metric: str
    answer: str

    def __call__(self, estimator: StableFeatureBoosting, X: Any, y: Any, sample_domain: Any = None) -> float:
        labels = np.asarray(y)
        domain = np.zeros(len(labels)) if sample_domain is None else np.asarray(sample_domain, dtype=object)
        values = []
        for name in dict.fromkeys(domain.tolist()):
            rows = np.flatnonzero(domain == name)
            with unwarned():
                adapted = estimator.adapt(_safe_indexing(X, rows), answer=self.answer)
            position = class_positions(estimator.classes_, labels[rows])
            values.append(
                score_predictions(position, adapted.predict_proba(_safe_indexing(X, rows)))[self.metric]
            )
        return float(np.mean(values)) * (-1.0 if self.metric in LOSSES else 1.0)
