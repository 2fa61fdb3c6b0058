"""Does f_S tell the class as much as it claims (Lemma 4.5), and does X_U have anything to add.

With labels informativeness is evidence; without, s is only what f_S claims. Calibration is asked for as ε
needs it, E[f Yᵀ] = E[f fᵀ] in every domain: a small ECE does not say so.
"""

from __future__ import annotations

import numpy as np
from scipy.stats import chi2, norm

from sfboost.adaptation import adapt
from sfboost.adaptation.decision import FEWEST_LABELS, unwarned
from sfboost.diagnostics.complementarity import measured_informativeness
from sfboost.diagnostics.moments import holm_by_name, scaled, zero_mean_test
from sfboost.diagnostics.result import CheckResult, Verdict, check, judge, p_in_words
from sfboost.diagnostics.rows import CheckInputs, TrainingRows
from sfboost.marginal import PseudoLabelStatistics, floored_log, posterior
from sfboost.marginal.probabilities import FloatArray

_REMEDY = "Find better stable features: with this f_S the unstable ones cannot be learned without labels."


@check("informativeness", "Do the stable features tell the class at all?", "training", "new", either=True)
def check_informativeness(inputs: CheckInputs) -> CheckResult:
    """f_S against the class balance on held-out training rows (log loss); s as claimed and as measured."""
    training = inputs.training
    if training is None:
        return _claim_only(inputs)
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
        f"On {n_rows} held-out rows f_S beats the class balance by {share:.4f} ± {error:.4f} nats; it claims "
        f"s = {claimed:.3f} ± {claim_error:.3f}, and with labels s is {measured:.3f}."
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


def _claim_only(inputs: CheckInputs) -> CheckResult:
    new = inputs.fresh
    claimed, error = claimed_informativeness(new.stable)
    if len(new.stable) * claimed < FEWEST_LABELS:
        found = (
            f"f_S claims s = {claimed:.4f} ± {error:.4f}: {len(new.stable)} rows are worth fewer than "
            f"{FEWEST_LABELS:.0f} labels."
        )
        return CheckResult("informativeness", "violated", found, _REMEDY, claimed, error)
    found = f"f_S claims s = {claimed:.3f} ± {error:.3f}; without labels that is a claim, not evidence."
    remedy = "Pass held-out training rows with labels."
    return CheckResult("informativeness", "cannot tell", found, remedy, claimed, error)


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


@check("calibration", "Can the stable probabilities be taken at their word?", "training")
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


# A gain that no one would notice: two thousandths of a nat per row.
_NEGLIGIBLE_GAIN = 0.002


@check("anything to gain", "Do the unstable features have anything to add here?", "new X_U")
def check_gain(inputs: CheckInputs) -> CheckResult:
    """Cross-fitted ℓ ± SE, and the score test of ℓ at f_U ≡ p (Cov(f_S, X_U) = 0)."""
    new = inputs.fresh
    if np.ptp(new.stable, axis=0).max() < 1e-9:
        return CheckResult("anything to gain", "violated", "f_S is constant: nothing can be learned from it.")
    with unwarned():
        adaptation = adapt(new.stable, new.unstable, answer="paper", random_state=inputs.random_state)
    held_out = adaptation.cross_fit
    assert held_out is not None  # the paper's answer and the default head always have one
    gain, error = held_out.gain, held_out.standard_error
    p_value = independence_p_value(new.stable, new.unstable)
    joint = posterior(
        np.log(np.maximum(adaptation.unstable_proba(new.unstable), 1e-300)),
        np.log(np.maximum(new.stable, 1e-300)) - np.log(np.maximum(adaptation.divisor, 1e-300)),
    )
    labels = effective_labels(adaptation.unstable_proba(new.unstable), joint)
    details = {"effective_labels": labels, "rows": len(new.stable)}
    found = (
        f"Held-out likelihood {gain:.4f} ± {error:.4f} nats a row; {len(new.stable)} rows are worth "
        f"{labels:.0f} labels to the likelihood."
    )
    negligible = gain + norm.isf(inputs.level) * error < _NEGLIGIBLE_GAIN
    if p_value < inputs.level and gain > 0.0 and not negligible:
        return CheckResult("anything to gain", "holds", found, "", gain, error, p_value, details)
    if negligible:
        found = f"Nothing to gain: X_U says next to nothing of X_S. {found}"
        remedy = "Keep the stable predictor, or label some rows of the new domain."
        return CheckResult("anything to gain", "violated", found, remedy, gain, error, p_value, details)
    remedy = "Collect more unlabelled rows of the new domain."
    return CheckResult("anything to gain", "doubtful", found, remedy, gain, error, p_value, details)


def independence_p_value(stable: FloatArray, X: FloatArray) -> float:
    """Of Cov(f_S, X_U) = 0: the score test of ℓ where X_U says nothing."""
    centred = (stable - stable.mean(axis=0))[:, 1:]
    features = X - X.mean(axis=0)
    rows = (centred[:, :, None] * features[:, None, :]).reshape(len(X), -1)
    return zero_mean_test(scaled(rows)).p_value


def effective_labels(unstable: FloatArray, joint: FloatArray) -> float:
    """How many labels the rows are worth to the likelihood: n · observed over complete information.

    At Pr[Y | u] = q the likelihood sees Var(r | u) of the q(1 − q) that a label would show, r the joint
    posterior: q(1 − q) ∫ (P₁ − P₀)² / (q P₁ + (1 − q) P₀) in closed form.
    """
    complete = float((1.0 - (unstable**2).sum(axis=1)).sum())
    seen = float(((joint - unstable) ** 2).sum())
    return len(unstable) * seen / max(complete, 1e-12)
