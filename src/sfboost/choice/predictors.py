"""The predictors of a target domain: each a small frozen object that says log-probabilities of its rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from sfboost.adaptation import Adaptation, Training
from sfboost.adaptation.decision import unwarned
from sfboost.adaptation.engine import adapt_rows
from sfboost.adaptation.settings import Settings
from sfboost.choice.realigning import Realignment
from sfboost.marginal.probabilities import FloatArray, log_softmax
from sfboost.shift import DomainData


class TargetPredictor(Protocol):
    """Fitted to one target domain; says log-probabilities of any of its rows."""

    def log_proba(self, rows: DomainData) -> FloatArray:
        """Log-probabilities, of shape (n, K)."""
        ...


@dataclass(frozen=True, eq=False)
class StablePredictor:
    """The stable predictor alone."""

    def log_proba(self, rows: DomainData) -> FloatArray:
        """Log f_S."""
        return rows.log_stable


@dataclass(frozen=True, eq=False)
class PooledPredictor:
    """One classifier of all features, as it was trained; with `moved`, for other class shares.

    Attributes
    ----------
    moved : array of shape (K,) or None
        Log of the class shares here over those of training.
    """

    moved: FloatArray | None = None

    def log_proba(self, rows: DomainData) -> FloatArray:
        """What the pooled classifier says."""
        return rows.log_pooled if self.moved is None else log_softmax(rows.log_pooled + self.moved)


@dataclass(frozen=True, eq=False)
class RealignedPredictor:
    """The pooled classifier, after the features of one side were put back to what they meant in training.

    Attributes
    ----------
    realignment : Realignment
    side : {"unstable", "stable"}
        Whose features.
    """

    realignment: Realignment
    side: str = "unstable"

    def log_proba(self, rows: DomainData) -> FloatArray:
        """What the pooled classifier says of realigned rows."""
        rows = rows if self.side == "unstable" else rows.swapped()
        return rows.with_unstable(self.realignment.apply(rows)).log_pooled


@dataclass(frozen=True, eq=False)
class RelearnedPredictor:
    """SFB: what the unstable features mean is learned anew from f_S.

    Attributes
    ----------
    adaptation : Adaptation
    """

    adaptation: Adaptation

    @property
    def learned(self) -> bool:
        """Whether there was enough to learn from."""
        return self.adaptation.decision.kind == "adapted"

    def log_proba(self, rows: DomainData) -> FloatArray:
        """Log f_S + log f_U − log p."""
        return self.adaptation.predict_log_proba(np.exp(rows.log_stable), rows.as_given)


def relearn(
    rows: DomainData, choices: Settings, source_prior: FloatArray, classes: Any = None
) -> RelearnedPredictor:
    """Learn the unstable features anew."""
    with unwarned():  # what could not be learned is in its decision; this is one predictor of several
        adaptation = adapt_rows(
            np.exp(rows.log_stable),
            rows.as_given,
            choices,
            classes=classes,
            sample_weight=rows.weight * len(rows.weight),
            training=Training(source_prior=source_prior),
        )
    return RelearnedPredictor(adaptation)
