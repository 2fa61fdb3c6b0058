"""How good the answers are in one new domain, without labels.

Two ways. Where no feature was found to have shifted, the probabilities of the pooled classifier stand for the
labels: how far off that was in source domains, each left out in turn, is the interval. After a shift no
source domain tells that: labels come from f_S alone (`sfboost.diagnostics.performance`), which needs
complementarity, and the interval allows for a leak.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.stats import t as student
from sklearn.utils import _safe_indexing

from sfboost.adaptation.costs import check_costs
from sfboost.adaptation.scores import weighted_scores
from sfboost.boosting.adapted import AdaptedClassifier
from sfboost.boosting.components import NOT_APART
from sfboost.boosting.diagnosing import new_rows
from sfboost.boosting.estimator import StableFeatureBoosting
from sfboost.boosting.scored_domains import ANSWER
from sfboost.diagnostics.new_domain import new_domain_alarm
from sfboost.diagnostics.performance import (
    Performance,
    estimate_performance,
    spreads,
)
from sfboost.frames import is_frame
from sfboost.marginal.probabilities import FloatArray

# More rows than this say little more, and cost time.
_MOST_ROWS = 5000
# Labels drawn, to see how far scores of so few rows are from their mean.
_DRAWS = 50
_OFF = "as far off as such figures were in your source domains, each left out in turn"


def performance_without_labels(
    adapted: AdaptedClassifier,
    X: Any,
    *,
    leak: float | None = None,
    cost: Any = None,
    level: float = 0.9,
    labels_from: str | None = None,
    random_state: int = 0,
) -> dict[str, Performance]:
    """Scores of the stable, the given and the pooled answer in the new domain, from its unlabelled rows.

    Parameters
    ----------
    adapted : AdaptedClassifier
    X : array-like or DataFrame
        Rows of the domain that it was adapted to.
    leak : float, optional
        δ that the intervals allow for where labels come from f_S. None is what the guard allowed for or,
        without one, the leak of the training domains.
    cost : array-like of shape (K, K), optional
        ``cost[y, j]`` of deciding j where the truth is y.
    level : float
        Of the intervals.
    labels_from : {"answer", "stable"}, optional
        What stands for the labels: the answer, whose probabilities were held against the labels of source
        domains that were left out; or f_S alone. None is the answer where no shift was found and no `leak` is
        given, else f_S.

    Returns
    -------
    dict of Performance
        By name: "stable", "answer" (what is given) and "pooled". Without figures, and with the reason, where
        the rows contradict the assumptions, or a learned f_S is not shown to be stable.
    """
    if labels_from not in (None, "answer", "stable"):
        raise ValueError(f"labels_from={labels_from!r} is neither 'answer' nor 'stable'.")
    if not isinstance(adapted, AdaptedClassifier):
        raise TypeError(f"Got a {type(adapted).__name__}: pass what its `adapt` returns for the new rows.")
    known = adapted.best is not None and adapted.best.as_in_training
    if labels_from == "answer" and not known:
        raise ValueError(
            "No source domain has looked like this, so that nobody knows how far off the probabilities of "
            "this answer are: use labels_from='stable'."
        )
    if labels_from == "answer" or (labels_from is None and leak is None and known):
        return _by_answer(adapted, X, cost, level, random_state)
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
    mix, own = _mixer(model, X), model.pooled_
    answers: dict[str, Callable[[Any, Any], FloatArray]] = {"stable": lambda i, k: stable[i]}
    if adapted.best is None:
        answers[ANSWER] = lambda i, k: adapted.adaptation.predict_proba(
            stable[i], _safe_indexing(unstable, k)
        )
    else:
        answers[ANSWER] = lambda i, k: adapted.predict_proba(mix(i, k))
    if own is not None:
        answers["pooled"] = lambda i, k: np.exp(own.log_proba(*own.numbers(mix(i, k))))
    alarm = NOT_APART if model.components_ is not None else new_domain_alarm(new_rows(model, X), random_state)
    if alarm is not None:  # the rows contradict what every one of these figures rests on
        none = Performance({}, {}, {}, delta or 0.0, level, alarm)
        return dict.fromkeys(answers, none)
    asked: dict[str, Any] = {"leak": delta or 0.0, "cost": cost, "level": level, "random_state": random_state}
    return {name: estimate_performance(stable, answer, **asked) for name, answer in answers.items()}


def _by_answer(
    adapted: AdaptedClassifier, X: Any, cost: Any, level: float, random_state: int
) -> dict[str, Performance]:
    """Scores with the answer's probabilities for labels; intervals as far off as in source domains.

    The stable predictor stands for its own labels.
    """
    errors = adapted.model.training_.record.errors
    stable, labels = adapted.model.predict_proba(X), adapted.predict_proba(X)
    pooled = np.exp(adapted.model.answer_rows(X).log_pooled)
    answers = {"stable": (stable, stable), ANSWER: (labels, labels), "pooled": (pooled, labels)}
    if (why := adapted.model._unforeseeable()) is not None:
        return {name: Performance({}, {}, {}, 0.0, level, why) for name in answers}
    costs, made = None if cost is None else check_costs(cost, labels.shape[1]), {}
    for name, (proba, truth) in answers.items():
        value = weighted_scores(proba, truth / len(truth), costs)
        seen = errors["stable" if name == "stable" else "pooled"]
        off, noise = _off(seen, costs), _label_noise(proba, truth, costs, random_state)
        far = float(student.ppf(0.5 + level / 2.0, max(len(seen), 1)))
        reach = {score: far * float(np.hypot(off[score], noise[score])) for score in value}
        made[name] = Performance.around(value, reach, 0.0, level, costs, _OFF)
    return made


def _off(seen: Sequence[dict[str, float]], costs: FloatArray | None) -> dict[str, float]:
    """How far from the truth the expected scores were in left-out source domains, root mean square."""
    off = {name: _typical([each[name] for each in seen]) for name in seen[0]}
    if costs is not None:  # so many more decisions may be wrong
        off["cost"] = off["accuracy"] * float(np.ptp(costs))
    return off


def _typical(errors: Sequence[float]) -> float:
    """Root mean square of those that are known; without any, nobody knows how far off."""
    known = np.array([error for error in errors if not np.isnan(error)])
    return float(np.sqrt(np.mean(known**2))) if len(known) else float("inf")


def _label_noise(
    proba: FloatArray, truth: FloatArray, costs: FloatArray | None, random_state: int
) -> dict[str, float]:
    """Standard deviation of each score if labels are drawn from their probabilities: rows are not many."""
    rng, n_rows = np.random.default_rng(random_state), len(truth)
    some = rng.choice(n_rows, _MOST_ROWS, replace=False) if n_rows > _MOST_ROWS else np.arange(n_rows)
    below, one = truth[some].cumsum(axis=1)[:, :-1], np.eye(truth.shape[1]) / len(some)
    drawn = [
        weighted_scores(proba[some], one[(rng.random((len(some), 1)) > below).sum(axis=1)], costs)
        for _ in range(_DRAWS)
    ]
    fewer = np.sqrt(len(some) / n_rows)
    return {name: fewer * spread for name, spread in spreads(drawn).items()}


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
        rows[names] = _safe_indexing(X, k).reset_index(drop=True)[names]
        return rows

    return mixed_frame
