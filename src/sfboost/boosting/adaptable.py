"""`AdaptableClassifier`: what a fitted model can do, be it of columns or a network."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin

from sfboost.adaptation import Adaptation, AdaptationRefused, AdaptationWarning, Settings, Training
from sfboost.adaptation.checks import check_known_labels
from sfboost.adaptation.costs import check_costs, decided
from sfboost.adaptation.decision import unwarned
from sfboost.adaptation.engine import adapt_rows
from sfboost.adaptation.settings import ANSWERS, resolve
from sfboost.boosting.adapted import AdaptedClassifier
from sfboost.boosting.adapted_domains import adapt_each
from sfboost.boosting.diagnosing import alarm_of, rows_to_judge, with_leak, with_note
from sfboost.calibration import Temperature
from sfboost.choice import best_answer
from sfboost.choice.recalibrating import right_by_labels
from sfboost.marginal.probabilities import FloatArray
from sfboost.notices import warn
from sfboost.persistence import Savable
from sfboost.shift import DomainData

#: What a model reads of rows: calibrated log f_S of shape (n, K), X_S (None of a network), X_U or Φ_U.
Parts = tuple[FloatArray, Any, Any]

NO_EXPERIENCE = 'The answer is the safe one: answer="best" needs to know what is usual, and this model was '
NO_NUMBERS = (
    'The answer is the safe one: answer="best" needs stable and unstable features as finite numbers, at most '
    "a thousand of each"
)
PUT_RIGHT = (
    "The labels put right how sure the stable predictor is, and how frequent it takes each class to be"
)


def _why_none(model: Any) -> str:
    """Why there is no record of source domains: what is to be done another time."""
    if len(getattr(model, "domains_", ())) == 1:
        return "fitted to one domain"
    if getattr(model, "pooled_", None) is not None:
        return "fitted to domains of which fewer than two have the rows and classes to be left out"
    return "fitted to features that are no finite numbers"


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

    def _read(self, X: Any) -> Parts:
        """`stable_and_unstable`, and X_S between them where there is one."""
        log_stable, unstable = self.stable_and_unstable(X)
        return log_stable, None, unstable

    def _checked_parts(self, X: Any) -> Parts:
        """What is read of rows to adapt to, or a sentence that says why that cannot be."""
        return self._read(X)

    def _choices(self, settings: Settings | None) -> Settings:
        """All that settings leave open, decided."""
        choices = resolve(settings, transport=self.transport)
        return choices.balanced(getattr(getattr(self, "training_", None), "source_prior", None))

    def _doubt(self) -> str | None:
        """Why f_S is not to be trusted in any new domain, if training says so."""
        record = self.training_.record
        return None if record is None else record.doubt

    def _unforeseeable(self) -> str | None:
        """Why own domains do not tell how good an answer is in a new one, if they do not."""
        return None

    def predict_log_proba(self, X: Any) -> FloatArray:
        """Logarithm of `predict_proba`."""
        return self.stable_and_unstable(X)[0]

    def predict_proba(self, X: Any) -> FloatArray:
        """f_S: calibrated probabilities from the stable features alone, of shape (n, K)."""
        return np.exp(self.predict_log_proba(X))

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The most probable class by the stable features; the cheapest if the settings have costs."""
        proba = self.predict_proba(X)  # first: it says what is wrong with a model that is not fitted
        return self.classes_[decided(proba, self._costs())]

    def _costs(self) -> FloatArray | None:
        """Of wrong decisions, where the settings have them."""
        costs = self._choices(self.settings).costs
        return None if costs is None else check_costs(costs, len(self.classes_))

    def adapt(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        answer: str = "best",
        leak: float | None = None,
        settings: Settings | None = None,
        uncertainty: bool = False,
        sample_domain: Any = None,
    ) -> Any:
        """Learn the unstable features' meaning in a new domain, without labels or with a few.

        Parameters
        ----------
        X : rows of one new domain, as in `fit`
        y : array-like of shape (n,), optional
            Labels where they are known; None or NaN elsewhere.
        sample_weight : array-like of shape (n,), optional
        answer : {"best", "safe", "checked", "paper"}, default="best"
            "best" asks what moved: one classifier of all features where nothing did; class shares, features
            of X_U or of X_S realigned, or X_U learned anew (SFB), where something did; a mixture where it is
            unclear what (`decision_`, `reason_`, `change_`). It needs two source domains or more, and is
            "safe" otherwise.
            "safe" allows for the leak of the stable predictor and for sampling error, and may keep the stable
            predictor. "checked" has no guard, and keeps the stable predictor where the rows are
            few or it is not shown to be informative; with Settings("paper") that is what
            "best" and "safe" mean, unless a leak is given. "paper" adapts even there, and warns.
        leak : float, optional
            δ that the guard allows for. None is what the training domains lead to expect of another one, on
            held-out rows; where it could not be measured the stable predictor is kept. Given, it asks for the
            safe answer.
        settings : Settings, optional
            In place of the model's, for this call only.
        uncertainty : bool
            Also compute standard errors (`uncertainty_`).
        sample_domain : array-like of shape (n,), optional
            The domain of each row, if the rows are of several new domains. Each is adapted to by itself, and
            `AdaptedDomains.overview` holds false discoveries of changes over all of them.

        Returns
        -------
        AdaptedClassifier, or AdaptedDomains with `sample_domain`
            A new object; this model stays as it was.
        """
        how: dict[str, Any] = {
            "answer": answer,
            "leak": leak,
            "settings": settings,
            "uncertainty": uncertainty,
        }
        if sample_domain is not None:
            return adapt_each(self, X, y, sample_weight, sample_domain, **how)
        return self._facing(X, sample_weight)._adapt(X, y, sample_weight, **how)

    def _facing(self, X: Any, sample_weight: Any) -> AdaptableClassifier:
        """Return the model for rows of a new domain; another one if what it reads depends on them."""
        return self

    def _tell_filled(self, X: Any) -> None:
        """Warn of the cells of new rows that are filled in."""

    def _adapt(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        answer: str,
        leak: float | None,
        settings: Settings | None,
        uncertainty: bool,
    ) -> AdaptedClassifier:
        parts = self._checked_parts(X)
        log_stable, _, unstable = parts
        stable = np.exp(log_stable)
        settings = self.settings if settings is None else settings
        choices = self._choices(settings)
        asked = {"y": y, "sample_weight": sample_weight, "uncertainty": uncertainty}
        answer, rows, note = self._answer_to(
            answer, leak, settings, lambda: self._rows_to_answer(X, sample_weight, parts)
        )
        if rows is not None:
            return self._best(rows, stable, unstable, choices, **asked)
        model = self
        if answer == "safe" and y is not None:
            found = right_by_labels(log_stable, check_known_labels(y, self.classes_, len(stable)))
            model = self if found is None else self._put_right(found)
            if found is not None and model is not self:
                stable = np.exp(found.apply(log_stable))
                note = PUT_RIGHT if note is None else f"{note}. {PUT_RIGHT}"
        training = with_leak(self.training_, leak, answer)
        alarm = self._alarm(
            answer, leak, uncertainty, training, stable, unstable, choices, sample_weight=sample_weight
        )
        shared: dict[str, Any] = {"classes": self.classes_, "training": training, "alarm": alarm}
        adaptation = adapt_rows(stable, unstable, choices, answer=answer, **shared, **asked)
        # A shallow copy: refitting this model later must not change what was adapted now.
        return AdaptedClassifier(copy(model), with_note(adaptation, note))

    def _answer_to(
        self,
        answer: str,
        leak: float | None,
        settings: Settings | None,
        rows_to_answer: Callable[[], tuple[DomainData | None, str | None]],
    ) -> tuple[str, DomainData | None, str | None]:
        """What an answer that is asked for comes to; the rows that "best" looks at, or why it is another."""
        if answer not in ("best", *ANSWERS):
            raise ValueError(f"answer={answer!r} is not known: use one of {['best', *ANSWERS]}.")
        paper = settings is not None and settings.method == "paper"
        if paper and answer in ("best", "safe") and leak is None:
            return "checked", None, None
        if answer != "best":
            return answer, None, None
        if leak is not None:
            return "safe", None, None  # the guard is what allows for a leak
        rows, note = rows_to_answer()
        if rows is None:
            return self._without_best(), None, note
        return "best", rows, note

    def _alarm(
        self,
        answer: str,
        leak: float | None,
        uncertainty: bool,
        training: Training,
        stable: FloatArray,
        unstable: Any,
        choices: Settings,
        sample_weight: Any = None,
    ) -> str | None:
        """Why these rows, or training, contradict what the answer rests on, if they do."""
        if answer != "safe" and not uncertainty:
            return None
        # Accuracies without labels are claims that these rows may contradict, guard or not.
        known = training if answer == "safe" else replace(training, leak=0.0)
        new = rows_to_judge(stable, unstable, sample_weight, choices, training)
        doubts = [alarm_of(known, new), self._doubt() if leak is None else None]
        return "; ".join(doubt for doubt in doubts if doubt) or None

    def _put_right(self, found: Temperature) -> AdaptableClassifier:
        """Return the model whose f_S has another temperature; itself if it cannot have one."""
        return self

    def _without_best(self) -> str:
        """What answer="best" is where there are no rows for it."""
        return "safe"

    def answer_rows(self, X: Any, sample_weight: Any = None, parts: Parts | None = None) -> DomainData | None:
        """Rows as the candidates of answer="best" see them; None if there is no pooled classifier.

        `parts` is what was read of these rows, if it is at hand.
        """
        return None

    def _rows_to_answer(
        self, X: Any, sample_weight: Any, parts: Parts | None = None
    ) -> tuple[DomainData | None, str | None]:
        """Rows for answer="best", or why it is "safe" instead."""
        if self.training_.record is None:
            return None, NO_EXPERIENCE + _why_none(self)
        rows = self.answer_rows(X, sample_weight, parts)
        return rows, None if rows is not None else NO_NUMBERS

    def _best(
        self,
        rows: DomainData,
        stable: FloatArray,
        unstable: Any,
        choices: Settings,
        **asked: Any,
    ) -> AdaptedClassifier:
        """Answer as the decision says; see `sfboost.choice`."""
        # SFB is one predictor of several here: what it doubts is its own.
        with unwarned():
            alarm = None
            if asked["uncertainty"]:
                new = rows_to_judge(stable, unstable, asked["sample_weight"], choices, self.training_)
                alarm = alarm_of(replace(self.training_, leak=0.0), new)
            shared: dict[str, Any] = {"classes": self.classes_, "training": self.training_, "alarm": alarm}
            adaptation = adapt_rows(stable, unstable, choices, **shared, **asked)
        y = asked["y"]
        known = check_known_labels(y, self.classes_, len(stable)) if y is not None else None
        return self._choose(rows, adaptation, choices, known)

    def _choose(
        self, rows: DomainData, adaptation: Adaptation, choices: Settings, known: Any = None
    ) -> AdaptedClassifier:
        """The best answer to these rows, given what SFB has learned of them, or of more of their domain."""
        record = self.training_.record
        best = best_answer(rows, record, choices, self.classes_, adaptation, known, doubt=self._doubt())
        if best.choice.decision == "kept stable":
            warn(f"The stable predictor was kept: {best.choice.reason}", AdaptationRefused)
        elif best.change.verdict == "cannot tell":
            warn(best.choice.reason, AdaptationWarning)
        adapted = AdaptedClassifier(copy(self), adaptation, best)
        adapted.answers_ = best.every_answer(rows)
        return adapted
