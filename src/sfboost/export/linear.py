"""All numbers that a linear prediction needs, taken out of the objects that hold them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self, cast

import numpy as np
import numpy.typing as npt
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from sfboost.adaptation.fitting import UnstableModel
from sfboost.answers.candidates import BoostedAnswer, MendedAnswer, PooledAnswer, StableAnswer
from sfboost.answers.mending import Mending
from sfboost.answers.quiet import AveragedAnswer, ComponentsAnswer
from sfboost.answers.recalibrating import RecalibratedAnswer
from sfboost.boosting import AdaptedClassifier, StableFeatureBoosting
from sfboost.boosting.columns import Columns
from sfboost.boosting.playing import LEAST_PROBABILITY
from sfboost.calibration import Temperature
from sfboost.encoding import is_frame
from sfboost.marginal.correction import _LEAST_SLOPE
from sfboost.marginal.probabilities import FloatArray


@dataclass(frozen=True, eq=False)
class LinearMap:
    """Logits of some of the features, then a temperature.

    Attributes
    ----------
    columns : tuple of int
        Which of the features it reads.
    mean, scale : arrays of shape (d,)
        What is taken off each feature, and what it is divided by.
    coef : array of shape (K, d)
    intercept : array of shape (K,)
    temperature : float
    bias : array of shape (K,)
        log-softmax(log-softmax(logits) / temperature + bias) is what it says.
    """

    columns: tuple[int, ...]
    mean: FloatArray
    scale: FloatArray
    coef: FloatArray
    intercept: FloatArray
    temperature: float
    bias: FloatArray


@dataclass(frozen=True, eq=False)
class LinearScorer:
    """A prediction as linear maps and a few numbers.

    Attributes
    ----------
    features : tuple of str
        Columns of the matrix that is scored, in this order.
    classes : array of shape (K,)
    stable : LinearMap
        Its log-probabilities are floored at `least_probability` before the temperature. Where the answer is
        the pooled one, as it is or with changed features put back or dropped, it reads all features.
    unstable : LinearMap or None
        None where the stable predictor alone answers.
    divisor : array of shape (K,)
        The p of log f_S + log f_U − log p.
    posthoc : pair of float or None
        (ε₁₀, slope) of the post-hoc correction of two classes, or None.
    sources : tuple of Columns
        What makes the features of a frame.
    weight : float
    mixed_with : tuple of LinearScorer
        Where the answer is a blend: the others. Log-probabilities are added, each times its weight, and
        normalised.
    costs : array of shape (K, K) or None
        ``costs[y, j]`` of deciding j where the truth is y: the label is then the cheapest decision.
    """

    features: tuple[str, ...]
    classes: npt.NDArray[Any]
    stable: LinearMap
    least_probability: float
    unstable: LinearMap | None
    divisor: FloatArray
    posthoc: tuple[float, float] | None
    sources: tuple[Columns, ...]
    weight: float = 1.0
    mixed_with: tuple[LinearScorer, ...] = ()
    costs: FloatArray | None = None

    def matrix(self, X: Any) -> FloatArray:
        """The features of X, a frame or an array as the model takes it: what is to be scored."""
        if not is_frame(X) and len(self.features) == np.shape(X)[1]:
            return np.asarray(X, dtype=np.float64)
        made = np.column_stack([np.asarray(part.take(X), dtype=np.float64) for part in self.sources])
        names = [name for part in self.sources for name in part.names]
        return made[:, [names.index(name) for name in self.features]]


def linear_scorer(model: AdaptedClassifier | StableFeatureBoosting) -> LinearScorer:
    """The numbers of a fitted or adapted model; refused where something in it is not linear.

    Examples
    --------
    >>> import numpy as np, sfboost
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 300)
    >>> X = np.column_stack([y + rng.normal(size=300), rng.normal(size=300)])
    >>> model = sfboost.StableFeatureBoosting([0]).fit(X, y, sample_domain=["a"] * 300)
    >>> linear_scorer(model).stable.coef.shape
    (2, 1)
    """
    adapted = model if isinstance(model, AdaptedClassifier) else None
    fitted: Any = model if adapted is None else adapted.model
    if not isinstance(fitted, StableFeatureBoosting):
        raise ValueError(f"A {type(fitted).__name__} learns its features and is not linear in the rows.")
    if fitted.components_ is not None:
        raise ValueError(
            "A model along components reads every column twice, and is not exported: predict with it in "
            "Python, or export the logistic regression in its `stable_`."
        )
    return replace(_answer(_Parts.of(fitted), adapted), costs=fitted._costs())


def _answer(parts: _Parts, adapted: AdaptedClassifier | None) -> LinearScorer:
    if adapted is None:
        return parts.scorer(StableAnswer())
    if adapted.best is None:
        return parts.scorer(BoostedAnswer(StableAnswer(), cast(Any, adapted.adaptation)))
    best = adapted.best
    first, *others = (
        replace(parts.scorer(best.answers[name], name), weight=weight)
        for name, weight in best.choice.weights.items()
        if weight > 0.0
    )
    return replace(first, mixed_with=tuple(others))


@dataclass(frozen=True, eq=False)
class _Parts:
    """What all answers of a fitted model are made of."""

    fitted: StableFeatureBoosting
    sources: tuple[Columns, ...]
    features: tuple[str, ...]
    stable_at: tuple[int, ...]
    unstable_at: tuple[int, ...]

    @classmethod
    def of(cls, fitted: StableFeatureBoosting) -> Self:
        sources = (fitted.stable_columns_, fitted.unstable_columns_)
        features = _features(sources)
        place = {name: j for j, name in enumerate(features)}
        return cls(fitted, sources, features, *(tuple(place[n] for n in part.names) for part in sources))

    def scorer(
        self, answer: Any, name: str = "stable", learned_at: tuple[int, ...] | None = None
    ) -> LinearScorer:
        """One answer as numbers; what it may learn anew is the unstable features unless `learned_at` says."""
        if isinstance(answer, AveragedAnswer) and len(self.fitted.classes_) == 2:
            return self._averaged(answer)
        if isinstance(answer, RecalibratedAnswer):
            return _with_temperature(self.scorer(answer.base, name, learned_at), answer.temperature)
        if isinstance(answer, ComponentsAnswer):
            return self._along_components(answer)
        boosted = answer if isinstance(answer, BoostedAnswer) else None
        classes = self.fitted.classes_
        shared: dict[str, Any] = {
            **{"features": self.features, "classes": classes, "sources": self.sources},
            "stable": self._base(answer if boosted is None else boosted.base, name),
            "least_probability": LEAST_PROBABILITY,
        }
        known = None if boosted is None else boosted.adaptation
        if boosted is None or known is None or known.unstable is None:
            return LinearScorer(**shared, unstable=None, divisor=np.ones(len(classes)), posthoc=None)
        if known.guard is not None and known.guard.band is not None:
            raise ValueError(
                "This adaptation was saved by an earlier version, whose guard is no linear map: adapt the "
                "model to the rows again."
            )
        places = self.unstable_at if learned_at is None else learned_at
        columns = range(len(places)) if boosted.columns is None else boosted.columns
        return LinearScorer(
            **shared,
            unstable=_unstable_map(known.unstable, known.standardizer, tuple(places[j] for j in columns)),
            divisor=known.divisor,
            posthoc=_posthoc(known.unstable),
        )

    def _averaged(self, answer: AveragedAnswer) -> LinearScorer:
        """Two classes: a multiple of f_S's log-odds, which is a temperature, and a head on U."""
        made = self.scorer(StableAnswer())
        ((first, second, *slopes, intercept),) = answer.head.tolist()
        multiple = (second - first) / 2.0  # centred log-probabilities are minus and plus half the log-odds
        stable = replace(
            made.stable, temperature=made.stable.temperature / multiple, bias=made.stable.bias * multiple
        )
        unstable = LinearMap(
            self.unstable_at,
            answer.centre,
            answer.unit,
            np.vstack([np.zeros(len(slopes)), slopes]),
            np.array([0.0, intercept]),
            1.0,
            np.zeros(2),
        )
        return replace(made, stable=stable, unstable=unstable)

    def _along_components(self, answer: ComponentsAnswer) -> LinearScorer:
        """Directions are sums of columns."""
        turn = answer.rotation
        made = self.scorer(answer.boosted, "components", tuple(range(turn.shape[1])))
        unstable = made.unstable
        if unstable is not None:
            coef = unstable.coef / unstable.scale
            unstable = replace(
                unstable,
                columns=(*self.stable_at, *self.unstable_at),
                mean=answer.habits.mean,
                scale=answer.habits.spread,
                coef=coef @ turn[:-1].T,
                intercept=unstable.intercept + coef @ (turn[-1] - unstable.mean),
            )
        return _with_temperature(replace(made, unstable=unstable), answer.temperature)

    def _base(self, answer: Any, name: str) -> LinearMap:
        """What an answer says before anything is learned anew."""
        fitted = self.fitted
        if isinstance(answer, StableAnswer):
            return _stable_map(fitted.stable_, fitted.classes_, fitted.temperature_, self.stable_at, "stable")
        if not isinstance(answer, (PooledAnswer, MendedAnswer)):
            raise ValueError(
                f'The answer here is "{name}", which is not linear in the rows: adapt with answer="safe" '
                "(--answer safe), or keep the model file as it is."
            )
        pooled: Any = fitted.pooled_
        both = (*self.stable_at, *self.unstable_at)
        linear = _stable_map(pooled.estimator, fitted.classes_, pooled.temperature, both, "pooled")
        return linear if isinstance(answer, PooledAnswer) else _mended_map(linear, answer.mending)


def _with_temperature(made: LinearScorer, whole: Temperature) -> LinearScorer:
    """A temperature of the whole is one of each of its parts."""
    if made.posthoc is not None:
        raise ValueError(
            "The post-hoc correction under a temperature is no linear map: adapt with the default, "
            'Settings(correction="likelihood"), to export.'
        )
    stable = _cooled(made.stable, whole.temperature)
    bias = 0.0 if whole.bias is None else whole.bias
    return replace(
        made,
        stable=replace(stable, bias=stable.bias + bias),
        unstable=None if made.unstable is None else _cooled(made.unstable, whole.temperature),
        divisor=made.divisor ** (1.0 / whole.temperature),
    )


def _cooled(part: LinearMap, temperature: float) -> LinearMap:
    return replace(part, temperature=part.temperature * temperature, bias=part.bias / temperature)


def _features(sources: tuple[Columns, ...]) -> tuple[str, ...]:
    """Arrays keep their order, so that X itself can be scored; encoded columns come set by set."""
    names = [name for columns in sources for name in columns.names]
    if any(columns.encoder is not None for columns in sources):
        return tuple(names)
    positions = [position for columns in sources for position in columns.positions]
    return tuple(name for _, name in sorted(zip(positions, names, strict=True)))


def _mended_map(pooled: LinearMap, mending: Mending) -> LinearMap:
    """The pooled map of rows whose changed columns were put back: mending is affine, so it is one map."""
    habits = mending.habits
    turned = habits.n_features + mending.columns
    kept = np.setdiff1d(np.arange(len(habits.gram)), turned)
    # Changed columns in training units, from all columns in training units and a one.
    put_back = np.zeros((len(habits.gram), len(turned)))
    put_back[kept] = mending.then - mending.factor * mending.now
    put_back[turned, np.arange(len(turned))] = mending.factor
    coef = pooled.coef / pooled.scale
    by_unit = coef[:, turned] * habits.spread[turned]
    made = coef.copy()
    made[:, turned] = 0.0
    made += by_unit @ put_back[:-1].T / habits.spread
    # At the mean of training all standardised columns are zero.
    others = np.setdiff1d(np.arange(coef.shape[1]), turned)
    at_mean = pooled.intercept - coef @ pooled.mean + coef[:, others] @ habits.mean[others]
    at_mean += coef[:, turned] @ habits.mean[turned] + by_unit @ put_back[-1]
    return replace(pooled, mean=habits.mean, scale=np.ones_like(habits.mean), coef=made, intercept=at_mean)


def _stable_map(
    estimator: Any, classes: npt.NDArray[Any], temperature: Temperature, columns: tuple[int, ...], what: str
) -> LinearMap:
    if isinstance(estimator, FrozenEstimator):
        estimator = estimator.estimator
    steps = [step for _, step in estimator.steps] if isinstance(estimator, Pipeline) else [estimator]
    *before, last = steps
    kinds = [type(step) for step in steps]
    if kinds not in ([LogisticRegression], [StandardScaler, LogisticRegression]):
        raise ValueError(
            f"The {what} classifier is {' → '.join(kind.__name__ for kind in kinds)}: only a "
            "LogisticRegression, alone or after a StandardScaler, has coefficients to export. Save the model "
            "with `save` instead."
        )
    if not np.array_equal(last.classes_, classes):
        raise ValueError(f"The {what} classifier does not know every class: it cannot be exported.")
    mean, scale = np.zeros(len(columns)), np.ones(len(columns))
    if before:
        mean = mean if before[0].mean_ is None or not before[0].with_mean else before[0].mean_
        scale = scale if before[0].scale_ is None else before[0].scale_
    return _map(columns, mean, scale, last, temperature)


def _unstable_map(model: UnstableModel, standardizer: Any, columns: tuple[int, ...]) -> LinearMap:
    if not hasattr(model.head, "coef_"):
        raise ValueError(
            f"The head of the unstable features is a {type(model.head).__name__}, which has no coefficients "
            "to export: leave `unstable` at its default, or save the model with `save`."
        )
    mean, scale = np.zeros(len(columns)), np.ones(len(columns))
    if standardizer is not None:
        mean, scale = standardizer.mean, standardizer.scale
    return _map(columns, mean, scale, model.head, model.temperature or Temperature())


def _map(
    columns: tuple[int, ...], mean: FloatArray, scale: FloatArray, linear: Any, temperature: Temperature
) -> LinearMap:
    coef, intercept = np.asarray(linear.coef_), np.asarray(linear.intercept_)
    if len(coef) == 1:  # one column of log-odds: the second class
        coef, intercept = np.vstack([np.zeros_like(coef), coef]), np.append(0.0, intercept)
    bias = np.zeros(len(coef)) if temperature.bias is None else temperature.bias
    return LinearMap(columns, mean, scale, coef, intercept, temperature.temperature, bias)


def _posthoc(model: UnstableModel) -> tuple[float, float] | None:
    if model.confusion is None:
        return None
    if len(model.confusion) > 2:
        raise ValueError(
            "The post-hoc correction of more than two classes is no formula but a search: adapt with the "
            'default, Settings(correction="likelihood"), to export.'
        )
    slope = float(model.confusion[0, 0] + model.confusion[1, 1] - 1.0)
    return None if slope <= _LEAST_SLOPE else (float(model.confusion[1, 0]), slope)
