"""Complementarity without labels: E[g(X_U) | f_S] must be affine in Pr[Y | f_S].

If f_S ⟂ X_U | Y then E[g(X_U) | f_S] = Σ_y Pr[y | f_S] E[g(X_U) | y], whatever f_S leaves out of X_S. Any
other shape says that complementarity fails, or that Pr[Y | f_S] is not what training says. With as many
distinct values of f_S as classes every function is affine: the model is saturated, and nothing can be told.
"""

from __future__ import annotations

import numpy as np

from sfboost.diagnostics.independence import basis, coarse, log_contrasts
from sfboost.diagnostics.inputs import CheckInputs, NewRows
from sfboost.diagnostics.moments import MomentTest, row_products, zero_mean_test
from sfboost.diagnostics.result import CheckResult, judge, p_in_words
from sfboost.marginal.probabilities import FloatArray

#: Share of the dependence between X_U and f_S that is not explained by the class.
_LARGE = 0.1
_REMEDY = (
    "Complementarity or calibration fails here: recalibrate f_S, drop the unstable columns that follow it, "
    "or keep the stable predictor."
)


def check_linearity(inputs: CheckInputs) -> CheckResult:
    """Score test of functions of f_S ⊗ {u, u²} against E[g(X_U) | f_S] affine in Pr[Y | f_S].

    The covariance is robust, and the error of Pr[Y | f_S] is in it.
    """
    new = inputs.judged
    outcome = linearity_test(new)
    if outcome is None:
        found = f"f_S takes {n_levels(new.stable)} values for {new.stable.shape[1]} classes: saturated."
        remedy = "Use richer stable features, or labelled rows; the guard's leak=δ bounds the harm."
        return CheckResult("complementarity, new domain", "cannot tell", found, remedy)
    test, share = outcome
    details = {"degrees": test.degrees, "unexplained_share": share}
    found = (
        f"{100 * share:.1f} % of the dependence of X_U on f_S is not explained by the class "
        f"({p_in_words(test.p_value)}, {test.degrees} directions)."
    )
    verdict = judge(test.p_value, share, level=inputs.level, matters=_LARGE)
    remedy = "" if verdict == "holds" else _REMEDY
    return CheckResult(
        "complementarity, new domain", verdict, found, remedy, share, None, test.p_value, details
    )


def n_levels(stable: FloatArray) -> int:
    """Values of f_S that are clearly distinct."""
    return len(np.unique(_coarse(stable), axis=0))


def _coarse(stable: FloatArray) -> FloatArray:
    """f_S without differences too small to matter; any function of it keeps the null.

    If every value of X_U gets a value of f_S of its own, however near to the others, f_S shows X_U fully to a
    test and hardly at all to a combination.
    """
    if stable.shape[1] == 2:
        second = coarse(stable[:, 1])
        return np.column_stack([1.0 - second, second])
    return np.column_stack([coarse(column) for column in stable.T])


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
