"""`AdaptableClassifier`: what a fitted model can do, be it of columns or a network."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import _safe_indexing

from sfboost.adaptation import Settings, Training
from sfboost.adaptation.checks import check_weight
from sfboost.adaptation.engine import adapt_rows
from sfboost.adaptation.settings import Choices, resolve
from sfboost.boosting.adapted import AdaptedClassifier
from sfboost.boosting.diagnosing import alarm_of, head_numbers, with_leak
from sfboost.diagnostics import NewRows
from sfboost.marginal.probabilities import FloatArray
from sfboost.persistence import Savable


class AdaptableClassifier(Savable, ClassifierMixin, BaseEstimator):
    """Predicts with f_S until it is adapted. Its subclasses' `fit` sets what it needs.

    A subclass says what f_S and the unstable features of rows are (`stable_and_unstable`, `unstable_names_`),
    and what training knows (`training_`).
    """

    transport: str
    settings: Settings | None
    classes_: npt.NDArray[Any]
    training_: Training

    def stable_and_unstable(self, X: Any) -> tuple[FloatArray, Any]:
        """Return calibrated log f_S of shape (n, K), and X_U (or Φ_U), as `sfboost.adapt` takes them."""
        raise NotImplementedError

    def _checked_parts(self, X: Any) -> tuple[FloatArray, Any]:
        """`stable_and_unstable` of rows to adapt to, or a sentence that says why that cannot be."""
        return self.stable_and_unstable(X)

    def _choices(self, settings: Settings | None) -> Choices:
        """All that settings leave open, decided."""
        return resolve(settings, transport=self.transport)

    def _doubt(self) -> str | None:
        """Why f_S is not to be trusted in any new domain, if training says so."""
        return None

    def predict_log_proba(self, X: Any) -> FloatArray:
        """Logarithm of `predict_proba`."""
        return self.stable_and_unstable(X)[0]

    def predict_proba(self, X: Any) -> FloatArray:
        """f_S: calibrated probabilities from the stable features alone, of shape (n, K)."""
        return np.exp(self.predict_log_proba(X))

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The most probable class by the stable features alone."""
        best = self.predict_log_proba(X).argmax(axis=1)
        return self.classes_[best]

    def adapt(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        answer: str = "safe",
        leak: float | None = None,
        settings: Settings | None = None,
        uncertainty: bool = False,
    ) -> AdaptedClassifier:
        """Learn the unstable features' meaning in a new domain, without labels or with a few.

        Parameters
        ----------
        X : rows of one new domain, as in `fit`
        y : array-like of shape (n,), optional
            Labels where they are known; None or NaN elsewhere.
        sample_weight : array-like of shape (n,), optional
        answer : {"safe", "paper", "checked"}, default="safe"
            "safe" allows for the leak of the stable predictor and for sampling error, and may blend or keep
            the stable predictor (`decision_`). "paper" has no guard and adapts whatever the rows: where they
            are few, or the stable predictor is not shown to be informative, it warns. "checked" has no guard
            and keeps the stable predictor there; with Settings("paper") that is what "safe" means, unless a
            leak is given.
        leak : float, optional
            δ that the guard allows for. None is the largest leak of the training domains on held-out rows, as
            far as it is beyond sampling error; where it could not be measured the stable predictor is kept.
        settings : Settings, optional
            In place of the model's, for this call only.
        uncertainty : bool
            Also compute standard errors (`uncertainty_`).

        Returns
        -------
        AdaptedClassifier
            A new object; this model stays as it was.
        """
        log_stable, unstable = self._checked_parts(X)
        stable = np.exp(log_stable)
        settings = self.settings if settings is None else settings
        choices = self._choices(settings)
        if settings is not None and settings.method == "paper" and answer == "safe" and leak is None:
            answer = "checked"
        training, alarm = with_leak(self.training_, leak, answer), None
        if answer == "safe" or uncertainty:
            # Accuracies without labels are claims that these rows may contradict, guard or not.
            asked = training if answer == "safe" else replace(training, leak=0.0)
            new = _rows_to_judge(stable, unstable, sample_weight, choices, training)
            doubts = [alarm_of(asked, new), self._doubt() if leak is None else None]
            alarm = "; ".join(doubt for doubt in doubts if doubt) or None
        adaptation = adapt_rows(
            stable,
            unstable,
            choices,
            y=y,
            classes=self.classes_,
            sample_weight=sample_weight,
            training=training,
            answer=answer,
            uncertainty=uncertainty,
            alarm=alarm,
        )
        # A shallow copy: refitting this model later must not change what was adapted now.
        return AdaptedClassifier(copy(self), adaptation)


def _rows_to_judge(
    stable: FloatArray, unstable: Any, sample_weight: Any, choices: Choices, training: Training
) -> NewRows:
    """New rows for the alarm; what complementarity says under label shift is not judged.

    A row of weight zero is no row; every other one counts once, since weights are no observations.
    """
    if sample_weight is not None:
        used = np.flatnonzero(check_weight(sample_weight, len(stable)))
        stable, unstable = stable[used], _safe_indexing(unstable, used)
    judged = None if choices.transport == "likelihood" else head_numbers(unstable, choices.head)
    return NewRows(stable, judged, recalibration=training.recalibration)
