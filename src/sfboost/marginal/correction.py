"""From Pr[Ŷ | X_U] to Pr[Y | X_U]: undo the confusion of the pseudo-labels."""

from __future__ import annotations

import numpy as np

from sfboost.marginal.probabilities import FloatArray
from sfboost.marginal.simplex import simplex_least_squares

# Below this ε₀ + ε₁ − 1 is rounding, not information.
_LEAST_SLOPE = 1e-10


def correct_posthoc(pseudo: FloatArray, confusion: FloatArray) -> FloatArray:
    """The paper's bias correction of a head fitted to pseudo-labels.

    A pseudo-label is a label that was mixed up with known probabilities: what a head learns from it is f̃ =
    ε f_U. So f_U is what ε maps to f̃.

    Two classes: (f̃ + ε₀ − 1) / (ε₀ + ε₁ − 1), clipped to [0, 1] (Eq. 4.4, Algorithm 1 line 5).
    More: the point p of the simplex that brings ε p closest to f̃ (Algorithm 2). With two classes
    both are the same number.

    Parameters
    ----------
    pseudo : array of shape (n, K)
        f̃ ≈ Pr[Ŷ | X_U].
    confusion : array of shape (K, K)
        ε, column-stochastic.

    Examples
    --------
    >>> import numpy as np
    >>> confusion = np.array([[0.625, 0.375], [0.375, 0.625]])
    >>> correct_posthoc(np.array([[0.6, 0.4]]), confusion).round(12)
    array([[0.9, 0.1]])

    References
    ----------
    .. [1] C. Eastwood et al. (2023). Spuriosity Didn't Kill the Classifier: Using Invariant Predictions
       to Harness Spurious Features. NeurIPS 36. Eq. 4.4, Algorithms 1 and 2.
    """
    if len(confusion) == 2:
        slope = confusion[0, 0] + confusion[1, 1] - 1.0
        if slope <= _LEAST_SLOPE:
            # An uninformative f_S says nothing of X_U: keep its average, the prior.
            return pseudo.copy()
        second = np.clip((pseudo[:, 1] - confusion[1, 0]) / slope, 0.0, 1.0)
        return np.column_stack([1.0 - second, second])
    return simplex_least_squares(confusion, pseudo)
