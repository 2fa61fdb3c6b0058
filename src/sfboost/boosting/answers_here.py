"""How good the answers are in one new domain, without labels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing

from sfboost.boosting.adapted import AdaptedClassifier
from sfboost.boosting.components import NOT_APART
from sfboost.boosting.diagnosing import new_rows
from sfboost.boosting.estimator import StableFeatureBoosting
from sfboost.diagnostics.alarm import new_domain_alarm
from sfboost.diagnostics.performance import Performance, estimate_performance
from sfboost.encoding import is_frame
from sfboost.marginal.probabilities import FloatArray

# More rows than this say little more, and cost time.
_MOST_ROWS = 5000


def performance_without_labels(
    adapted: AdaptedClassifier,
    X: Any,
    *,
    pooled: Any = None,
    leak: float | None = None,
    cost: Any = None,
    level: float = 0.9,
    random_state: int = 0,
) -> dict[str, Performance]:
    """Scores of the stable, the adapted and the pooled answer in the new domain, from its unlabelled rows.

    Parameters
    ----------
    adapted : AdaptedClassifier
        Of a `StableFeatureBoosting`.
    X : array-like or DataFrame
        Rows of the domain that it was adapted to.
    pooled : fitted classifier of the columns of X, optional
        None is the model's own.
    leak : float, optional
        δ that the intervals allow for. None is what the guard allowed for or, without one, the leak of the
        training domains.
    cost : array-like of shape (K, K), optional
        ``cost[y, j]`` of deciding j where the truth is y.
    level : float

    Returns
    -------
    dict of Performance
        By answer. Without figures, and with the reason, where the rows contradict the assumptions.
    """
    model, delta = adapted.model, leak
    if delta is None:
        delta = model.training_.leak if adapted.leak_ is None else adapted.leak_
    X = model._check_input(X, reset=False)
    n_rows = X.shape[0]
    if n_rows > _MOST_ROWS:
        some = np.random.default_rng(random_state).choice(n_rows, _MOST_ROWS, replace=False)
        X = _safe_indexing(X, np.sort(some))
    log_stable, unstable = model.stable_and_unstable(X)
    stable = np.exp(log_stable)
    mix, own = _mixer(model, X), getattr(model, "pooled_", None)
    answers: dict[str, Callable[[Any, Any], FloatArray]] = {"stable": lambda i, k: stable[i]}
    if adapted.best is None:
        answers["adapted"] = lambda i, k: adapted.adaptation.predict_proba(
            stable[i], _safe_indexing(unstable, k)
        )
    else:
        answers["adapted"] = lambda i, k: adapted.predict_proba(mix(i, k))
    if pooled is not None:
        answers["pooled"] = lambda i, k: np.asarray(pooled.predict_proba(mix(i, k)), dtype=np.float64)
    elif own is not None:
        answers["pooled"] = lambda i, k: np.exp(own.log_proba(*own.numbers(mix(i, k))))
    alarm = NOT_APART if model._played() is not None else new_domain_alarm(new_rows(model, X), random_state)
    if alarm is not None:  # the rows contradict what every one of these figures rests on
        return {name: Performance({}, {}, {}, delta or 0.0, level, alarm) for name in answers}
    asked: dict[str, Any] = {"leak": delta or 0.0, "cost": cost, "level": level, "random_state": random_state}
    return {name: estimate_performance(stable, answer, **asked) for name, answer in answers.items()}


def _mixer(model: StableFeatureBoosting, X: Any) -> Callable[[Any, Any], Any]:
    """Rows with the stable columns of some and the unstable columns of others."""
    if not is_frame(X) and not hasattr(X, "iloc"):
        columns = list(model.unstable_columns_.positions)

        def mixed(i: Any, k: Any) -> Any:
            rows = np.array(_safe_indexing(X, i))
            rows[:, columns] = _safe_indexing(X, k)[:, columns]
            return rows

        return mixed
    names = list(model.unstable_columns_.sources)

    def mixed_frame(i: Any, k: Any) -> Any:
        rows = _safe_indexing(X, i).reset_index(drop=True)
        others = _safe_indexing(X, k).reset_index(drop=True)
        return rows.assign(**{name: others[name] for name in names})

    return mixed_frame
