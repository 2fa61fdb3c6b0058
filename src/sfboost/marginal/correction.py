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


def invert_confusion(pseudo: FloatArray, confusion: FloatArray) -> FloatArray:
    """ε⁻¹ f̃ row by row, unclipped: the signed targets of Natarajan's unbiased ("backward") loss.

    Labels that are wrong with known probabilities can be exchanged for signed ones that are right on
    average.

    A singular ε is replaced by its pseudo-inverse; rows sum to one in either case.

    Examples
    --------
    >>> import numpy as np
    >>> confusion = np.array([[0.625, 0.375], [0.375, 0.625]])
    >>> invert_confusion(np.array([[0.25, 0.75]]), confusion)
    array([[-0.5,  1.5]])

    References
    ----------
    .. [1] N. Natarajan, I. S. Dhillon, P. Ravikumar and A. Tewari (2013). Learning with Noisy Labels.
       NeurIPS 26.
    """
    inverse = np.linalg.pinv(confusion, rcond=1e-10)
    signed = pseudo @ inverse.T
    # The pseudo-inverse of a singular ε may lose the sum: put it back evenly.
    return signed + (1.0 - signed.sum(axis=1, keepdims=True)) / signed.shape[1]
