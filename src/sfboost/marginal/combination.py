"""The combination function C_p (Eq. 4.5, and App. C for more than two classes), in log space."""

from __future__ import annotations

import numpy as np
from scipy.special import softmax

from sfboost.marginal.probabilities import FloatArray, floored_log, log_softmax


def log_combine(stable: FloatArray, log_unstable: FloatArray, prior: FloatArray) -> FloatArray:
    """Return log C_p: log f_S + log f_U − log p, normalised over classes.

    Where f_S rules a class out, it stays ruled out: perfect but contradictory evidence has probability
    zero (Lemma of App. B), and the stable predictor is the one to trust. A class with no mass in the
    prior has no unstable evidence either way, so there f_U / p is read as 1.

    Parameters
    ----------
    stable : array of shape (n, K)
        f_S, probabilities; exact zeros and ones are fine.
    log_unstable : array of shape (n, K)
        log f_U, finite (see `floored_log`).
    prior : array of shape (K,)

    References
    ----------
    .. [1] C. Eastwood et al. (2023). Spuriosity Didn't Kill the Classifier: Using Invariant Predictions
       to Harness Spurious Features. NeurIPS 36. Eq. 4.5 and App. C.
    """
    with np.errstate(divide="ignore"):
        log_stable = np.log(stable)
    ratio = np.where(prior > 0.0, log_unstable - floored_log(prior), 0.0)
    return log_softmax(log_stable + ratio)


def combine(stable: FloatArray, unstable: FloatArray, prior: FloatArray) -> FloatArray:
    """Pr[Y | X_S, X_U] from Pr[Y | X_S], Pr[Y | X_U] and Pr[Y].

    Given the class, stable and unstable features are independent: each is evidence of its own, and evidence
    is multiplied. The prior is in both, so it is divided out once.

    Examples
    --------
    >>> import numpy as np
    >>> combine(np.array([[0.25, 0.75]]), np.array([[0.1, 0.9]]), np.array([0.5, 0.5])).round(4)
    array([[0.0357, 0.9643]])
    >>> combine(np.array([[0.0, 1.0]]), np.array([[1.0, 0.0]]), np.array([0.5, 0.5]))
    array([[0., 1.]])

    References
    ----------
    .. [1] C. Eastwood et al. (2023). Spuriosity Didn't Kill the Classifier: Using Invariant Predictions
       to Harness Spurious Features. NeurIPS 36. Eq. 4.5 and App. C.
    """
    return np.exp(log_combine(stable, floored_log(unstable), prior))


def posterior(log_unstable: FloatArray, log_weights: FloatArray) -> FloatArray:
    """Pr[Y | X_S, X_U] from log f_U and the log-weights log(f_S / p): the E-step of EM."""
    return softmax(log_unstable + log_weights, axis=1)
