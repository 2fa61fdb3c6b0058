"""Drift of the class shares: further than between the training domains, or not."""

from __future__ import annotations

import numpy as np

from sfboost.diagnostics.inputs import Material
from sfboost.diagnostics.result import CheckResult

_NOTICEABLE = 0.1


def check_prior_drift(material: Material) -> CheckResult:
    """Total variation between the class shares f_S implies in the new domain and the training ones.

    Drift is no violation of the paper's assumptions; but if P(X_S | Y) is what transports, the mean of f_S
    is not the class share, and the drift says how much that matters.
    """
    training, new = material.labelled, material.fresh
    reference = training.stable.mean(axis=0)
    difference = new.stable.mean(axis=0) - reference
    drift = 0.5 * float(np.abs(difference).sum())
    sign = np.sign(difference)
    # The variance of ½ Σ ± mean f, from both samples.
    variance = sum(
        float(np.var(0.5 * stable @ sign, ddof=1)) / len(stable) for stable in (training.stable, new.stable)
    )
    error = float(np.sqrt(variance))
    seen = {
        name: 0.5 * float(np.abs(training.onehot[rows].mean(axis=0) - reference).sum())
        for name, rows in training.by_domain
    }
    widest = max(seen.values())
    found = (
        f"Class shares differ from training by {drift:.3f} ± {error:.3f} (total variation); training domains "
        f"differ by up to {widest:.3f}."
    )
    details = {"by_domain": seen}
    beyond = drift - 1.64 * error
    if beyond > max(widest, _NOTICEABLE):
        remedy = (
            "If classes are causes of the stable features, use stability='likelihood'; see the check "
            "'kind of stability'."
        )
        return CheckResult("prior drift", "doubtful", found, remedy, drift, error, None, details)
    return CheckResult("prior drift", "holds", found, "", drift, error, None, details)
