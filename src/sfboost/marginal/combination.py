"""Putting f_S and f_U together: the combination function C_p, and the likelihood behind EM.

C_p is Eq. 4.5, and App. C for more than two classes, in log space. With the prior p fixed at the mean of f_S,

    ℓ(f_U) = Σ_i log Σ_y f_U,y(u_i) · f_S,y(x_i) / p_y

is the log-likelihood of X_S given X_U, relative to the law of X_S. It is zero at f_U ≡ p, and its largest
value per row is, in the population, the mutual information I(X_S; X_U).
"""

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


def log_weights(stable: FloatArray, prior: FloatArray) -> FloatArray:
    """Log w with w_iy = f_S,y(x_i) / p_y; always finite. A class without mass gets w = 1."""
    return np.where(prior > 0.0, floored_log(stable) - floored_log(prior), 0.0)


def log_likelihood_rows(log_unstable: FloatArray, log_w: FloatArray) -> FloatArray:
    """ℓ row by row, from log f_U and log w of shape (n, K).

    The label of a new row is not seen; f_S says how likely each is, f_U says how likely X_U makes it. Where
    the two speak of the same label they agree more than chance would have it, and ℓ counts by how much.

    Examples
    --------
    >>> import numpy as np
    >>> f_S, prior = np.array([[0.2, 0.8], [0.6, 0.4]]), np.array([0.4, 0.6])
    >>> rows = log_likelihood_rows(np.log([prior, prior]), log_weights(f_S, prior))
    >>> bool(abs(rows).max() < 1e-12)
    True

    References
    ----------
    .. [1] A. P. Dempster, N. M. Laird and D. B. Rubin (1977). Maximum Likelihood from Incomplete Data
       via the EM Algorithm. Journal of the Royal Statistical Society B 39.
    """
    both = np.ascontiguousarray((log_unstable + log_w).T)
    largest = both.max(axis=0)
    return np.asarray(largest + np.log(np.exp(both - largest).sum(axis=0)))
