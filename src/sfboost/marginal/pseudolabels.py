"""Pseudo-labels: made of f_S, how often they are wrong (ε), and what a head that learned them must undo.

Soft, hard or sampled; none of it needs a label.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sfboost.marginal.probabilities import FloatArray
from sfboost.marginal.simplex import simplex_least_squares

# Below this ε₀ + ε₁ − 1 is rounding, not information.
_LEAST_SLOPE = 1e-10


@dataclass(frozen=True, eq=False)
class PseudoLabelStatistics:
    """Sums over rows of stable probabilities f: enough for the prior and the confusion ε.

    If f_S is calibrated, a row with f_S = 0.8 has its class in 8 of 10 cases. That alone tells how often
    pseudo-labels are wrong, without a label.

    Two of them add up: the sum equals the statistics of the concatenated rows, so they can be
    computed batch by batch or machine by machine.

    Attributes
    ----------
    weight : float
        Σ w, the (weighted) number of rows.
    total : array of shape (K,)
        Σ w f, the soft class counts n̂.
    cross : array of shape (K, K)
        Σ w f fᵀ.

    Notes
    -----
    ε[y, y'] = Pr[Ŷ = y | Y = y'] is estimated by Σ f_y f_y' / Σ f_y' (Algorithm 1 line 3; Algorithm 2
    line 3, whose product is f_Sᵀ · Normalize(f_S)). It needs a calibrated f_S, and no labels.

    Examples
    --------
    >>> import numpy as np
    >>> f = np.array([[0.25, 0.75], [0.75, 0.25]])
    >>> stats = PseudoLabelStatistics.from_proba(f)
    >>> stats.confusion
    array([[0.625, 0.375],
           [0.375, 0.625]])
    >>> stats.informativeness
    0.25

    References
    ----------
    .. [1] C. Eastwood et al. (2023). Spuriosity Didn't Kill the Classifier: Using Invariant Predictions
       to Harness Spurious Features. NeurIPS 36. Section 4, Algorithms 1 and 2.
    """

    weight: float
    total: FloatArray
    cross: FloatArray

    @classmethod
    def from_proba(cls, proba: FloatArray, sample_weight: FloatArray | None = None) -> PseudoLabelStatistics:
        """Statistics of the rows of a probability matrix of shape (n, K)."""
        if sample_weight is None:
            return cls(float(len(proba)), proba.sum(axis=0), proba.T @ proba)
        weighted = proba * sample_weight[:, None]
        return cls(float(sample_weight.sum()), weighted.sum(axis=0), weighted.T @ proba)

    @property
    def n_classes(self) -> int:
        """K, the number of classes."""
        return len(self.total)

    @property
    def prior(self) -> FloatArray:
        """Pr[Y = y] in these rows: n̂ / n."""
        return self.total / self.total.sum()

    @property
    def confusion(self) -> FloatArray:
        """ε, column-stochastic: column y' is the law of the pseudo-label given Y = y'.

        A class without any mass has no column to estimate: its column is the unit vector, as if the
        pseudo-label were always right about a class that is not there.
        """
        empty = self.total <= 0.0
        confusion = self.cross / np.where(empty, 1.0, self.total)
        confusion[:, empty] = np.eye(self.n_classes)[:, empty]
        return confusion

    @property
    def _symmetric_confusion(self) -> FloatArray:
        """D^(-1/2) Σffᵀ D^(-1/2) with D = diag(n̂): symmetric, with the eigenvalues of ε."""
        root = np.sqrt(np.where(self.total > 0.0, self.total, 1.0))
        similar = self.cross / np.outer(root, root)
        empty = self.total <= 0.0
        similar[empty, empty] = 1.0
        return similar

    @property
    def spectrum(self) -> FloatArray:
        """Eigenvalues of ε, largest first. They are real, in [0, 1], and the first one is 1."""
        values = np.linalg.eigvalsh(self._symmetric_confusion)[::-1]
        return np.clip(values, 0.0, 1.0)

    @property
    def informativeness(self) -> float:
        """Mean of the eigenvalues of ε but the first: (tr ε − 1) / (K − 1).

        With two classes this is s = ε₀ + ε₁ − 1 = Var f_S / (p (1 − p)) of Theorem 4.4: zero if and
        only if f_S is constant (Lemma 4.5), one if and only if it is always certain. It is what f_S
        *claims*: an overconfident f_S claims too much.
        """
        present = int((self.total > 0.0).sum())
        if present < 2:
            return 0.0
        trace = float(np.trace(self.confusion)) - (self.n_classes - present)
        return float(np.clip((trace - 1.0) / (present - 1), 0.0, 1.0))

    @property
    def effective_labels(self) -> float:
        """N times the informativeness: how many true labels these soft ones are worth.

        Exact for two classes, known ε and an X_U that says nothing (`n s`); of the right order elsewhere.
        """
        return self.weight * self.informativeness

    def weak_contrasts(self, fewest: float) -> list[FloatArray]:
        """Directions of class space that f_S hardly separates.

        For K > 2 an informative f_S is not enough: Pr[Y | X_U] is identified only if E[f_S f_Sᵀ] has
        rank K. Returned are the contrasts (vectors of shape (K,), one weight per class) whose
        eigenvalue times n is below `fewest`.
        """
        values, vectors = np.linalg.eigh(self._symmetric_confusion)
        weak = self.weight * np.maximum(values, 0.0) < fewest
        # Back from the symmetric form to class space: the null vectors of ε itself.
        scale = np.sqrt(np.where(self.total > 0.0, self.total, 1.0))
        return [vectors[:, j] / scale for j in np.flatnonzero(weak)]


def _soft(proba: FloatArray, _: np.random.Generator) -> FloatArray:
    return proba


def _hard(proba: FloatArray, _: np.random.Generator) -> FloatArray:
    return np.eye(proba.shape[1])[proba.argmax(axis=1)]


def _sampled(proba: FloatArray, rng: np.random.Generator) -> FloatArray:
    chosen = (rng.random(len(proba))[:, None] > proba.cumsum(axis=1)).sum(axis=1)
    return np.eye(proba.shape[1])[np.minimum(chosen, proba.shape[1] - 1)]


#: Name → function. `soft` is Algorithm 1; `hard` is the argmax of Section 3; `sampled` is the
#: stochastic label of Theorem 4.4, which has the expectation of `soft` and more variance.
PSEUDO_LABELS: dict[str, Callable[[FloatArray, np.random.Generator], FloatArray]] = {
    "soft": _soft,
    "hard": _hard,
    "sampled": _sampled,
}


def make_pseudo_labels(
    proba: FloatArray, kind: str = "soft", random_state: int | np.random.Generator | None = 0
) -> FloatArray:
    """Turn stable probabilities into pseudo-labels of shape (n, K) whose rows sum to one.

    Examples
    --------
    >>> import numpy as np
    >>> make_pseudo_labels(np.array([[0.3, 0.7]]), "hard")
    array([[0., 1.]])
    """
    if kind not in PSEUDO_LABELS:
        raise ValueError(f"pseudo_labels={kind!r} is not known: use one of {sorted(PSEUDO_LABELS)}.")
    return PSEUDO_LABELS[kind](proba, np.random.default_rng(random_state))


def pseudo_label_confusion(
    pseudo: FloatArray, proba: FloatArray, sample_weight: FloatArray | None = None
) -> FloatArray:
    """ε of any pseudo-label: Pr[Ŷ = y | Y = y'] = Σ Ŷ_y f_y' / Σ f_y' (Algorithm 1 line 3).

    For soft labels the sums are those of `PseudoLabelStatistics`, which makes ε of them.
    """
    weighted = proba if sample_weight is None else proba * sample_weight[:, None]
    total = weighted.sum(axis=0)
    return PseudoLabelStatistics(float(total.sum()), total, pseudo.T @ weighted).confusion


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
