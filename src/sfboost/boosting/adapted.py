"""`AdaptedClassifier`: a fitted model plus what was learned in one new domain."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin

from sfboost.adaptation import Adaptation, Explanation
from sfboost.adaptation.checks import check_unstable
from sfboost.adaptation.costs import check_costs, decided
from sfboost.boosting.stable_learner import stable_terms
from sfboost.calibration import Temperature
from sfboost.choice import BestAnswer, Reason
from sfboost.choice.explaining import explain_best
from sfboost.heads import SoftLabelMixin
from sfboost.marginal.probabilities import BoolArray, FloatArray
from sfboost.persistence import Savable
from sfboost.shift import DomainData, Shift


class AdaptedClassifier(Savable, ClassifierMixin, BaseEstimator):
    """A classifier for one new domain. Made by `adapt` of a fitted model; it is never fitted itself.

    Parameters
    ----------
    model : StableFeatureBoosting or SFBClassifier
        The fitted model; what `sfboost.adapt` was given of training, where arrays were adapted to.
    adaptation : Adaptation
        What was learned in the new domain.
    best : BestAnswer or None
        What was chosen there, with answer="best".

    Attributes
    ----------
    classes_, prior_, confusion_, informativeness_, head_, rounds_ :
        As estimated in the new domain.
    decision_ : {"pooled", "adapted", "kept stable"}
    reason_ : Reason
        Why: a code with values, and in words as ``str(reason_)``.
    warnings_ : tuple of str
    shift_ : Shift or None
        What moved; this and what follows where source domains tell what is usual.
    weights_ : dict of str to float, or None
        Of the candidate answers.
    answers_ : dict of str to array of shape (n, K), or None
        What every candidate says of the rows that were adapted to. Not kept in files.
    """

    answers_: dict[str, FloatArray] | None = None

    def __init__(
        self,
        model: Any,
        adaptation: Adaptation,
        best: BestAnswer | None = None,
    ) -> None:
        self.model = model
        self.adaptation = adaptation
        self.best = best

    def __str__(self) -> str:
        shares = ", ".join(f"{name} {p:.3f}" for name, p in zip(self.classes_, self.prior_, strict=True))
        return f"AdaptedClassifier: {self.decision_}\n{self.reason_}\nclass shares here: {shares}"

    __repr__ = __str__  # all parameters spelled out would be pages of numbers

    def _saved_state(self) -> dict[str, Any]:
        # What was said of each row stays out of files.
        return {"model": self.model, "adaptation": self.adaptation, "best": self.best}

    def _parts(self, X: Any) -> tuple[FloatArray, Any]:
        """f_S and X_U of rows, as the adaptation knows them."""
        log_stable, unstable = self.model.stable_and_unstable(X)
        return np.exp(log_stable), unstable

    def fit(self, X: Any, y: Any = None, **more: Any) -> AdaptedClassifier:
        """Return itself: what was learned stays, as in a FrozenEstimator: scikit-learn's tools take it so.

        A new domain is for `model.adapt`.
        """
        return self

    def predict_log_proba(self, X: Any, X_unstable: Any = None) -> FloatArray:
        """Logarithm of `predict_proba`."""
        X = X if X_unstable is None else (X, X_unstable)
        if self.best is None:
            log_proba = self.adaptation.predict_log_proba(*self._parts(X))
            scaling = self._scaling()
            return log_proba if scaling is None else scaling.apply(log_proba)
        return self.best.log_proba(self._rows(X))

    def _rows(self, X: Any) -> DomainData:
        rows = self.model.answer_rows(X)
        if rows is None:
            # What is wrong with them others can say better.
            unstable = self._parts(X)[1]
            check_unstable(unstable, n_rows=unstable.shape[0])
            raise ValueError("These rows hold what is no finite number: impute or drop those cells first.")
        return rows

    def predict_proba(self, X: Any, X_unstable: Any = None) -> FloatArray:
        """Pr[Y | X_S, X_U] in the target domain, of shape (n, K).

        Parameters
        ----------
        X : rows of the target domain
        X_unstable : array-like of shape (n, d), optional
            What `sfboost.adapt` returns is given both: the stable probabilities as X, and X_U.
        """
        return np.exp(self.predict_log_proba(X, X_unstable))

    def predict(self, X: Any, X_unstable: Any = None, *, costs: Any = None) -> npt.NDArray[Any]:
        """The most probable class of each row or, with costs, the one of the least expected cost.

        Parameters
        ----------
        X, X_unstable : as in `predict_proba`
        costs : array-like of shape (K, K), optional
            ``costs[y, j]`` of deciding j where the truth is y, in the order of `classes_`. None is those of
            the model's `Settings`, if it has any.
        """
        price = self.model._costs() if costs is None else check_costs(costs, len(self.classes_))
        return self.classes_[decided(self.predict_proba(X, X_unstable), price)]

    def predict_set(self, X: Any, coverage: float = 0.9) -> BoolArray:
        """Whether each class belongs to the set of each row, of shape (n, K).

        The sets held the true class at least so often in every source domain that was left out;
        see `sfboost.diagnostics.PredictionSets` for what that promises here.

        Parameters
        ----------
        X : rows of the new domain
        coverage : float, default=0.9
            The share of rows whose set is to hold the true class.
        """
        sets = getattr(self.model, "prediction_sets_", None)
        if sets is None:
            raise ValueError(
                "How large sets must be is learned on left-out training domains, and this model has not: "
                "call model.calibrate_sets(X, y, sample_domain) with the training rows, then adapt again."
            )
        inside: BoolArray = sets.predict_set(self.predict_proba(X), coverage)
        return inside

    def explain(self, row: Any) -> Explanation:
        """Why one row gets its prediction, by class and by feature.

        Where SFB is the answer the terms are log f_S + log f_U − log p; else what each feature adds, against
        what training expects of it.

        Parameters
        ----------
        row : one row of X, as it is or as a table of one row, a DataFrame of one row, or a Series; a pair of
            its stable probabilities and its X_U where `sfboost.adapt` was given these
        """
        if not isinstance(row, tuple):
            row = _one_row(row, getattr(self.model, "row_shape_", (-1,)))
        explanation = self._explained(row)
        encoder = getattr(self.model, "encoder_", None)
        cells = encoder.cells(row) if encoder is not None and hasattr(row, "columns") else {}
        terms = stable_terms(self.model, row) if explanation.stable_alone else None
        if terms is not None:
            explanation = replace(explanation, **terms)
        return replace(explanation, cells=cells)

    def _explained(self, row: Any) -> Explanation:
        if self.best is not None and self.best.choice.weights != {"boosted": 1.0}:
            pooled = getattr(self.model, "pooled_", None)
            stable, unstable = (
                ((), self.model.unstable_names_)  # f_S came as probabilities, of no columns
                if pooled is None
                else (part.names for part in pooled.columns)
            )
            rows, record = self._rows(row), self.model.training_.record
            return explain_best(self.best, rows, record, self.classes_, stable, unstable)
        explanation = self.adaptation.explain(*self._parts(row), feature_names=self.model.unstable_names_)
        scaling = self._scaling()
        return explanation if scaling is None else explanation.scaled(scaling.temperature)

    def _scaling(self) -> Temperature | None:
        """With components: how much less sure the answer is than both parts together."""
        played = self.model.components_
        return None if played is None or self.adaptation.head is None else played.temperature

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
        """What was done: "pooled", "adapted" or "kept stable"."""
        return self.adaptation.decision.kind if self.best is None else self.best.choice.decision

    @property
    def reason_(self) -> Reason:
        """Why that was decided."""
        if self.best is not None:
            return self.best.choice.reason
        decision = self.adaptation.decision
        code = "refused" if decision.kind == "kept stable" else "learned"
        return Reason(code, {"because": decision.reason})

    @property
    def shift_(self) -> Shift | None:
        """What moved: nothing, class shares, features; None where nobody knows what is usual."""
        return None if self.best is None else self.best.shift

    @property
    def weights_(self) -> dict[str, float] | None:
        """Weights of the predictors; None where there is but one."""
        return None if self.best is None else self.best.choice.weights

    @property
    def warnings_(self) -> tuple[str, ...]:
        """What else a user should know."""
        return self.adaptation.warnings

    @property
    def n_features_in_(self) -> int:
        """Columns that the model was fitted to."""
        return int(self.model.n_features_in_)

    @property
    def feature_names_in_(self) -> npt.NDArray[Any]:
        """Their names, if they have any."""
        names: npt.NDArray[Any] = self.model.feature_names_in_
        return names

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_clone__(self) -> AdaptedClassifier:
        # Never fitted, so there is nothing to start anew: a clone of the model alone would know nothing.
        return copy(self)


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
