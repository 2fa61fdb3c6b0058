"""The one likelihood behind EM.

With the prior p fixed at the mean of f_S,

    ℓ(f_U) = Σ_i log Σ_y f_U,y(u_i) · f_S,y(x_i) / p_y

is the log-likelihood of X_S given X_U, relative to the law of X_S. It is zero at f_U ≡ p, and its
largest value per row is, in the population, the mutual information I(X_S; X_U).
"""

from __future__ import annotations

import numpy as np

from sfboost.marginal.probabilities import FloatArray, floored_log


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
