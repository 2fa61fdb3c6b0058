"""Leak correction: Pr[Y | U] of a new domain, learned with the leak model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from sfboost.adaptation import Decision, Explanation
from sfboost.marginal import as_probability_matrix, floored_log
from sfboost.marginal.probabilities import BoolArray, FloatArray, log_softmax

if TYPE_CHECKING:
    from sfboost.leakage.model import LeakModel


@dataclass(frozen=True, eq=False)
class LeakAdaptation:
    """A leak model with Pr[Y | U] of one new domain. Predicting never changes it.

    It answers whatever an `sfboost.Adaptation` does.

    Attributes
    ----------
    model : LeakModel
    shares : array of shape (cells, K)
        Pr[Y | U = u] in the new domain.
    cell_sizes : array of shape (cells,)
        Pr[U = u] there.
    n_rows : int
    confusion : array of shape (K, K)
        ε of the score as a pseudo-label in the new domain.
    decision : Decision
    warnings : tuple of str
    guard, uncertainty, head : None
        There are no band, no standard errors and no head: cells of U have shares.
    rounds : int
    """

    model: LeakModel
    shares: FloatArray
    cell_sizes: FloatArray
    n_rows: int
    confusion: FloatArray

    decision: ClassVar[Decision] = Decision(
        "leak-corrected", "pseudo-labels err as measured in the training domains"
    )
    warnings: ClassVar[tuple[str, ...]] = ()
    guard: ClassVar[None] = None
    uncertainty: ClassVar[None] = None
    head: ClassVar[None] = None
    rounds: ClassVar[int] = 1

    @property
    def classes(self) -> npt.NDArray[Any]:
        """The classes, in the order of the columns of `predict_proba`."""
        return self.model.classes

    @property
    def prior(self) -> FloatArray:
        """Class shares of the new domain."""
        return np.asarray(self.cell_sizes @ self.shares)

    @property
    def informativeness(self) -> float:
        """What the score says of the label in the new domain: (tr ε − 1) / (K − 1)."""
        return float(np.clip((np.trace(self.confusion) - 1.0) / (len(self.classes) - 1), 0.0, 1.0))

    def predict_log_proba(self, stable_proba: Any, X_unstable: Any) -> FloatArray:
        """Logarithm of `predict_proba`."""
        weights, cell = self.model._weights(stable_proba, X_unstable)
        return log_joint(weights, self.shares[cell])

    def predict_proba(self, stable_proba: Any, X_unstable: Any) -> FloatArray:
        """Pr[Y | T, U] in the new domain, of shape (n, K)."""
        return np.exp(self.predict_log_proba(stable_proba, X_unstable))

    def predict(self, stable_proba: Any, X_unstable: Any) -> npt.NDArray[Any]:
        """The most probable class of each row."""
        return np.asarray(self.classes[self.predict_log_proba(stable_proba, X_unstable).argmax(axis=1)])

    def depends_on_leak(self, stable_proba: Any, X_unstable: Any) -> BoolArray:
        """No row: the leak is corrected, and none is allowed for beyond that."""
        return np.zeros(len(as_probability_matrix(stable_proba)), dtype=bool)

    def explain(
        self, stable_proba: Any, x_unstable: Any, *, feature_names: tuple[str, ...] | None = None
    ) -> Explanation:
        """The terms of one row's prediction; `stable` is the flattened score, `unstable` its cell's shares.

        Pr[Y = y | t, u] ∝ q_u,y w_y, and the flattened score is p_y w_y up to a factor.
        """
        weights, cell = self.model._weights(stable_proba, x_unstable)
        stable, joint = log_joint(weights, self.model.prior), log_joint(weights, self.shares[cell])
        shares, prior = floored_log(self.shares[cell])[0], floored_log(self.model.prior)
        return Explanation(
            self.classes, stable[0], shares, prior, joint[0], feature_names=feature_names or ()
        )


def log_joint(weights: FloatArray, shares: FloatArray) -> FloatArray:
    """Log Pr[Y | T, U] where Pr[Y | U] is `shares`."""
    return log_softmax(floored_log(weights) + floored_log(shares))
