"""`AdaptableClassifier`: what a fitted model can do, be it of columns or a network."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import _safe_indexing

from sfboost.adaptation import Adaptation, AdaptationRefused, AdaptationWarning, Decision, Settings, Training
from sfboost.adaptation.checks import check_known_labels, check_weight
from sfboost.adaptation.costs import check_costs, decided
from sfboost.adaptation.decision import unwarned
from sfboost.adaptation.engine import adapt_rows, tell_kept
from sfboost.adaptation.settings import resolve
from sfboost.boosting.adapted import AdaptedClassifier
from sfboost.boosting.adapted_domains import adapt_each
from sfboost.boosting.components import PlayedComponents
from sfboost.boosting.diagnosing import head_numbers
from sfboost.choice import best_answer
from sfboost.choice.bounding import bounded, gain_here
from sfboost.diagnostics import new_domain_alarm
from sfboost.diagnostics.rows import NewRows
from sfboost.marginal.probabilities import FloatArray, IntArray
from sfboost.notices import warn
from sfboost.persistence import Savable
from sfboost.shift import DomainData

#: Parts of rows: calibrated log f_S of shape (n, K), X_S (None of a network), X_U or Φ_U.
Parts = tuple[FloatArray, Any, Any]
#: What a user may ask for.
ANSWERS = ("best", "safe")


class AdaptableClassifier(Savable, ClassifierMixin, BaseEstimator):
    """Predicts with one classifier of all features until it is adapted.

    A subclass's `fit` sets what it needs. It says what f_S and the unstable features of rows are
    (`stable_and_unstable`, `unstable_names_`), what training knows (`training_`), and what all features say
    (`answer_rows`).
    """

    transport: str
    settings: Settings | None
    classes_: npt.NDArray[Any]
    training_: Training
    components_: PlayedComponents | None = None

    def stable_and_unstable(self, X: Any) -> tuple[FloatArray, Any]:
        """Return calibrated log f_S of shape (n, K), and X_U (or Φ_U), as `sfboost.adapt` takes them."""
        raise NotImplementedError

    def answer_rows(self, X: Any, sample_weight: Any = None, parts: Parts | None = None) -> DomainData | None:
        """Rows as the decision sees them; None where there is no classifier of all features.

        `parts` is what was read of these rows, if it is at hand.
        """
        return None

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
        """Why f_S is not to be trusted in any target domain, if training says so."""
        record = self.training_.record
        return None if record is None else record.doubt

    def _unforeseeable(self) -> str | None:
        """Why source domains do not tell how good an answer is in a target domain, if they do not."""
        return None

    def predict_log_proba(self, X: Any) -> FloatArray:
        """Logarithm of `predict_proba`."""
        rows = self.answer_rows(X)
        return self.stable_and_unstable(X)[0] if rows is None else rows.log_pooled

    def predict_proba(self, X: Any) -> FloatArray:
        """Probabilities of one classifier of all features, as trained, of shape (n, K).

        Of the stable features alone where nothing reads all of them.
        """
        return np.exp(self.predict_log_proba(X))

    def predict_stable_proba(self, X: Any) -> FloatArray:
        """f_S: calibrated probabilities from the stable features alone, of shape (n, K)."""
        return np.exp(self.stable_and_unstable(X)[0])

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The most probable class by `predict_proba`; the cheapest if the settings have costs."""
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
        settings: Settings | None = None,
        sample_domain: Any = None,
    ) -> Any:
        """Find out what moved in a target domain, and answer accordingly, without labels or with a few.

        Parameters
        ----------
        X : rows of one target domain, as in `fit`
        y : array-like of shape (n,), optional
            Labels where they are known; None or NaN elsewhere.
        sample_weight : array-like of shape (n,), optional
        answer : {"best", "safe"}, default="best"
            "best" asks what moved: one classifier of all features where nothing did; class shares, features
            of X_U or of X_S realigned, or X_U learned anew (SFB), where something did (`decision_`,
            `reason_`, `shift_`). "safe" is the same decision, but the stable features alone answer unless its
            gain over them is above zero at its lower limit.
        settings : Settings, optional
            In place of the model's, for this call only. ``Settings("paper")`` is the paper's method: its
            answer is given whatever moved.
        sample_domain : array-like of shape (n,), optional
            The domain of each row, if the rows are of several target domains. Each is adapted to by itself,
            and `AdaptedDomains.overview` holds false discoveries of changes over all of them.

        Returns
        -------
        AdaptedClassifier, or AdaptedDomains with `sample_domain`
            A new object; this model stays as it was.
        """
        if answer not in ANSWERS:
            raise ValueError(f"answer={answer!r} is not known: use one of {list(ANSWERS)}.")
        if sample_domain is not None:
            return adapt_each(self, X, y, sample_weight, sample_domain, answer=answer, settings=settings)
        return self._facing(X, sample_weight)._adapt(X, y, sample_weight, answer, settings)

    def _facing(self, X: Any, sample_weight: Any) -> AdaptableClassifier:
        """Return the model for rows of a target domain; another one if what it reads depends on them."""
        return self

    def _tell_filled(self, X: Any) -> None:
        """Warn of the cells of new rows that are filled in."""

    def _adapt(
        self, X: Any, y: Any, sample_weight: Any, answer: str, settings: Settings | None
    ) -> AdaptedClassifier:
        parts = self._checked_parts(X)
        log_stable, _, unstable = parts
        stable, choices = np.exp(log_stable), self._choices(self.settings if settings is None else settings)
        asked = {"y": y, "sample_weight": sample_weight, "classes": self.classes_, "training": self.training_}
        rows = None
        if choices.method != "paper" and self.training_.record is not None:
            rows = self.answer_rows(X, sample_weight, parts)
        if rows is None:
            adaptation = self._relearned(stable, unstable, choices, answer, asked)
            # A shallow copy: refitting this model later must not change what was adapted now.
            return AdaptedClassifier(copy(self), adaptation)
        with unwarned():  # SFB is one predictor of several here: what it doubts is its own
            adaptation = adapt_rows(stable, unstable, choices, **asked)
        known = None if y is None else check_known_labels(y, self.classes_, len(stable))
        record, bound = self.training_.record, None
        if answer == "safe":
            new = self._new_rows(stable, unstable, choices)
            by, leak = choices.yardstick("accuracy"), self.training_.leak
            bound = partial(bounded, rows=rows, record=record, new=new, leak=leak, by=by)
        doubt = self._doubt()
        best = best_answer(rows, record, choices, self.classes_, adaptation, known, doubt, bound)
        if best.choice.decision == "kept stable":
            warn(f"The stable predictor was kept: {best.choice.reason}", AdaptationRefused)
        elif best.choice.reason.code == "cannot_tell":
            warn(str(best.choice.reason), AdaptationWarning)
        adapted = AdaptedClassifier(copy(self), adaptation, best)
        adapted.answers_ = best.every_answer(rows)
        return adapted

    def _new_rows(self, stable: FloatArray, unstable: Any, choices: Settings) -> NewRows:
        """Rows of a target domain as checks of assumptions want them; under label shift X_U is not asked."""
        judged = None if choices.transport == "likelihood" else head_numbers(unstable, choices.head)
        return NewRows(stable, judged, recalibration=self.training_.recalibration)

    def _relearned(
        self, stable: FloatArray, unstable: Any, choices: Settings, answer: str, asked: dict[str, Any]
    ) -> Adaptation:
        """SFB, where nobody knows what is usual in source domains, or the paper's method was asked for."""
        adaptation = adapt_rows(stable, unstable, choices, **asked)
        played, why, blind = self.components_, None, not adaptation.n_labelled
        if adaptation.unstable is None or choices.method == "paper":
            return adaptation
        new = self._new_rows(stable, unstable, choices)
        if played is not None and not played.helps:
            why = played.reason
        elif played is None and blind and (alarm := new_domain_alarm(new)):
            why = alarm
        elif answer == "safe" and blind:
            weight = check_weight(asked["sample_weight"], len(stable))

            def predict(i: IntArray, k: IntArray) -> FloatArray:
                return adaptation.predict_proba(stable[i], _safe_indexing(unstable, k))

            by = choices.yardstick("accuracy")
            found = gain_here(predict, stable, weight, new, self.training_.leak, by)
            if isinstance(found, str):
                why = found
            elif found[1] <= 0.0:
                why = f"the gain of {by.told(found[0])} that is expected may be nothing"
        if why is None:
            return adaptation
        kept = replace(adaptation, decision=Decision("kept stable", why), unstable=None)
        tell_kept(kept.decision)
        return kept
