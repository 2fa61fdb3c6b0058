"""Between the estimator and the answers: the pooled classifier, and own domains that play the new one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from joblib import Parallel, delayed
from scipy import sparse
from scipy.special import expit
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import _safe_indexing

from sfboost.adaptation.checks import LARGEST
from sfboost.adaptation.settings import Settings
from sfboost.answers import Experience
from sfboost.answers.choosing import FIRST_DOUBT
from sfboost.boosting.columns import Columns, encoded_columns
from sfboost.boosting.evaluation import default_classifier
from sfboost.boosting.rows import enough_rows
from sfboost.calibration import Temperature, fit_temperature
from sfboost.change import DomainData, Reference, change_in
from sfboost.diagnostics.rows import domain_numbers, rows_by_domain
from sfboost.encoding import is_frame
from sfboost.heads import fit_with_weight
from sfboost.marginal.probabilities import FloatArray, IntArray

if TYPE_CHECKING:
    from sfboost.boosting.estimator import StableFeatureBoosting


# Predictors are trained without each of so many groups of domains.
_MOST_GROUPS = 5
# Rows of each domain that its moments are measured on, and fewer than which say nothing.
_MOST_ROWS, _FEWEST_ROWS = 5000, 10
#: A forest that never saw a class among its votes is not certain: log 1e-6 is as sure as it gets.
LEAST_PROBABILITY = 1e-6
_DEFAULT = "logistic regression"
# Beyond so many columns second moments are no longer cheap.
_MOST_COLUMNS = 1000


@dataclass(frozen=True, eq=False)
class PooledClassifier:
    """One classifier of all features, trained as if nothing changed between domains.

    Attributes
    ----------
    estimator : fitted classifier of the stable and the unstable columns side by side, as numbers
    columns : tuple of two Columns
        The stable and the unstable ones, as numbers.
    classes : array of shape (K,)
    temperature : Temperature
        Found on own domains that the classifier was not trained on.
    learner : str
        What it is, in words.
    """

    estimator: Any
    columns: tuple[Columns, Columns]
    classes: npt.NDArray[Any]
    temperature: Temperature
    learner: str

    def numbers(self, X: Any) -> tuple[FloatArray, FloatArray] | None:
        """Stable and unstable columns as numbers, or None if they are not."""
        return numeric_parts(part.take(X) for part in self.columns)

    def beside(self, S: FloatArray) -> Asker:
        """What it says of rows with these stable features."""
        return Asker(self.estimator, S, self.classes, self.temperature)

    def log_proba(self, S: FloatArray, U: FloatArray) -> FloatArray:
        """Calibrated log-probabilities."""
        return self.beside(S)(U)


@dataclass(frozen=True, eq=False)
class Asker:
    """What a pooled classifier says of rows if their unstable features are others: call it with U.

    Attributes
    ----------
    estimator : fitted classifier of S and U side by side
    stable : array of shape (n, p)
    classes : array of shape (K,)
    temperature : Temperature
    """

    estimator: Any
    stable: FloatArray
    classes: npt.NDArray[Any]
    temperature: Temperature

    def __call__(self, U: FloatArray, positions: IntArray | None = None) -> FloatArray:
        """Log-probabilities of the rows, or of those at some positions."""
        S = self.stable if positions is None else self.stable[positions]
        return self.temperature.apply(raw_log_proba(self.estimator, np.hstack([S, U]), self.classes))


@dataclass(frozen=True, eq=False)
class _Played:
    """Rows of an own domain, as predictors see it that were trained without it."""

    name: Any
    rows: IntArray
    pooled: Any
    log_stable: FloatArray
    log_pooled: FloatArray


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


def pooled_learner(model: StableFeatureBoosting, X: Any) -> tuple[Any, str]:
    """What is fitted to all columns side by side, and what it is in words."""
    if model.pooled is not None:
        return clone(model.pooled), f"your pooled {_name(model.pooled)}"
    learner = model.stable
    if learner is None or isinstance(learner, FrozenEstimator):
        return default_classifier(np.empty(0)), _DEFAULT
    if is_frame(X) or _names_columns(learner):
        # Its own preparation is of other columns; scaling hurts none, and helps linear ones.
        last = learner[-1] if isinstance(learner, Pipeline) else learner
        return make_pipeline(StandardScaler(), clone(last)), f"a {_name(last)} like your stable one"
    return clone(learner), f"a {_name(learner)} like your stable one"


def _name(estimator: Any) -> str:
    last = estimator[-1] if isinstance(estimator, Pipeline) else estimator
    return type(last).__name__


def _names_columns(estimator: Any) -> bool:
    """Whether an estimator has a step that names the columns it reads."""
    if isinstance(estimator, ColumnTransformer):
        return True
    params = estimator.get_params(deep=True).values() if hasattr(estimator, "get_params") else ()
    return any(isinstance(value, ColumnTransformer) for value in params)


def learn_answers(
    model: StableFeatureBoosting,
    X: Any,
    taken: tuple[Any, Any],
    y: IntArray,
    domain: npt.NDArray[Any],
    weight: FloatArray | None,
    choices: Settings,
    choosing: bool = True,
    facing: Sequence[Any] | None = None,
) -> tuple[PooledClassifier | None, Experience | None]:
    """Fit the pooled classifier, and let own domains play the new one; None for what cannot be had.

    `taken` are the stable and the unstable columns of X, as the model reads them. `facing` are the rows of
    the only domains that the model will ever adapt to, if they are known: where nothing in them changed,
    nobody asks what would help after a change, and own domains play as they are; and nobody asks how good an
    answer is. So it is without `choosing`, too: then own domains only say what is usual.
    """
    try:
        columns = (encoded_columns(model.stable_columns_, X), encoded_columns(model.unstable_columns_, X))
    except ValueError:  # a user's pipeline reads what is no category
        return None, None
    parts = _also_numbers(columns, X, model, taken)
    if parts is None:
        return None, None
    both = np.hstack(parts)
    learner, words = pooled_learner(model, X)

    def pooled_on(rows: IntArray) -> Any:
        if len(rows) < len(y) and words == _DEFAULT:
            rows = enough_rows(rows, y, both.shape[1])
        part = None if weight is None else weight[rows]
        return fit_with_weight(clone(learner), both[rows], model.classes_[y[rows]], part)

    try:
        everywhere = pooled_on(np.arange(len(y)))
    except ValueError:
        if model.pooled is not None:
            raise
        # The user's learner is made for the stable columns alone.
        learner, words = default_classifier(both), _DEFAULT
        everywhere = pooled_on(np.arange(len(y)))
    plain = PooledClassifier(everywhere, columns, model.classes_, Temperature(), words)
    places = [(name, rows) for name, rows in rows_by_domain(domain) if len(rows) >= _FEWEST_ROWS]
    if len(places) < 2:
        return plain, None
    stable_X = taken[0]

    def play_group(group: list[tuple[Any, IntArray]]) -> list[_Played]:
        others = np.ones(len(y), dtype=bool)
        others[np.concatenate([rows for _, rows in group])] = False
        rest = np.flatnonzero(others)
        if len(np.unique(y[rest])) < 2:
            return []
        stable = model._stable_learner(stable_X).fit_judge(stable_X, y, weight, rest)
        pooled = pooled_on(rest)
        made = []
        for name, rows in group:
            some = np.sort(np.random.default_rng(len(rows)).permutation(rows)[:_MOST_ROWS])
            raw = raw_log_proba(stable, _safe_indexing(stable_X, some), model.classes_)
            log_pooled = raw_log_proba(pooled, both[some], model.classes_)
            made.append(_Played(name, some, pooled, model.temperature_.apply(raw), log_pooled))
        return made

    groups = [places[first::_MOST_GROUPS] for first in range(min(_MOST_GROUPS, len(places)))]
    by_group = Parallel(n_jobs=model.n_jobs)(delayed(play_group)(group) for group in groups)
    order = [name for name, _ in places]
    made = sorted((one for group in by_group for one in group), key=lambda one: order.index(one.name))
    if len(made) < 2:
        return plain, None
    some = np.concatenate([one.rows for one in made])
    row_weight = np.ones(len(y)) if weight is None else weight
    temperature = fit_temperature(
        np.concatenate([one.log_pooled for one in made]),
        y[some],
        domain=domain_numbers(domain[some])[1],
        sample_weight=row_weight[some],
    )
    S, U = parts
    rows = [
        DomainData(
            one.log_stable,
            U[one.rows],
            temperature.apply(one.log_pooled),
            S[one.rows],
            row_weight[one.rows] / row_weight[one.rows].sum(),
            ask=Asker(one.pooled, S[one.rows], model.classes_, temperature),
        )
        for one in made
    ]
    names, numbers = feature_groups(columns[1])
    pooled = PooledClassifier(everywhere, columns, model.classes_, temperature, words)
    experience = Experience.learn(
        rows,
        [y[one.rows] for one in made],
        [one.name for one in made],
        choices,
        names=names,
        groups=numbers,
        learner=words,
        changed=lambda reference: (
            choosing
            and (facing is None or any(_may_have_changed(model, pooled, rows, reference) for rows in facing))
        ),
        foretelling=choosing and facing is None,
    )
    return pooled, experience


def _may_have_changed(
    model: StableFeatureBoosting, pooled: PooledClassifier, X: Any, reference: Reference
) -> bool:
    """Whether what helped after changes will be asked for; see `sfboost.answers.choosing`."""
    X = model._check_input(X, reset=False)
    rows = new_rows_of(pooled, model, X, model._parts(X), np.ones(X.shape[0]))
    if rows is None:
        return False
    return change_in(reference, rows).p_value < FIRST_DOUBT


def new_rows_of(
    pooled: PooledClassifier,
    model: StableFeatureBoosting,
    X: Any,
    parts: tuple[FloatArray, Any, Any],
    sample_weight: FloatArray,
) -> DomainData | None:
    """Rows of a new domain as the answers want them; None if they are not numbers."""
    log_stable, stable_X, unstable_X = parts
    both = _also_numbers(pooled.columns, X, model, (stable_X, unstable_X))
    if both is None:
        return None
    S, U = both
    ask = pooled.beside(S)
    weight = sample_weight / sample_weight.sum()
    return DomainData(log_stable, U, ask(U), S, weight, ask=ask, given=unstable_X)


def feature_groups(columns: Columns) -> tuple[tuple[str, ...], list[int]]:
    """Name and number of the feature that each column belongs to: codes of a category are one feature."""
    # The encoder calls them "category=code".
    names = tuple(name.partition("=")[0] for name in columns.names)
    order = list(dict.fromkeys(names))
    return names, [order.index(name) for name in names]
