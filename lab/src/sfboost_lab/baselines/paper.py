"""The paper's adapter with every part that its appendix takes away or varies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from scipy.special import log_softmax

from sfboost.adaptation import Settings
from sfboost.heads import AdamLogisticRegression
from sfboost_lab.baselines.contract import Predictor, TestAccess
from sfboost_lab.baselines.sfb import BoostingAdapter, OtherStable, boost


@dataclass(frozen=True)
class SFBPaper(BoostingAdapter):
    """Algorithm 1 (2 for K > 2) with the head of the paper: Adam, stopped early.

    Parameters
    ----------
    steps, learning_rate, batch_size : int, float, int
        Of Adam. The paper does not say whether a step is a batch or a pass over the rows.
    passes : bool
        Whether `steps` counts passes over the rows rather than batches.
    rounds : int
        Rounds of pseudo-labelling.
    correct : bool
        Bias correction ("BC").
    calibrated : bool
        Use f_S as it was calibrated ("CS"); otherwise its temperature is taken back.
    calibrate_unstable : bool
        Temperature-scale the head against its pseudo-labels ("CU").

    Examples
    --------
    >>> SFBPaper(rounds=5).title
    'SFB (paper)'
    """

    name: ClassVar[str] = "sfb-paper"
    title: ClassVar[str] = "SFB (paper)"
    standardize: ClassVar[bool] = True

    steps: int = 20
    learning_rate: float = 0.01
    batch_size: int = 2048
    passes: bool = False
    rounds: int = 1
    correct: bool = True
    calibrated: bool = True
    calibrate_unstable: bool = False

    def adapt(self, predictor: Predictor, X_test: Any, y_test: Any = None, *, seed: int = 0) -> Predictor:
        """Adapt to unlabelled rows."""
        batches = -(-len(X_test) // self.batch_size) if self.passes else 1
        settings = Settings(
            "paper",
            head=self._head(self.steps * batches, seed),
            correction="posthoc" if self.correct else "none",
            rounds=self.rounds,
            calibrate_unstable=self.calibrate_unstable,
            standardize=self.standardize,
        )
        source = predictor if self.calibrated else Uncalibrated(predictor)
        return boost(source, X_test, settings=settings, answer="paper", random_state=seed)

    def _head(self, steps: int, seed: int) -> AdamLogisticRegression:
        rate, size = self.learning_rate, self.batch_size
        return AdamLogisticRegression(steps, learning_rate=rate, batch_size=size, random_state=seed)


@dataclass(frozen=True)
class SFBPaperAsIs(SFBPaper):
    """The same on Φ_U as it comes: a learned feature has a scale, and the paper speaks of none.

    How far a few steps of Adam get depends on that scale.

    Examples
    --------
    >>> SFBPaperAsIs.standardize
    False
    """

    name: ClassVar[str] = "sfb-paper-as-is"
    standardize: ClassVar[bool] = False


@dataclass(frozen=True)
class SFBPaperLabels(SFBPaperAsIs):
    """The paper's head fitted to true labels of test rows (ORACLE): "GT adaptation"."""

    name: ClassVar[str] = "sfb-paper-labels"
    title: ClassVar[str] = "SFB (paper), true labels"
    test_access: ClassVar[TestAccess] = "labelled"

    def adapt(self, predictor: Predictor, X_test: Any, y_test: Any = None, *, seed: int = 0) -> Predictor:
        """Fit the head on Φ_U to labels, and combine."""
        if y_test is None:
            raise ValueError(f"{self.title} needs labels of the test domain: pass y_test.")
        settings = Settings("paper", head=self._head(self.steps, seed), standardize=self.standardize)
        return boost(predictor, X_test, y=y_test, settings=settings, answer="paper")


class Uncalibrated(OtherStable):
    """A predictor with the temperature of f_S taken back.

    Examples
    --------
    >>> import numpy as np
    >>> class Warm:
    ...     temperature = 2.0
    ...     def stable_and_unstable(self, X):
    ...         return np.log([[0.25, 0.75]]), np.zeros((1, 1))
    >>> np.exp(Uncalibrated(Warm()).stable_and_unstable(None)[0]).round(2)
    array([[0.1, 0.9]])
    """

    def stable_and_unstable(self, X: Any) -> tuple[Any, Any]:
        """Log f_S as the network gives it, and Φ_U."""
        stable, unstable = super().stable_and_unstable(X)
        return log_softmax(stable * temperature_of(self._predictor), axis=1), unstable


def temperature_of(predictor: Any) -> float:
    """Return what the stable logits of a predictor were divided by; 1 if nobody says.

    Examples
    --------
    >>> temperature_of(object())
    1.0
    """
    if hasattr(predictor, "temperature"):
        return float(predictor.temperature)
    scaling = getattr(getattr(predictor, "model", None), "temperature_", None)
    return 1.0 if scaling is None else float(scaling.temperature)
