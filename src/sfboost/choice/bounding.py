"""answer="safe": the same decision, held to a lower limit of what it gains over the stable predictor."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import t as student

from sfboost.adaptation.scores import LOSSES, Yardstick
from sfboost.choice.choosing import Choice
from sfboost.choice.predictors import TargetPredictor
from sfboost.choice.record import SourceRecord
from sfboost.diagnostics.new_domain import new_domain_alarm
from sfboost.diagnostics.performance import PairPredictor, gain_over_stable
from sfboost.diagnostics.rows import NewRows
from sfboost.marginal.probabilities import FloatArray, IntArray
from sfboost.shift import DomainData

#: One domain in twenty may gain less than the limit.
LEVEL = 0.05
# Pairs of more rows than this say little more, and cost time.
_MOST_ROWS = 5000


def bounded(
    choice: Choice,
    answer: TargetPredictor,
    rows: DomainData,
    record: SourceRecord,
    new: NewRows,
    leak: float | None,
    by: Yardstick,
) -> Choice:
    """Return the same choice if its gain over f_S is above zero at its lower limit, else f_S alone.

    Where nothing shifted the left-out source domains say what one classifier of all features gains, and a
    target domain is one more of them. After a shift labels come from f_S itself, and a leak of `leak` is
    allowed for.
    """
    name = next(iter(choice.weights))
    if name == "stable":
        return choice
    told = {"instead_of": name, "metric": by.metric}
    if name == "pooled":
        found: tuple[float, float] | str = "no test could tell whether a feature shifted"
        if choice.reason.code != "cannot_tell":
            found = _in_source_domains(record, by)
    else:
        found = "one classifier of all features cannot be asked about other values"
        if rows.ask is not None:

            def predict(i: IntArray, k: IntArray) -> FloatArray:
                return np.exp(answer.log_proba(rows.paired(i, k)))

            found = gain_here(predict, np.exp(rows.log_stable), rows.weight, new, leak, by)
    if isinstance(found, str):
        kept, more = True, dict[str, Any](why=found)
    else:
        kept, more = found[1] <= 0.0, {"gain": found[0], "least": found[1]}
    weights = {"stable": 1.0} if kept else choice.weights
    return Choice(weights, choice.reason.with_values(weights=weights, kept=kept, **told, **more))


def _in_source_domains(record: SourceRecord, by: Yardstick) -> tuple[float, float] | str:
    """Mean gain over f_S in left-out source domains, and the lower limit of one more domain's."""
    metric = "accuracy" if by.metric == "cost" else by.metric
    sign = -1.0 if metric in LOSSES else 1.0
    both = (np.array([scores[metric] for scores in record.scores[name]]) for name in ("pooled", "stable"))
    pooled, stable = both
    gains = (sign * (pooled - stable))[~np.isnan(pooled - stable)]
    if len(gains) < 2:
        return "there are fewer than two source domains to tell it by"
    far = student.ppf(1.0 - LEVEL, len(gains) - 1) * np.sqrt(1.0 + 1.0 / len(gains))
    return float(gains.mean()), float(gains.mean() - far * gains.std(ddof=1))


def gain_here(
    predict: PairPredictor,
    stable: FloatArray,
    weight: FloatArray,
    new: NewRows,
    leak: float | None,
    by: Yardstick,
) -> tuple[float, float] | str:
    """Gain over f_S by the labels that f_S itself gives, and its lower limit; or why it cannot be told.

    `predict` gives probabilities for X_S of some rows with X_U of others.
    """
    if leak is None:
        return "how much f_S shows of X_U within a class could not be measured in training"
    if (alarm := new_domain_alarm(new)) is not None:
        return alarm
    some = np.arange(len(stable))
    if len(stable) > _MOST_ROWS:
        some = np.sort(np.random.default_rng(0).choice(len(stable), _MOST_ROWS, replace=False))

    def of_some(i: IntArray, k: IntArray) -> FloatArray:
        return predict(some[i], some[k])

    found = gain_over_stable(stable[some], of_some, by, leak=leak, weight=weight[some], level=LEVEL)
    return "the stable predictor hardly tells the classes apart" if found is None else found
