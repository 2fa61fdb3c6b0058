"""`AdaptedClassifier`: a fitted model plus what was learned in one new domain."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin

from sfboost.adaptation import Adaptation, Explanation
from sfboost.heads import SoftLabelMixin
from sfboost.marginal.probabilities import FloatArray
from sfboost.persistence import Savable

if TYPE_CHECKING:
    from sfboost.boosting.estimator import StableFeatureBoosting


class AdaptedClassifier(Savable, ClassifierMixin, BaseEstimator):
    """A classifier for one new domain. Made by `StableFeatureBoosting.adapt`; it is never fitted itself.

    Parameters
    ----------
    model : StableFeatureBoosting
        The fitted model.
    adaptation : Adaptation
        What was learned in the new domain.

    Attributes
    ----------
    classes_, prior_, confusion_, informativeness_, head_, rounds_ :
        As estimated in the new domain.
    decision_ : {"adapted", "kept stable", "blended"}
    reason_ : str
        Why, in one sentence.
    warnings_ : tuple of str
    """

    def __init__(self, model: StableFeatureBoosting, adaptation: Adaptation) -> None:
        self.model = model
        self.adaptation = adaptation

    def predict_log_proba(self, X: Any) -> FloatArray:
        """Logarithm of `predict_proba`."""
        stable = self.model.predict_proba(X)
        X = self.model._check_input(X, reset=False)
        return self.adaptation.predict_log_proba(stable, self.model.unstable_columns_.take(X))

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
        row : one row of X, as a vector, a matrix of one row, a DataFrame of one row, or a Series
        """
        if sparse.issparse(row):
            row = row.toarray()
        if hasattr(row, "to_frame") and not hasattr(row, "columns"):  # a Series
            row = row.to_frame().T
        elif not hasattr(row, "columns"):
            row = np.reshape(np.asarray(row), (1, -1))
        if row.shape[0] != 1:
            raise ValueError(f"explain takes one row, got {row.shape[0]}: pass X[i] or X.iloc[[i]].")
        stable = self.model.predict_proba(row)
        columns = self.model.unstable_columns_
        return self.adaptation.explain(stable, columns.take(row), feature_names=columns.names)

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
        """The head on the unstable features, or None if the stable predictor was kept."""
        return self.adaptation.head

    @property
    def rounds_(self) -> int:
        """Rounds of pseudo-labelling."""
        return self.adaptation.rounds

    @property
    def decision_(self) -> str:
        """What was done: "adapted", "kept stable" or "blended"."""
        return self.adaptation.decision.kind

    @property
    def reason_(self) -> str:
        """Why that was decided."""
        return self.adaptation.decision.reason

    @property
    def leak_(self) -> float | None:
        """δ that the guard allowed for, or None without a guard."""
        return None if self.adaptation.guard is None else self.adaptation.guard.leak

    @property
    def break_even_(self) -> float | None:
        """δ*, the leak at which the estimated gain of adapting vanishes, or None without a guard."""
        return None if self.adaptation.guard is None else self.adaptation.guard.break_even

    def depends_on_leak(self, X: Any) -> npt.NDArray[np.bool_]:
        """Rows whose predicted class would be another one if there were no leak at all."""
        stable = self.model.predict_proba(X)
        X = self.model._check_input(X, reset=False)
        return self.adaptation.depends_on_leak(stable, self.model.unstable_columns_.take(X))

    @property
    def warnings_(self) -> tuple[str, ...]:
        """What else a user should know."""
        return self.adaptation.warnings

    def __sklearn_is_fitted__(self) -> bool:
        return True
