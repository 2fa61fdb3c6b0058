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
from sfboost.boosting.scored_domains import ANSWER
from sfboost.diagnostics.new_domain import new_domain_alarm
from sfboost.diagnostics.performance import (
    Performance,
    estimate_performance,
    spreads,
)
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
    cost : array-like of shape (K, K), optional
        ``cost[y, j]`` of deciding j where the truth is y.
    level : float
        Of the intervals.
    labels_from : {"answer", "stable"}, optional
        What stands for the labels: the answer, whose probabilities were held against the labels of source
        domains that were left out; or f_S alone. None is the answer where no shift was found, else
        f_S, with intervals that allow for the leak of the source domains.

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
    if labels_from == "answer" or (labels_from is None and known):
        return _by_answer(adapted, X, cost, level, random_state)
    model = adapted.model
    n_rows = X.shape[0] if hasattr(X, "shape") else len(X)
    if n_rows > _MOST_ROWS:
        some = np.random.default_rng(random_state).choice(n_rows, _MOST_ROWS, replace=False)
        X = _safe_indexing(X, np.sort(some))
    log_stable, unstable = model.stable_and_unstable(X)
    stable, rows = np.exp(log_stable), None if adapted.best is None else model.answer_rows(X)
    answers: dict[str, Callable[[Any, Any], FloatArray]] = {"stable": lambda i, k: stable[i]}
    if rows is None or adapted.best is None:
        sfb = adapted.adaptation
        answers[ANSWER] = lambda i, k: sfb.predict_proba(stable[i], _safe_indexing(unstable, k))
    else:
        best, here = adapted.best, rows
        answers[ANSWER] = lambda i, k: np.exp(best.log_proba(here.paired(i, k)))
        answers["pooled"] = lambda i, k: np.exp(here.paired(i, k).log_pooled)
    leak = model.training_.leak or 0.0
    new = model._new_rows(stable, unstable, model._choices(model.settings))
    alarm = NOT_APART if model.components_ is not None else new_domain_alarm(new, random_state)
    if alarm is not None:  # the rows contradict what every one of these figures rests on
        return dict.fromkeys(answers, Performance({}, {}, {}, leak, level, alarm))
    asked: dict[str, Any] = {"leak": leak, "cost": cost, "level": level, "random_state": random_state}
    return {name: estimate_performance(stable, answer, **asked) for name, answer in answers.items()}


def _by_answer(
    adapted: AdaptedClassifier, X: Any, cost: Any, level: float, random_state: int
) -> dict[str, Performance]:
    """Scores with the answer's probabilities for labels; intervals as far off as in source domains.

    The stable predictor stands for its own labels.
    """
    errors = adapted.model.training_.record.errors
    stable, labels = adapted.model.predict_stable_proba(X), adapted.predict_proba(X)
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
