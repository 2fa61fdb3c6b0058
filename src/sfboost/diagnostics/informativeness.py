"""Is f_S informative (Lemma 4.5)? With labels it is evidence; without, s is only what f_S claims."""

from __future__ import annotations

import numpy as np
from scipy.stats import norm

from sfboost.adaptation.decision import FEWEST_LABELS
from sfboost.diagnostics.inputs import CheckInputs, NewRows, TrainingRows
from sfboost.diagnostics.leak import measured_informativeness
from sfboost.diagnostics.moments import scaled
from sfboost.diagnostics.result import CheckResult, Verdict
from sfboost.marginal import PseudoLabelStatistics, floored_log
from sfboost.marginal.probabilities import FloatArray

_FOLDS = 5
#: X_U that shows the class fully explains exactly s of f_S: a hair more is no contradiction.
_CLEARLY_MORE = 1.1
_REMEDY = "Find better stable features: with this f_S the unstable ones cannot be learned without labels."


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


def check_lower_bound(inputs: CheckInputs) -> CheckResult:
    """Bound s from below without labels: s ≥ ρ², the cross-fitted share of Var f_S that X_U explains.

    Under complementarity and calibration E[f_S | X_U] is affine in Pr[Y | X_U], so that share is
    s · Var(Pr[Y | X_U]) / Var(Y) and at most s.
    """
    new = inputs.fresh
    claimed = PseudoLabelStatistics.from_proba(new.stable).informativeness
    explained, error = explained_share(new, inputs.random_state)
    lower = max(0.0, explained - float(norm.isf(inputs.level)) * error)
    found = (
        f"X_U explains {explained:.3f} ± {error:.3f} of f_S: s is at least {lower:.3f}, f_S claims "
        f"{claimed:.3f}."
    )
    details = {"s_claimed": claimed, "s_lower": lower}
    if lower > _CLEARLY_MORE * claimed:
        remedy = "X_U shows more of X_S than any class can: drop the columns of X_U that repeat X_S."
        return CheckResult(
            "informativeness bound", "violated", found, remedy, explained, error, None, details
        )
    verdict: Verdict = "holds" if lower > 0.0 else "cannot tell"
    return CheckResult("informativeness bound", verdict, found, "", explained, error, None, details)


def explained_share(new: NewRows, seed: int) -> tuple[float, float]:
    """Cross-fitted R² of f_S on X_U (ridge), with its standard error."""
    X = scaled(new.unstable)
    X -= X.mean(axis=0)
    folds = np.random.default_rng(seed).permutation(len(X)) % _FOLDS
    residual, total = np.empty(len(X)), np.empty(len(X))
    for fold in np.unique(folds):
        inside, outside = folds != fold, folds == fold
        mean = new.stable[inside].mean(axis=0)
        fitted = X[outside] @ _ridge(X[inside], new.stable[inside] - mean) + mean
        residual[outside] = ((new.stable[outside] - fitted) ** 2).sum(axis=1)
        total[outside] = ((new.stable[outside] - mean) ** 2).sum(axis=1)
    scale = float(total.mean())
    if scale <= 1e-12:
        return 0.0, 0.0
    share = 1.0 - float(residual.mean()) / scale
    influence = ((total - residual) - share * total) / scale
    return share, float(influence.std(ddof=1) / np.sqrt(len(influence)))


def _ridge(X: FloatArray, target: FloatArray) -> FloatArray:
    """Least squares with one row's worth of ridge."""
    return np.asarray(np.linalg.solve(X.T @ X + np.eye(X.shape[1]), X.T @ target), dtype=np.float64)
