"""Mergeable statistics of pseudo-labels: what the new domain tells about f_S without labels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfboost.marginal.probabilities import FloatArray


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

    def __add__(self, other: PseudoLabelStatistics) -> PseudoLabelStatistics:
        if not isinstance(other, PseudoLabelStatistics):
            return NotImplemented
        if self.n_classes != other.n_classes:
            raise ValueError(
                f"Statistics of {self.n_classes} and of {other.n_classes} classes cannot be added: "
                "compute both with the same classes."
            )
        return PseudoLabelStatistics(
            self.weight + other.weight, self.total + other.total, self.cross + other.cross
        )

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
