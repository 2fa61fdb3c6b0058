"""Whether f_S tells the class as much as it claims (Lemma 4.5).

With labels informativeness is evidence; without, s is only what f_S claims. Calibration is asked for as ε
needs it, E[f Yᵀ] = E[f fᵀ] in every domain: a small ECE does not say so.
"""

from __future__ import annotations

import numpy as np
from scipy.stats import chi2, norm

from sfboost.diagnostics.complementarity import measured_informativeness
from sfboost.diagnostics.moments import holm_by_name
from sfboost.diagnostics.result import CheckResult, Verdict, judge, p_in_words
from sfboost.diagnostics.rows import CheckInputs, TrainingRows
from sfboost.marginal import PseudoLabelStatistics, floored_log
from sfboost.marginal.probabilities import FloatArray

_REMEDY = "Find better stable features: with this f_S the unstable ones cannot be learned without labels."


def check_informativeness(inputs: CheckInputs) -> CheckResult:
    """f_S against the class balance on held-out training rows (log loss); s as claimed and as measured."""
    training = inputs.labelled
    share, error, n_rows = _gain_of(training, np.arange(len(training.y)))
    p_value = float(norm.sf(share / error)) if error > 0.0 else 1.0
    claimed, claim_error = claimed_informativeness(training.stable)
    measured = measured_informativeness(training.stable, training.y)
    by_domain = {name: _gain_of(training, rows)[0] for name, rows in training.by_domain}
    details = {
        "s_claimed": claimed,
        "s_claimed_error": claim_error,
        "s_measured": measured,
        "by_domain": by_domain,
    }
    found = (
        f"On {n_rows} held-out rows the log loss of f_S is {share:.4f} ± {error:.4f} nats below that of the "
        f"class shares; it claims s = {claimed:.3f} ± {claim_error:.3f}, and with labels s is {measured:.3f}."
    )
    if share > norm.isf(inputs.level) * error and measured > 0.0:
        worst = min(by_domain.values())
        if worst < 0.0:
            remedy = "Look at the domain where f_S is worse than the class balance."
            return CheckResult("informativeness", "doubtful", found, remedy, share, error, p_value, details)
        return CheckResult("informativeness", "holds", found, "", share, error, p_value, details)
    # A gain that could still be of use (.01 nats) cannot be excluded with few rows.
    verdict: Verdict = "violated" if share + norm.isf(inputs.level) * error < 0.01 else "cannot tell"
    return CheckResult("informativeness", verdict, found, _REMEDY, share, error, p_value, details)


def _gain_of(training: TrainingRows, rows: np.ndarray) -> tuple[float, float, int]:
    """Mean log-loss gain over the class balance of these rows, its standard error, and their number."""
    y, stable = training.y[rows], training.stable[rows]
    balance = np.bincount(y, minlength=training.n_classes) / len(y)
    gain = floored_log(stable[np.arange(len(y)), y]) - np.log(balance[y])
    return float(gain.mean()), float(gain.std(ddof=1) / np.sqrt(len(gain))), len(gain)


def claimed_informativeness(stable: FloatArray) -> tuple[float, float]:
    """S as f_S claims it, and its standard error: a ratio of means, by its influence function."""
    stats = PseudoLabelStatistics.from_proba(stable)
    prior = np.where(stats.prior > 0.0, stats.prior, 1.0)
    influence = (stable**2 - np.diagonal(stats.confusion) * stable) @ (1.0 / prior)
    error = np.sqrt((influence**2).mean() / len(stable)) / (stable.shape[1] - 1)
    return stats.informativeness, float(error)


#: Relative error of s that changes Pr[Y | X_U] noticeably.
_TOLERABLE = 0.15
#: Error of a class share that does.
_TOLERABLE_GAP = 0.05


def check_calibration(inputs: CheckInputs) -> CheckResult:
    """Δ_e = E_e[f (Y − f)ᵀ] diag(1/p) in each training domain, with a test of Δ_e = 0 and its size.

    tr Δ_e / (K − 1) is the error of the claimed s: what f_S claims minus it is what labels show.
    """
    training = inputs.labelled
    p_values = {name: _calibration_p_value(training, rows) for name, rows in training.by_domain}
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
        f"In domain {worst} s is {100 * size:+.0f} ± {100 * standard_error:.0f} % off what f_S claims, by "
        f"the labels (adjusted {p_in_words(smallest)}, the smallest over {len(errors)} domains)."
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


def _calibration_p_value(training: TrainingRows, rows: np.ndarray) -> float:
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
