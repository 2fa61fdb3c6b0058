"""Whether unlabelled rows of a new domain contradict complementarity (Definition 4.3), or calibration.

If f_S ⟂ X_U | Y then E[g(X_U) | f_S] = Σ_y Pr[y | f_S] E[g(X_U) | y], affine in Pr[Y | f_S] whatever f_S
leaves out of X_S. Any other shape says that complementarity fails, or that Pr[Y | f_S] is not what training
says. With as many distinct values of f_S as classes every function is affine: the model is saturated, and
only a corrected Pr[Y | X_U] that is no probability shows anything.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.stats import t as t_distribution

from sfboost.diagnostics.moments import (
    MomentTest,
    basis,
    coarse,
    log_contrasts,
    principal_components,
    row_products,
    zero_mean_test,
)
from sfboost.diagnostics.recalibration import Recalibration
from sfboost.diagnostics.result import CheckResult, judge, p_in_words
from sfboost.diagnostics.rows import CheckInputs, NewRows
from sfboost.marginal import PseudoLabelStatistics
from sfboost.marginal.probabilities import FloatArray, IntArray

_NAME = "complementarity, new domain"
#: Share of the dependence between X_U and f_S that is not explained by the class.
_LARGE_SHARE = 0.1
#: How far below zero a corrected probability matters: an f_S that is slightly off reaches a little below.
NOTICEABLE = 0.05
_MOST_BINS = 10
_FEWEST_IN_BIN = 100
_FOLDS = 2


def check_new_domain(inputs: CheckInputs) -> CheckResult:
    """Whether E[X_U and its square | f_S] is affine in Pr[Y | f_S], and whether any class explains X_U.

    The second is that ε⁻¹ E[f_S | u in a bin] is negative in no bin; it is all that there is to see where f_S
    is saturated, and that nothing is seen proves nothing. What training labels say of f_S is in the first.
    """
    new, rows = inputs.fresh, inputs.training
    if new.recalibration is None and rows is not None:
        new = replace(new, recalibration=Recalibration.fit(rows.stable, rows.y, rows.domain, rows.weight))
    outcome, feasible = linearity_test(new), feasibility(new, inputs.random_state)
    straight = None if outcome is None else _straightness(*outcome, inputs.level)
    if straight is not None and straight.verdict == "violated":
        return straight
    if feasible is not None:
        lowest, error, p_value = feasible
        verdict = judge(p_value, -lowest, level=inputs.level, matters=NOTICEABLE)
        if verdict != "holds":
            found = f"A corrected Pr[Y | X_U] is {lowest:.3f} ± {error:.3f} ({p_in_words(p_value)})."
            remedy = (
                "Either X_U repeats X_S within a class or f_S is underconfident: recalibrate or keep f_S."
            )
            return CheckResult(_NAME, verdict, found, remedy, lowest, error, p_value)
    if straight is not None:
        return straight
    found = f"f_S takes {n_levels(new.stable)} values for {new.stable.shape[1]} classes: saturated."
    remedy = "Use richer stable features, or labelled rows; the guard's leak=δ bounds the harm."
    return CheckResult(_NAME, "cannot tell", found, remedy, *(feasible or ()))


def _straightness(test: MomentTest, share: float, level: float) -> CheckResult:
    found = (
        f"{100 * share:.1f} % of the dependence of X_U on f_S is not explained by the class "
        f"({p_in_words(test.p_value)}, {test.degrees} directions)."
    )
    verdict = judge(test.p_value, share, level=level, matters=_LARGE_SHARE)
    remedy = (
        "Complementarity or calibration fails here: recalibrate f_S, drop the unstable columns that follow "
        "it, or keep the stable predictor."
    )
    remedy = "" if verdict == "holds" else remedy
    details = {"degrees": test.degrees, "unexplained_share": share}
    return CheckResult(_NAME, verdict, found, remedy, share, None, test.p_value, details)


def n_levels(stable: FloatArray) -> int:
    """Values of f_S that are clearly distinct."""
    return int(_places(_coarse(stable)).max()) + 1


def _coarse(stable: FloatArray) -> FloatArray:
    """f_S without differences too small to matter; any function of it keeps the null.

    If every value of X_U gets a value of f_S of its own, however near to the others, f_S shows X_U fully to a
    test and hardly at all to a combination.
    """
    if stable.shape[1] == 2:
        second = coarse(stable[:, 1])
        return np.column_stack([1.0 - second, second])
    return np.column_stack([coarse(column) for column in stable.T])


def _places(rows: FloatArray) -> IntArray:
    """The place of each row among the distinct ones, in order: much faster than unique rows."""
    place = np.zeros(len(rows), dtype=np.intp)
    for column in rows.T:
        values = np.unique(column, return_inverse=True)[1]
        place = np.unique(place * (values.max() + 1) + values, return_inverse=True)[1]
    return place


def linearity_test(new: NewRows) -> tuple[MomentTest, float] | None:
    """The test, and the share of Var E[g | f_S] beyond the affine part; None if f_S is saturated.

    Pr[Y | f_S] as the labels tell it has errors; f_S, which has none, is its instrument. So those errors are
    in the moments once, not squared.
    """
    score = new.stable if new.recalibration is None else new.recalibration.apply(new.stable)
    seen = _coarse(new.stable)
    score, instrument = (values[:, 1:] - values[:, 1:].mean(axis=0) for values in (score, seen))
    curved = residual(_functions(seen), np.column_stack([np.ones(len(score)), instrument]))
    curved = curved[:, curved.std(axis=0) > 1e-7]
    if n_levels(new.stable) <= new.stable.shape[1] or not curved.shape[1]:
        return None
    inverse = np.linalg.pinv(score.T @ instrument)
    beyond = curved - instrument @ (inverse @ (score.T @ curved))
    beyond = beyond / beyond.std(axis=0)
    response = basis(new.unstable)
    response = response - response.mean(axis=0)
    slope = inverse.T @ (instrument.T @ response)
    scale = (response - score @ slope).std(axis=0)
    response, slope = (values[:, scale > 1e-9] / scale[scale > 1e-9] for values in (response, slope))
    error = response - score @ slope
    rows = row_products(error, beyond)
    doubt = _doubt(new, slope, beyond)
    test = zero_mean_test(rows, lost=new.stable.shape[1], doubt=doubt)
    return test, _unexplained(score @ slope, error, beyond, doubt)


def _functions(stable: FloatArray) -> FloatArray:
    """Functions of f_S that are not affine in it.

    Functions of X_S that f_S does not show are none of the test's business: the method uses f_S alone, and
    X_U may follow those within a class without harm.
    """
    logs = log_contrasts(stable)
    return np.column_stack([logs, (stable**2)[:, 1:]]) if stable.shape[1] == 2 else logs


def _doubt(new: NewRows, slope: FloatArray, beyond: FloatArray) -> FloatArray:
    """Covariance of the moments that the errors of the recalibration alone would cause."""
    n_moments = slope.shape[1] * beyond.shape[1]
    if new.recalibration is None:
        return np.zeros((n_moments, n_moments))
    cell, errors = new.recalibration.cell_of(new.stable), new.recalibration.covariance[:, 1:, 1:]
    means = np.column_stack([np.bincount(cell, column, len(errors)) for column in beyond.T]) / len(cell)
    return np.einsum("jp,jq,kg,jkl,lh->gphq", means, means, slope, errors, slope, optimize=True).reshape(
        n_moments, n_moments
    )


def residual(values: FloatArray, design: FloatArray) -> FloatArray:
    """What least squares on `design` leaves."""
    return values - design @ np.linalg.lstsq(design, values, rcond=None)[0]


def _unexplained(affine: FloatArray, error: FloatArray, beyond: FloatArray, doubt: FloatArray) -> float:
    """Variance that the extra functions explain, noise subtracted, over that plus the affine part's."""
    n_rows, n_extra = beyond.shape
    extra = error - residual(error, beyond)
    blocks = doubt.reshape(error.shape[1], n_extra, error.shape[1], n_extra)
    inverse = np.linalg.pinv(beyond.T @ beyond / n_rows, hermitian=True)
    noise = n_extra / n_rows + np.einsum("gpgq,pq->g", blocks, inverse)
    more = float(np.maximum(extra.var(axis=0) - noise, 0.0).sum())
    explained = float(np.maximum(affine.var(axis=0) - 1.0 / n_rows, 0.0).sum())
    return more / max(more + explained, 1e-12) if more > 0.0 else 0.0


def feasibility(new: NewRows, seed: int) -> tuple[float, float, float] | None:
    """Smallest corrected probability over bins, its error and its adjusted p-value; None if ε is singular."""
    confusion = PseudoLabelStatistics.from_proba(new.stable).confusion
    if np.linalg.cond(confusion) > 1e6:
        return None
    corrected = new.stable @ np.linalg.inv(confusion).T
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
        return 0.0, 0.0, 1.0
    return lowest, at, min(1.0, tests * smallest)


def _bins(new: NewRows, seed: int) -> FloatArray:
    """Bins of X_U: its own values if they are few, else deciles of the regression of f_S on it.

    The regression is cross-fitted: a bin must not be chosen by the f_S that it is then judged by.
    """
    X = new.unstable
    place = _places(np.column_stack([coarse(u) for u in X.T]))
    n_bins = max(2, min(_MOST_BINS, len(X) // _FEWEST_IN_BIN))
    if place.max() < _MOST_BINS:
        return place.astype(np.float64)
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


# Much stricter than the checks: a false alarm costs the whole gain of adapting.
_LINEARITY_LEVEL, _UNEXPLAINED = 0.001, 0.1
_FEASIBILITY_LEVEL = 0.01


def new_domain_alarm(new: NewRows, random_state: int = 0) -> str | None:
    """A sentence if the unlabelled rows contradict complementarity clearly, else None.

    Where f_S has many levels: the linearity test at level .001, and at least a tenth of the dependence of
    X_U on f_S left unexplained by the class. Where f_S is saturated only infeasibility can be seen (level
    .01, and a probability below −.05), and a leak that stays feasible cannot. X_S itself is not looked at:
    what f_S leaves out of it may follow X_U without harm.

    Examples
    --------
    >>> from sfboost.diagnostics import make_new_rows
    >>> from sfboost_lab.testing import Dials, simulate
    >>> good, bad = (simulate(Dials(new_violation=size), seed=0).new for size in (0.0, 1.0))
    >>> new_domain_alarm(make_new_rows(good.posterior, good.X_unstable)) is None
    True
    >>> new_domain_alarm(make_new_rows(bad.posterior, bad.X_unstable))[:48]
    'X_U follows f_S within a class in the new domain'
    """
    if new.X_unstable is None or len(new.stable) < 100:
        return None
    outcome = linearity_test(new)
    if outcome is not None:
        test, share = outcome
        if test.p_value < _LINEARITY_LEVEL and share > _UNEXPLAINED:
            return (
                f"X_U follows f_S within a class in the new domain ({100 * share:.0f} % of their dependence "
                f"is not explained by the class, {p_in_words(test.p_value)}), or f_S errs otherwise there "
                "than in training"
            )
        return None
    feasible = feasibility(new, random_state)
    if feasible is not None and feasible[2] < _FEASIBILITY_LEVEL and feasible[0] < -NOTICEABLE:
        lowest = feasible[0]
        return f"the corrected Pr[Y | X_U] falls to {lowest:.2f} in the new domain: no class explains X_U"
    return None
