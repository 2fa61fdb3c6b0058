"""Complementarity without labels, for any f_S: the corrected Pr[Y | X_U] must be a probability."""

from __future__ import annotations

import numpy as np
from scipy.stats import t as t_distribution

from sfboost.diagnostics.independence import coarse, principal_components
from sfboost.diagnostics.inputs import CheckInputs, NewRows
from sfboost.diagnostics.result import CheckResult, judge, p_in_words
from sfboost.marginal import PseudoLabelStatistics
from sfboost.marginal.probabilities import FloatArray

#: How far below zero a corrected probability matters: an f_S that is slightly off reaches a little below.
NOTICEABLE = 0.05
_MOST_BINS = 10
_FEWEST_IN_BIN = 100
_FOLDS = 2


def check_feasibility(inputs: CheckInputs) -> CheckResult:
    """ε⁻¹ E[f_S | u in a bin] must not be negative in any bin of X_U; bins are chosen on other rows.

    An infeasible answer says that X_U shows more of f_S than the class can: complementarity or calibration
    fails. A feasible one says little; it is all that a two-valued X_S allows.
    """
    new = inputs.fresh
    confusion = PseudoLabelStatistics.from_proba(new.stable).confusion
    if np.linalg.cond(confusion) > 1e6:
        found = "f_S does not separate all classes: ε cannot be inverted."
        return CheckResult("feasibility, new domain", "cannot tell", found)
    lowest, error, p_value, n_bins = feasibility(new, confusion, inputs.random_state)
    found = (
        f"The smallest corrected Pr[Y | X_U] over {n_bins} bins is {lowest:.3f} ± {error:.3f} "
        f"(adjusted {p_in_words(p_value)})."
    )
    verdict = judge(p_value, -lowest, level=inputs.level, matters=NOTICEABLE)
    if verdict != "holds":
        remedy = "Either X_U repeats X_S within a class or f_S is underconfident: recalibrate or keep f_S."
        return CheckResult("feasibility, new domain", verdict, found, remedy, lowest, error, p_value)
    found = f"{found} Feasible, which does not prove complementarity."
    return CheckResult("feasibility, new domain", "holds", found, "", lowest, error, p_value)


def feasibility(new: NewRows, confusion: FloatArray, seed: int) -> tuple[float, float, float, int]:
    """Smallest corrected probability, its error, its adjusted p-value, and the number of bins."""
    inverse = np.linalg.inv(confusion)
    corrected = new.stable @ inverse.T
    bins = _bins(new, seed)
    lowest, at, smallest, tests = np.inf, 0.0, 1.0, 0
    for label in np.unique(bins):
        rows = corrected[bins == label]
        if len(rows) < _FEWEST_IN_BIN // 2:
            continue
        mean, error = rows.mean(axis=0), rows.std(axis=0, ddof=1) / np.sqrt(len(rows))
        tests += rows.shape[1]
        p_values = t_distribution.cdf(mean / np.maximum(error, 1e-12), len(rows) - 1)
        smallest = min(smallest, float(p_values.min()))
        if mean.min() < lowest:
            lowest, at = float(mean.min()), float(error[mean.argmin()])
    if not tests:
        return 0.0, 0.0, 1.0, 0
    return lowest, at, min(1.0, tests * smallest), len(np.unique(bins))


def _bins(new: NewRows, seed: int) -> FloatArray:
    """Bins of X_U: its own values if they are few, else deciles of the regression of f_S on it.

    The regression is cross-fitted: a bin must not be chosen by the f_S that it is then judged by.
    """
    X = new.unstable
    values, place = np.unique(np.column_stack([coarse(u) for u in X.T]), axis=0, return_inverse=True)
    n_bins = max(2, min(_MOST_BINS, len(X) // _FEWEST_IN_BIN))
    if len(values) <= _MOST_BINS:
        return place.reshape(-1).astype(np.float64)
    X = principal_components(X, min(X.shape[1], 20))
    folds = np.random.default_rng(seed).permutation(len(X)) % _FOLDS
    bins = np.empty(len(X))
    main = new.stable @ np.linalg.eigh(np.cov(new.stable.T))[1][:, -1]
    for fold in np.unique(folds):
        inside, outside = folds != fold, folds == fold
        design = np.column_stack([np.ones(inside.sum()), X[inside]])
        slope = np.linalg.lstsq(design, main[inside], rcond=None)[0]
        score = slope[0] + X[outside] @ slope[1:]
        bins[outside] = np.searchsorted(np.quantile(score, np.arange(1, n_bins) / n_bins), score)
    return bins
