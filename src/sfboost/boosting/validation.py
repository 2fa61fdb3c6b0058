"""One classifier of all features, and leave-one-domain-out validation: what the decision knows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from joblib import Parallel, delayed
from scipy import sparse
from scipy.special import expit
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.linear_model._base import LinearClassifierMixin
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import _safe_indexing

from sfboost.adaptation.checks import LARGEST
from sfboost.boosting.columns import Columns, encoded_columns
from sfboost.boosting.evaluation import default_classifier
from sfboost.boosting.rows import enough_rows, make_splits
from sfboost.calibration import Temperature, fit_temperature
from sfboost.choice import SourceRecord
from sfboost.choice.mixture import Mixture, fit_mixture
from sfboost.diagnostics.rows import domain_numbers, rows_by_domain
from sfboost.frames import is_frame
from sfboost.heads import fit_with_weight
from sfboost.marginal.probabilities import FloatArray, IntArray
from sfboost.shift import DomainData

if TYPE_CHECKING:
    from sfboost.boosting.estimator import StableFeatureBoosting


# Classifiers are trained without each of so many groups of domains.
_MOST_GROUPS = 5
# Rows of each domain that are looked at, and fewer than which say nothing.
_MOST_ROWS, _FEWEST_ROWS = 5000, 10
#: A forest that never saw a class among its votes is not certain: log 1e-6 is as sure as it gets.
LEAST_PROBABILITY = 1e-6
_DEFAULT = "logistic regression"
# Of the rows of one source domain.
_FOLDS = 5
# Beyond so many columns second moments are no longer cheap.
_MOST_COLUMNS = 1000


@dataclass(frozen=True, eq=False)
class PooledClassifier:
    """One classifier of all features, trained as if nothing changed between domains; and one of X_U alone.

    Attributes
    ----------
    members : tuple of fitted classifiers of the stable and the unstable columns side by side, as numbers
    unstable : fitted classifier of the unstable columns alone
    columns : tuple of two Columns
        The stable and the unstable ones, as numbers.
    classes : array of shape (K,)
    mixture : Mixture
    unstable_temperature : Temperature
        Found on source domains that the classifiers were not trained on.
    learner : str
        What it is, in words.
    """

    members: tuple[Any, ...]
    unstable: Any
    columns: tuple[Columns, Columns]
    classes: npt.NDArray[Any]
    mixture: Mixture
    unstable_temperature: Temperature
    learner: str

    def numbers(self, X: Any) -> tuple[FloatArray, FloatArray] | None:
        """Stable and unstable columns as numbers, or None if they are not."""
        return numeric_parts(part.take(X) for part in self.columns)

    def log_proba(self, S: FloatArray, U: FloatArray) -> FloatArray:
        """Calibrated log-probabilities."""
        both = np.hstack([S, U])
        return self.mixture.apply([raw_log_proba(one, both, self.classes) for one in self.members])

    def rows(
        self, log_stable: FloatArray, S: FloatArray, U: FloatArray, weight: FloatArray, given: Any = None
    ) -> DomainData:
        """Rows as the decision sees them."""
        said = self.unstable_temperature.apply(raw_log_proba(self.unstable, U, self.classes))
        weight, pooled = weight / weight.sum(), self.log_proba(S, U)
        return DomainData(log_stable, U, pooled, S, weight, said, ask=self.log_proba, given=given)


@dataclass(frozen=True, eq=False)
class _LeftOut:
    """Rows of a source domain, as classifiers see it that were trained without it; not calibrated."""

    name: Any
    rows: IntArray
    members: tuple[Any, ...]
    unstable: Any
    log_stable: FloatArray
    log_members: tuple[FloatArray, ...]
    log_unstable: FloatArray


def _one_of(parts: list[_LeftOut], members: tuple[Any, ...], unstable: Any) -> _LeftOut:
    """Folds of one domain put together; asked about other values, what was fitted to all rows answers."""
    log_members = zip(*(part.log_members for part in parts), strict=True)
    return _LeftOut(
        parts[0].name,
        np.concatenate([part.rows for part in parts]),
        members,
        unstable,
        np.concatenate([part.log_stable for part in parts]),
        tuple(np.concatenate(said) for said in log_members),
        np.concatenate([part.log_unstable for part in parts]),
    )


def raw_log_proba(estimator: Any, X: Any, classes: npt.NDArray[Any]) -> FloatArray:
    """Log-probabilities in the order of `classes`; a class unseen by the estimator gets the floor."""
    given = _two_classes(estimator, X)
    if given is None:
        given = np.asarray(estimator.predict_proba(X), dtype=np.float64)
    proba = np.zeros((given.shape[0], len(classes)))
    proba[:, np.searchsorted(classes, estimator.classes_)] = given
    return np.log(np.maximum(proba, LEAST_PROBABILITY))


def scaled_logistic(estimator: Any) -> tuple[StandardScaler, LogisticRegression] | None:
    """Both steps of a logistic regression of scaled numbers, or None if it is another classifier."""
    steps = [step for _, step in estimator.steps] if type(estimator) is Pipeline else []
    if [type(step) for step in steps] != [StandardScaler, LogisticRegression]:
        return None
    return steps[0], steps[1]


def _two_classes(estimator: Any, X: Any) -> FloatArray | None:
    """What a logistic regression of scaled numbers says, or None if it is not that.

    It is asked about so many small sets of rows that scikit-learn's checks would take most of the time.
    """
    steps = scaled_logistic(estimator)
    if steps is None:
        return None
    scaler, last = steps
    plain = getattr(last, "multi_class", "deprecated") in ("auto", "deprecated") and len(last.classes_) == 2
    if not plain or type(X) is not np.ndarray or scaler.mean_ is None or scaler.scale_ is None:
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        logits = (X - scaler.mean_) @ (last.coef_[0] / scaler.scale_) + last.intercept_
    if not np.isfinite(logits).all():
        return None  # it has something to say about such rows
    second = expit(logits)
    return np.column_stack([1.0 - second, second])


def numeric_parts(taken_parts: Iterable[Any]) -> tuple[FloatArray, FloatArray] | None:
    """Both sets of columns, taken from rows, as dense numbers; None if they are not finite, or too many."""
    made = []
    for taken in taken_parts:
        if taken.shape[1] > _MOST_COLUMNS:
            return None
        try:
            numbers = np.asarray(taken.toarray() if sparse.issparse(taken) else taken, dtype=np.float64)
        except (TypeError, ValueError):
            return None
        if not (np.abs(numbers) <= LARGEST).all():
            return None
        made.append(numbers)
    return made[0], made[1]


def _also_numbers(
    columns: tuple[Columns, Columns], X: Any, model: StableFeatureBoosting, taken: tuple[Any, Any]
) -> tuple[FloatArray, FloatArray] | None:
    """Columns of X as numbers, of which the model has `taken` its own, which often are the same."""
    own = (model.stable_columns_, model.unstable_columns_)
    return numeric_parts(
        given if mine == part else part.take(X) for mine, part, given in zip(own, columns, taken, strict=True)
    )


def pooled_learners(model: StableFeatureBoosting, X: Any) -> tuple[tuple[Any, ...], str]:
    """What is fitted to all columns side by side, the base learner first, and what it is in words."""
    learner = model.learner
    if isinstance(learner, tuple | list):
        return tuple(map(clone, learner)), ""
    if isinstance(learner, str) and learner != "auto":
        raise ValueError(f"learner={learner!r} is not known: use 'auto', a classifier or a pair of them.")
    if learner not in (None, "auto"):
        return (clone(learner),), f"your {_name(learner)}"
    stable = model.stable
    if stable is None or isinstance(stable, FrozenEstimator):
        base, words = default_classifier(np.empty(0)), _DEFAULT
    else:
        words = f"a {_name(stable)} like your stable one"
        # Its own preparation is of other columns; scaling hurts none, and helps linear ones.
        last = stable[-1] if isinstance(stable, Pipeline) else stable
        other = is_frame(X) or _names_columns(stable)
        base = make_pipeline(StandardScaler(), clone(last)) if other else clone(stable)
    return ((base,), words) if learner is None else ((base, _companion(base, model.random_state)), "")


def _companion(base: Any, seed: int | None) -> Any:
    """A learner of another kind than the base: boosting beside a linear one, else logistic regression."""
    last = base[-1] if isinstance(base, Pipeline) else base
    if isinstance(last, LinearClassifierMixin):
        return HistGradientBoostingClassifier(max_iter=60, max_leaf_nodes=15, random_state=seed)
    return default_classifier(np.empty(0))


def _name(estimator: Any) -> str:
    last = estimator[-1] if isinstance(estimator, Pipeline) else estimator
    return type(last).__name__


def _names_columns(estimator: Any) -> bool:
    """Whether an estimator has a step that names the columns it reads."""
    if isinstance(estimator, ColumnTransformer):
        return True
    params = estimator.get_params(deep=True).values() if hasattr(estimator, "get_params") else ()
    return any(isinstance(value, ColumnTransformer) for value in params)


def learn_record(
    model: StableFeatureBoosting,
    X: Any,
    taken: tuple[Any, Any],
    y: IntArray,
    domain: npt.NDArray[Any],
    weight: FloatArray | None,
) -> tuple[PooledClassifier | None, SourceRecord | None]:
    """Fit the pooled classifier, and leave each source domain out in turn; None for what cannot be had.

    `taken` are the stable and the unstable columns of X, as the model reads them.
    """
    try:
        columns = (encoded_columns(model.stable_columns_, X), encoded_columns(model.unstable_columns_, X))
    except ValueError:  # a user's pipeline reads what is no category
        return None, None
    parts = _also_numbers(columns, X, model, taken)
    if parts is None:
        return None, None
    S, U = parts
    both = np.hstack(parts)
    learners, words = pooled_learners(model, X)

    def fitted(learner: Any, numbers: FloatArray, rows: IntArray) -> Any:
        if len(rows) < len(y) and model.stable is None and model.learner in (None, "auto"):
            rows = enough_rows(rows, y, numbers.shape[1])
        part = None if weight is None else weight[rows]
        return fit_with_weight(clone(learner), numbers[rows], model.classes_[y[rows]], part)

    every = np.arange(len(y))
    try:
        everywhere = tuple(fitted(one, both, every) for one in learners)
    except ValueError:
        if model.learner not in (None, "auto"):
            raise
        # The user's learner is made for the stable columns alone.
        learners, words = (default_classifier(both),), _DEFAULT
        everywhere = (fitted(learners[0], both, every),)
    alone = fitted(learners[0], U, every)
    even = Mixture(np.full(len(learners), 1.0 / len(learners)))
    plain = PooledClassifier(everywhere, alone, columns, model.classes_, even, Temperature(), words)
    places = [(name, rows) for name, rows in rows_by_domain(domain) if len(rows) >= _FEWEST_ROWS]

    def without(group: list[tuple[Any, IntArray]]) -> list[_LeftOut]:
        rest = np.setdiff1d(every, np.concatenate([rows for _, rows in group]))
        return judged(rest, group) if len(np.unique(y[rest])) > 1 else []

    def judged(rest: IntArray, group: list[tuple[Any, IntArray]]) -> list[_LeftOut]:
        stable = model._stable_learner(taken[0]).fit_judge(taken[0], y, weight, rest)
        members = tuple(fitted(one, both, rest) for one in learners)
        unstable = fitted(learners[0], U, rest)
        made = []
        for name, rows in group:
            some = np.sort(np.random.default_rng(len(rows)).permutation(rows)[:_MOST_ROWS])
            said = (
                raw_log_proba(stable, _safe_indexing(taken[0], some), model.classes_),
                tuple(raw_log_proba(one, both[some], model.classes_) for one in members),
                raw_log_proba(unstable, U[some], model.classes_),
            )
            made.append(_LeftOut(name, some, members, unstable, *said))
        return made

    turns = [places[first::_MOST_GROUPS] for first in range(min(_MOST_GROUPS, len(places)))]
    by_group = Parallel(n_jobs=model.n_jobs)(delayed(without)(group) for group in turns)
    order = [name for name, _ in places]
    left_out = sorted((one for group in by_group for one in group), key=lambda one: order.index(one.name))
    if len(left_out) < 2:  # nothing says what is usual: folds of all rows calibrate, and count as one domain
        splits = make_splits(y, np.zeros(len(y)), every, _FOLDS, model.random_state)
        if any(len(np.unique(y[inside])) < 2 for inside, _ in splits):
            return plain, None
        folds = [judged(inside, [(order[0] if order else "", outside)])[0] for inside, outside in splits]
        left_out = [_one_of(folds, everywhere, alone)]
    some = np.concatenate([one.rows for one in left_out])
    row_weight = np.ones(len(y)) if weight is None else weight

    numbers = domain_numbers(domain[some])[1]

    def calibrated(said: list[FloatArray]) -> Temperature:
        return fit_temperature(np.concatenate(said), y[some], domain=numbers, sample_weight=row_weight[some])

    said = [np.concatenate(part) for part in zip(*(one.log_members for one in left_out), strict=True)]
    if len(said) > 1 and len(left_out) > 1:
        mixture = fit_mixture(said, y[some], numbers, row_weight[some])
    else:
        mixture = Mixture.of(calibrated(said[:1]), len(said))
    if len(said) > 1:
        parts = mixture.weights / mixture.weights.sum()
        shown = [(part, _name(one)) for one, part in zip(learners, parts, strict=True) if part >= 0.005]
        named = [f"{100 * part:.0f} % {name}" for part, name in shown]
        words = ", ".join(named) if len(named) > 1 else shown[0][1]
    known = mixture, calibrated([one.log_unstable for one in left_out])
    rows = []
    for one in left_out:
        seen = PooledClassifier(one.members, one.unstable, columns, model.classes_, *known, words)
        log_stable = model.temperature_.apply(one.log_stable)
        rows.append(seen.rows(log_stable, S[one.rows], U[one.rows], row_weight[one.rows]))
    (stable_names, stable_groups), (names, groups) = (feature_groups(part) for part in columns)
    record = SourceRecord.learn(
        rows,
        [y[one.rows] for one in left_out],
        [one.name for one in left_out],
        names=names,
        groups=groups,
        stable_names=stable_names,
        stable_groups=stable_groups,
        pooled_name=words,
    )
    return PooledClassifier(everywhere, alone, columns, model.classes_, *known, words), record


def target_rows(
    pooled: PooledClassifier,
    model: StableFeatureBoosting,
    X: Any,
    parts: tuple[FloatArray, Any, Any],
    sample_weight: FloatArray,
) -> DomainData | None:
    """Rows of a target domain as the decision wants them; None if they are not numbers."""
    log_stable, stable_X, unstable_X = parts
    both = _also_numbers(pooled.columns, X, model, (stable_X, unstable_X))
    return None if both is None else pooled.rows(log_stable, *both, sample_weight, given=unstable_X)


def feature_groups(columns: Columns) -> tuple[tuple[str, ...], list[int]]:
    """Name and number of the feature that each column belongs to: codes of a category are one feature."""
    # The encoder calls them "category=code".
    names = tuple(name.partition("=")[0] for name in columns.names)
    order = list(dict.fromkeys(names))
    return names, [order.index(name) for name in names]
