"""Complementarity without labels: E[g(X_U) | X_S] must be affine in f_S.

If X_S ⟂ X_U | Y then E[g(X_U) | X_S] = Σ_y f_S,y E[g(X_U) | y]. Any other shape, against any function of X_S,
says that complementarity or calibration fails. With as many distinct values of f_S as classes every function
is affine: the model is saturated, and nothing can be told.
"""

from __future__ import annotations

import numpy as np

from sfboost.diagnostics.independence import basis, principal_components
from sfboost.diagnostics.inputs import Material, NewRows
from sfboost.diagnostics.moments import MomentTest, zero_mean_test
from sfboost.diagnostics.result import CheckResult, Verdict
from sfboost.marginal import floored_log
from sfboost.marginal.probabilities import FloatArray

#: Share of the dependence between X_U and X_S that is not explained by the class.
_LARGE = 0.1
_MOST_STABLE = 5


def check_linearity(material: Material) -> CheckResult:
    """Score test of basis(X_S) ⊗ {u, u²} against E[g(X_U) | X_S] affine in f_S, with robust covariance."""
    new = material.fresh
    outcome = linearity_test(new)
    if outcome is None:
        found = f"f_S takes {n_levels(new.stable)} values for {new.stable.shape[1]} classes: saturated."
        remedy = "Use richer stable features, or labelled rows; the guard's leak=δ bounds the harm."
        return CheckResult("complementarity, new domain", "cannot tell", found, remedy)
    test, share = outcome
    details = {"degrees": test.degrees, "unexplained_share": share}
    found = (
        f"{100 * share:.1f} % of the dependence of X_U on X_S is not explained by the class "
        f"(p = {test.p_value:.3f}, {test.degrees} directions)."
    )
    if test.p_value >= material.level:
        return CheckResult(
            "complementarity, new domain", "holds", found, "", share, None, test.p_value, details
        )
    remedy = (
        "Complementarity or calibration fails here: recalibrate f_S, drop the unstable columns that "
        "follow X_S, or keep the stable predictor."
    )
    verdict: Verdict = "violated" if share > _LARGE or test.p_value < material.level / 50 else "doubtful"
    return CheckResult(
        "complementarity, new domain", verdict, found, remedy, share, None, test.p_value, details
    )


def n_levels(stable: FloatArray) -> int:
    """Distinct values of f_S, up to rounding."""
    return len(np.unique(np.round(stable, 9), axis=0))


def linearity_test(new: NewRows) -> tuple[MomentTest, float] | None:
    """The test, and the share of Var E[g | X_S] beyond the affine part; None if f_S is saturated."""
    affine = np.column_stack([np.ones(len(new.stable)), new.stable[:, 1:]])
    beyond = residual(_stable_basis(new), affine)
    spread = beyond.std(axis=0)
    beyond = beyond[:, spread > 1e-7]
    if n_levels(new.stable) <= new.stable.shape[1] or not beyond.shape[1]:
        return None
    response = basis(new.unstable)
    error = residual(response, affine)
    scale = error.std(axis=0)
    error = error[:, scale > 1e-9] / scale[scale > 1e-9]
    beyond = beyond / beyond.std(axis=0)
    rows = (error[:, :, None] * beyond[:, None, :]).reshape(len(error), -1)
    test = zero_mean_test(rows, lost=affine.shape[1])
    return test, _unexplained(response, error, affine, beyond)


def _stable_basis(new: NewRows) -> FloatArray:
    """Functions of X_S that are not affine in f_S: log f_S, and X_S itself where it is given."""
    # Clipped: a certain row must not carry the whole test.
    logs = floored_log(np.clip(new.stable, 1e-3, None))
    logs = logs - logs.mean(axis=1, keepdims=True)
    parts = [logs[:, 1:], (new.stable**2)[:, 1:]] if new.stable.shape[1] == 2 else [logs]
    if new.X_stable is not None:
        X = new.X_stable
        parts.append(X if X.shape[1] <= _MOST_STABLE else principal_components(X, _MOST_STABLE))
    return np.column_stack(parts)


def residual(values: FloatArray, design: FloatArray) -> FloatArray:
    """What least squares on `design` leaves."""
    return values - design @ np.linalg.lstsq(design, values, rcond=None)[0]


def _unexplained(response: FloatArray, error: FloatArray, affine: FloatArray, beyond: FloatArray) -> float:
    """Variance that the extra functions explain, noise subtracted, over that plus the affine part's."""
    n_rows = len(response)
    extra = error - residual(error, beyond)
    noise = beyond.shape[1] / n_rows
    more = float(np.maximum(extra.var(axis=0) - noise, 0.0).sum())
    fitted = response - residual(response, affine)
    unit = np.maximum(residual(response, affine).var(axis=0), 1e-12)
    explained = float(np.maximum(fitted.var(axis=0) / unit - affine.shape[1] / n_rows, 0.0).sum())
    return more / max(more + explained, 1e-12) if more > 0.0 else 0.0
