"""All numbers that a linear prediction needs, taken out of the objects that hold them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from sfboost.adaptation.fitting import UnstableModel
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
        the pooled one, it reads all features.
    unstable : LinearMap or None
        None where the stable predictor alone answers.
    divisor : array of shape (K,)
        The p of log f_S + log f_U − log p.
    posthoc : pair of float or None
        (ε₁₀, slope) of the post-hoc correction of two classes, or None.
    sources : tuple of Columns
        What makes the features of a frame.
    """

    features: tuple[str, ...]
    classes: npt.NDArray[Any]
    stable: LinearMap
    least_probability: float
    unstable: LinearMap | None
    divisor: FloatArray
    posthoc: tuple[float, float] | None
    sources: tuple[Columns, ...]

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
    if fitted._played() is not None:
        raise ValueError(
            "A model along components reads every column twice, and is not exported: predict with it in "
            "Python, or export the logistic regression in its `stable_`."
        )
    sources = (fitted.stable_columns_, fitted.unstable_columns_)
    features = _features(sources)
    place = {name: j for j, name in enumerate(features)}
    stable_at, unstable_at = (tuple(place[name] for name in columns.names) for columns in sources)
    stable = _stable_map(fitted.stable_, fitted.classes_, fitted.temperature_, stable_at, "stable")
    answer = "stable" if adapted is None else _answer(adapted)
    if answer == "pooled":
        pooled: Any = fitted.pooled_
        both = (*stable_at, *unstable_at)
        stable = _stable_map(pooled.estimator, fitted.classes_, pooled.temperature, both, "pooled")
    known: Any = adapted.adaptation if adapted is not None and answer == "boosted" else None
    shared: dict[str, Any] = {
        **{"features": features, "classes": fitted.classes_, "stable": stable, "sources": sources},
        "least_probability": LEAST_PROBABILITY,
    }
    if known is None or known.unstable is None:
        return LinearScorer(**shared, unstable=None, divisor=np.ones(len(fitted.classes_)), posthoc=None)
    if known.guard is not None and known.guard.band is not None:
        raise ValueError(
            "This adaptation was saved by an earlier version, whose guard is no linear map: adapt the model "
            "to the rows again."
        )
    return LinearScorer(
        **shared,
        unstable=_unstable_map(known.unstable, known.standardizer, unstable_at),
        divisor=known.divisor,
        posthoc=_posthoc(known.unstable),
    )


def _features(sources: tuple[Columns, ...]) -> tuple[str, ...]:
    """Arrays keep their order, so that X itself can be scored; encoded columns come set by set."""
    names = [name for columns in sources for name in columns.names]
    if any(columns.encoder is not None for columns in sources):
        return tuple(names)
    positions = [position for columns in sources for position in columns.positions]
    return tuple(name for _, name in sorted(zip(positions, names, strict=True)))


def _answer(adapted: AdaptedClassifier) -> str:
    """Which answer predicts; a mixture of several is refused."""
    weights = {"boosted": 1.0} if adapted.best is None else adapted.best.choice.weights
    given = {name: weight for name, weight in weights.items() if weight > 0.0}
    name = next(iter(given))
    if len(given) > 1 or name not in ("stable", "pooled", "boosted"):
        raise ValueError(
            f"The answer here is {' and '.join(given)}, which is more than two linear maps: adapt with "
            'answer="safe", or save the model with `save`.'
        )
    return name


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
