"""`AdaptedClassifier`: a fitted model plus what was learned in one new domain."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin

from sfboost.adaptation import Adaptation, Explanation
from sfboost.adaptation.uncertainty import Uncertainty
from sfboost.heads import SoftLabelMixin
from sfboost.leakage.model import LeakAdaptation
from sfboost.marginal.probabilities import FloatArray
from sfboost.persistence import Savable


class TwoParts(Protocol):
    """What an adapted classifier asks of the fitted model below it, be that of columns or a network."""

    @property
    def unstable_names_(self) -> tuple[str, ...]:
        """Names of the unstable features."""

    def stable_and_unstable(self, X: Any) -> tuple[FloatArray, Any]:
        """Calibrated log f_S of shape (n, K), and the unstable features."""


class AdaptedClassifier(Savable, ClassifierMixin, BaseEstimator):
    """A classifier for one new domain. Made by `adapt` of a fitted model; it is never fitted itself.

    Parameters
    ----------
    model : StableFeatureBoosting or SFBClassifier
        The fitted model.
    adaptation : Adaptation or LeakAdaptation
        What was learned in the new domain.

    Attributes
    ----------
    classes_, prior_, confusion_, informativeness_, head_, rounds_, uncertainty_ :
        As estimated in the new domain.
    decision_ : {"adapted", "kept stable", "blended", "leak-corrected"}
    reason_ : str
        Why, in one sentence.
    leak_, break_even_ : float or None
        Of the guard.
    warnings_ : tuple of str
    """

    def __init__(self, model: TwoParts, adaptation: Adaptation | LeakAdaptation) -> None:
        self.model: Any = model
        self.adaptation = adaptation

    def _parts(self, X: Any) -> tuple[FloatArray, Any]:
        """f_S and X_U of rows, as the adaptation knows them."""
        # A network's leak correction has learned the score as it is before flattening.
        raw = {"flattened": False} if isinstance(self.adaptation, LeakAdaptation) else {}
        log_stable, unstable = self.model.stable_and_unstable(X, **raw)
        return np.exp(log_stable), unstable

    def predict_log_proba(self, X: Any) -> FloatArray:
        """Logarithm of `predict_proba`."""
        return self.adaptation.predict_log_proba(*self._parts(X))

    def predict_proba(self, X: Any) -> FloatArray:
        """Pr[Y | X_S, X_U] in the new domain, of shape (n, K)."""
        return np.exp(self.predict_log_proba(X))

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The most probable class of each row."""
        best = self.predict_log_proba(X).argmax(axis=1)
        return self.classes_[best]

    def explain(self, row: Any) -> Explanation:
        """Why one row gets its prediction: log f_S + log f_U − log p, by class and by unstable feature.

        Parameters
        ----------
        row : one row of X, as it is or as a table of one row, a DataFrame of one row, or a Series
        """
        stable, unstable = self._parts(_one_row(row, getattr(self.model, "row_shape_", (-1,))))
        return self.adaptation.explain(stable, unstable, feature_names=self.model.unstable_names_)

    def depends_on_leak(self, X: Any) -> npt.NDArray[np.bool_]:
        """Rows whose predicted class would be another one if there were no leak at all."""
        return self.adaptation.depends_on_leak(*self._parts(X))

    @property
    def classes_(self) -> npt.NDArray[Any]:
        """The classes, in the order of the columns of `predict_proba`."""
        return self.adaptation.classes

    @property
    def prior_(self) -> FloatArray:
        """Class shares of the new domain."""
        return self.adaptation.prior

    @property
    def confusion_(self) -> FloatArray:
        """ε[y, y'] = Pr[Ŷ = y | Y = y'] of the pseudo-labels."""
        return self.adaptation.confusion

    @property
    def informativeness_(self) -> float:
        """s, what the stable predictor claims to know in the new domain."""
        return self.adaptation.informativeness

    @property
    def head_(self) -> SoftLabelMixin | None:
        """The head on the unstable features, or None if there is none: the stable predictor was kept."""
        return self.adaptation.head

    @property
    def rounds_(self) -> int:
        """Rounds of pseudo-labelling."""
        return self.adaptation.rounds

    @property
    def decision_(self) -> str:
        """What was done: "adapted", "kept stable", "blended" or "leak-corrected"."""
        return self.adaptation.decision.kind

    @property
    def reason_(self) -> str:
        """Why that was decided."""
        return self.adaptation.decision.reason

    @property
    def uncertainty_(self) -> Uncertainty | None:
        """Standard errors, if they were asked for."""
        return self.adaptation.uncertainty

    @property
    def leak_(self) -> float | None:
        """δ that the guard allowed for, or None without a guard."""
        return None if self.adaptation.guard is None else self.adaptation.guard.leak

    @property
    def break_even_(self) -> float | None:
        """δ*, the leak at which the estimated gain of adapting vanishes, or None without a guard."""
        return None if self.adaptation.guard is None else self.adaptation.guard.break_even

    @property
    def warnings_(self) -> tuple[str, ...]:
        """What else a user should know."""
        return self.adaptation.warnings

    def __sklearn_is_fitted__(self) -> bool:
        return True


def _one_row(row: Any, shape: tuple[int, ...]) -> Any:
    """A table of one row of this shape; DataFrames and tables of one row stay what they are."""
    if sparse.issparse(row):
        row = row.toarray()
    if hasattr(row, "to_frame") and not hasattr(row, "columns"):  # a Series
        row = row.to_frame().T
    elif not hasattr(row, "columns"):
        row = np.asarray(row)
        if -1 in shape or row.shape == shape:
            row = np.reshape(row, (1, *shape))
    if row.shape[0] != 1:
        raise ValueError(f"explain takes one row, got {row.shape[0]}: pass X[i] or X.iloc[[i]].")
    return row
