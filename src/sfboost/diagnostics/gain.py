"""Is there anything to gain: does X_U tell anything about X_S (ℓ > 0)? Not evidence of safety."""

from __future__ import annotations

import numpy as np
from scipy.stats import norm

from sfboost.adaptation import adapt
from sfboost.adaptation.decision import unwarned
from sfboost.diagnostics.inputs import CheckInputs
from sfboost.diagnostics.moments import scaled, zero_mean_test
from sfboost.diagnostics.result import CheckResult
from sfboost.marginal import posterior
from sfboost.marginal.probabilities import FloatArray

# A gain that no one would notice: two thousandths of a nat per row.
_NEGLIGIBLE = 0.002


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
    negligible = gain + norm.isf(inputs.level) * error < _NEGLIGIBLE
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
