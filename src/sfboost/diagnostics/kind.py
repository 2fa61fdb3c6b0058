"""Which stability: P(Y | X_S), the paper's, or P(X_S | Y), label shift? The intercept-slope test."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import softmax
from scipy.stats import norm

from sfboost.diagnostics.inputs import CheckInputs, TrainingRows
from sfboost.diagnostics.result import CheckResult
from sfboost.marginal import floored_log
from sfboost.marginal.probabilities import FloatArray

_FEWEST_ROWS = 50
#: A slope this near to 0 or 1 is that, however small its error.
_NEGLIGIBLE = 0.1


@dataclass(frozen=True)
class InterceptSlope:
    """Slope of the domain intercepts on the log class shares: 0 for P(Y | X_S) stable, 1 for P(X_S | Y).

    Attributes
    ----------
    slope, standard_error : float
    p_posterior, p_likelihood : float
        Of slope 0 and of slope 1.
    """

    slope: float
    standard_error: float
    p_posterior: float
    p_likelihood: float


def check_kind_of_stability(inputs: CheckInputs) -> CheckResult:
    """The intercept-slope test over training domains with different class shares."""
    training = inputs.labelled
    outcome = intercept_slope(training)
    if outcome is None:
        found = "The class shares of the training domains do not differ as X_S does, or there is one domain."
        remedy = "Decide by knowledge: causes of the class say 'posterior', effects of it 'likelihood'."
        return CheckResult("kind of stability", "cannot tell", found, remedy)
    posterior, likelihood = (
        p >= inputs.level or abs(outcome.slope - value) <= _NEGLIGIBLE
        for p, value in ((outcome.p_posterior, 0.0), (outcome.p_likelihood, 1.0))
    )
    found = (
        f"Domain intercepts follow the log class shares with slope {outcome.slope:.2f} ± "
        f"{outcome.standard_error:.2f} (0: P(Y | X_S) is stable, 1: P(X_S | Y) is)."
    )
    details = {"p_posterior": outcome.p_posterior, "p_likelihood": outcome.p_likelihood}
    result = (outcome.slope, outcome.standard_error, outcome.p_posterior, details)
    if posterior and likelihood:
        remedy = "Decide by knowledge, or pass more domains: both kinds fit."
        return CheckResult("kind of stability", "cannot tell", found, remedy, *result)
    if posterior:
        return CheckResult("kind of stability", "holds", found, "", *result)
    if likelihood:
        remedy = (
            "Use transport='likelihood' (with the command under [model] of --config): how the classes look "
            "is what stays, not what the looks say of the class."
        )
        return CheckResult("kind of stability", "violated", found, remedy, *result)
    remedy = "Neither kind fits: look for the stable columns that change."
    return CheckResult("kind of stability", "doubtful", found, remedy, *result)


def intercept_slope(training: TrainingRows) -> InterceptSlope | None:
    """Fit one offset per class and domain to log f_S, and regress the offsets on the log class shares.

    Both come from the same labels, whose noise would tie them together. So the mean of f_S in a domain, which
    no label of it enters, is the instrument, and each hypothesis is tested with the variance of (offset −
    slope · share) that it implies itself. None with fewer than two domains that have every class.
    """
    parts = [_domain_offsets(training, rows) for _, rows in training.by_domain if _usable(training, rows)]
    if len(parts) < 2:
        return None
    offsets, shares = np.array([part[0] for part in parts]), np.array([part[1] for part in parts])
    instrument = np.array([part[4] for part in parts])
    sizes = np.array([len(part[2]) for part in parts], dtype=np.float64)
    centre = sizes @ shares / sizes.sum()
    apart = instrument - sizes @ instrument / sizes.sum()
    contrast = sizes[:, None] * apart
    scale = float((contrast * (shares - centre)).sum())
    if scale <= 0.0:
        return None
    contrast = contrast / scale
    level = sizes @ offsets / sizes.sum()
    slope = float((contrast * (offsets - level)).sum())
    errors = {}
    for value in (0.0, 1.0, slope):
        variances = [
            float((((part[2] - value * part[3]) @ weights) ** 2).sum())
            for part, weights in zip(parts, contrast, strict=True)
        ]
        errors[value] = float(np.sqrt(sum(variances)))
    p_values = [float(2.0 * norm.sf(abs(slope - value) / max(errors[value], 1e-12))) for value in (0.0, 1.0)]
    return InterceptSlope(slope, errors[slope], p_values[0], p_values[1])


def _usable(training: TrainingRows, rows: np.ndarray) -> bool:
    counts = np.bincount(training.y[rows], minlength=training.n_classes)
    return len(rows) >= _FEWEST_ROWS and counts.min() >= 5


def _domain_offsets(
    training: TrainingRows, rows: np.ndarray
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]:
    """Offsets a with mean softmax(log f + a) = class shares, log shares, influences on both, and log E[f]."""
    stable, onehot = training.stable[rows], training.onehot[rows]
    logs = floored_log(stable)
    share = onehot.mean(axis=0)
    offset = np.zeros(training.n_classes)
    centring = np.eye(len(offset)) - 1.0 / len(offset)
    for _ in range(50):
        fitted = softmax(logs + offset, axis=1)
        information = np.diag(fitted.mean(axis=0)) - fitted.T @ fitted / len(rows)
        step = np.linalg.pinv(information, rcond=1e-10, hermitian=True) @ (share - fitted.mean(axis=0))
        offset = offset + np.clip(step, -2.0, 2.0)
        if np.abs(step).max() < 1e-10:
            break
    influence = (onehot - fitted) @ np.linalg.pinv(information, rcond=1e-10, hermitian=True) / len(rows)
    share_influence = (onehot - share) / share / len(rows)
    return (
        centring @ offset,
        centring @ np.log(share),
        influence @ centring,
        share_influence @ centring,
        centring @ np.log(stable.mean(axis=0)),
    )
