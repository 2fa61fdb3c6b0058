"""`AdaptedSFBClassifier`: a trained network plus what was learned in one new domain."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin

from sfboost.adaptation import Adaptation
from sfboost.leakage.model import LeakAdaptation
from sfboost.marginal.probabilities import FloatArray
from sfboost.persistence import Savable

if TYPE_CHECKING:
    from sfboost.torch.predictor import FittedPredictor


class AdaptedSFBClassifier(Savable, ClassifierMixin, BaseEstimator):
    """A classifier for one new domain. Made by `SFBClassifier.adapt`; it is never fitted itself.

    Parameters
    ----------
    model : SFBClassifier
        The fitted model; it is not changed.
    adaptation : Adaptation or LeakAdaptation
        What was learned in the new domain.
    """

    def __init__(self, model: FittedPredictor, adaptation: Adaptation | LeakAdaptation) -> None:
        self.model = model
        self.adaptation = adaptation

    def predict_proba(self, X: Any) -> FloatArray:
        """Pr[Y | X_S, X_U] in the new domain, of shape (n, K)."""
        leak = isinstance(self.adaptation, LeakAdaptation)
        stable, unstable = self.model._calibrated(X) if leak else self.model.stable_and_unstable(X)
        return self.adaptation.predict_proba(np.exp(stable), unstable)

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The most probable class of each row."""
        return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)])

    @property
    def classes_(self) -> npt.NDArray[Any]:
        """The classes, in the order of the columns of `predict_proba`."""
        return self.adaptation.classes

    @property
    def prior_(self) -> FloatArray:
        """Class shares of the new domain."""
        return self.adaptation.prior

    @property
    def decision_(self) -> str:
        """What was done: "adapted", "kept stable", "blended" or "leak-corrected"."""
        return self.adaptation.decision.kind if isinstance(self.adaptation, Adaptation) else "leak-corrected"

    @property
    def reason_(self) -> str:
        """Why that was decided."""
        if isinstance(self.adaptation, Adaptation):
            return self.adaptation.decision.reason
        return "pseudo-labels err as measured in the training domains"

    @property
    def leak_(self) -> float | None:
        """δ that the guard allowed for, or None without a guard."""
        guard = getattr(self.adaptation, "guard", None)
        return None if guard is None else guard.leak

    def __sklearn_is_fitted__(self) -> bool:
        return True
