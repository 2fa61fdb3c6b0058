"""Is f_S calibrated as ε needs it, E[f Yᵀ] = E[f fᵀ], in every domain? A small ECE does not say so."""

from __future__ import annotations

import numpy as np
from scipy.stats import chi2

from sfboost.diagnostics.inputs import CheckInputs, TrainingRows
from sfboost.diagnostics.moments import holm_by_name
from sfboost.diagnostics.result import CheckResult, judge, p_in_words
from sfboost.marginal import PseudoLabelStatistics
from sfboost.marginal.probabilities import FloatArray

#: Relative error of s that changes Pr[Y | X_U] noticeably.
_TOLERABLE = 0.15
#: Error of a class share that does.
_TOLERABLE_GAP = 0.05


def check_calibration(inputs: CheckInputs) -> CheckResult:
    """Δ_e = E_e[f (Y − f)ᵀ] diag(1/p) in each training domain, with a test of Δ_e = 0 and its size.

    tr Δ_e / (K − 1) is the error of the claimed s: what f_S claims minus it is what labels show.
    """
    training = inputs.labelled
    p_values = {name: _p_value(training, rows) for name, rows in training.by_domain}
    errors = {name: _relative_error(training, rows) for name, rows in training.by_domain}
    adjusted = holm_by_name(p_values)
    worst = max(errors, key=lambda name: abs(errors[name][0]))
    size, standard_error = errors[worst]
    smallest = min(adjusted.values())
    details = {
        "p_by_domain": adjusted,
        "by_domain": {name: value for name, (value, _) in errors.items()},
        "spread_over_domains": float(np.std([value for value, _ in errors.values()])),
    }
    found = (
        f"In domain {worst} labels show s {100 * size:+.0f} ± {100 * standard_error:.0f} % from what f_S "
        f"claims (adjusted {p_in_words(smallest)}, the smallest over {len(errors)} domains)."
    )
    result = (size, standard_error, smallest, details)
    if smallest >= inputs.level:
        if abs(size) + 1.64 * standard_error > 4.0 * _TOLERABLE:
            return CheckResult(
                "calibration", "cannot tell", found, "Pass more labelled rows per domain.", *result
            )
        return CheckResult("calibration", "holds", found, "", *result)
    remedy = (
        "Calibrate f_S on held-out domains: cv=LeaveOneGroupOut() and calibration_bias=True; with the "
        "command calibration_bias = true under [model] of --config."
    )
    gaps = {name: _share_gap(training, rows) for name, rows in training.by_domain}
    effect = max(
        max(abs(errors[name][0]) / _TOLERABLE, gaps[name] / _TOLERABLE_GAP)
        for name, p in adjusted.items()
        if p < inputs.level
    )
    verdict = judge(smallest, effect, level=inputs.level, matters=1.0)
    remedy = "" if verdict == "holds" else remedy
    return CheckResult("calibration", verdict, found, remedy, *result)


def _p_value(training: TrainingRows, rows: np.ndarray) -> float:
    """χ² test of the intercept moments and of the trace of E[f (Y − f)ᵀ]: K numbers a domain.

    If f is calibrated, the variance of Y given f is diag(f) − f fᵀ: nothing needs to be estimated.
    """
    stable, residual = training.stable[rows], training.onehot[rows] - training.stable[rows]
    n_classes = training.n_classes
    design = np.zeros((len(rows), n_classes, n_classes))  # moment by class
    design[:, : n_classes - 1, 1:] = np.eye(n_classes - 1)
    design[:, -1, :] = stable
    total = np.einsum("imk,ik->m", design, residual)
    centred = design - np.einsum("imk,ik->im", design, stable)[:, :, None]
    variance = np.einsum("imk,ik,ilk->ml", centred, stable, centred, optimize=True)
    values, vectors = np.linalg.eigh(variance)
    kept = values > 1e-9 * max(float(values.max()), 1e-300)
    if not kept.any():
        return 1.0
    statistic = float(((vectors[:, kept].T @ total) ** 2 / values[kept]).sum())
    return float(chi2.sf(statistic, int(kept.sum())))


def _share_gap(training: TrainingRows, rows: np.ndarray) -> float:
    """The largest difference between a class's share and the mean of f_S."""
    return float(np.abs((training.onehot[rows] - training.stable[rows]).mean(axis=0)).max())


def _relative_error(training: TrainingRows, rows: np.ndarray) -> tuple[float, float]:
    """Tr Δ_e / ((K − 1) s): the error of the claimed s as a share of it, with its standard error."""
    stable = training.stable[rows]
    claimed = PseudoLabelStatistics.from_proba(stable).informativeness
    values = np.diagonal(delta_rows(stable, training.onehot[rows]), axis1=1, axis2=2).sum(axis=1)
    scale = max((training.n_classes - 1) * claimed, 1e-9)
    return float(values.mean() / scale), float(values.std(ddof=1) / np.sqrt(len(rows)) / scale)


def delta_rows(stable: FloatArray, onehot: FloatArray) -> FloatArray:
    """F (Y − f)ᵀ diag(1/p) row by row, of shape (n, K, K); their mean is Δ."""
    prior = np.maximum(stable.mean(axis=0), 1e-9)
    return stable[:, :, None] * (onehot - stable)[:, None, :] / prior
