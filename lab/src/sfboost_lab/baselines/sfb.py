"""Stable Feature Boosting as a test-time adapter of any predictor: ours, the paper's, and with true labels.

A predictor with stable and unstable parts hands over those. Any other one is taken at its word: its
probabilities are f_S and its features Φ_U.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy.special import log_softmax

from sfboost.adaptation import Settings, Training, adapt
from sfboost.adaptation.decision import unwarned
from sfboost.heads import AdamLogisticRegression
from sfboost_lab.baselines.contract import Floats, LinearHead, Method, MostProbable, Predictor, TestAccess
from sfboost_lab.baselines.corrections import HEADS, adapt_corrected


def outputs_of(predictor: Predictor, X: Any) -> tuple[Floats, Floats]:
    """Return f_S and Φ_U of the rows.

    Examples
    --------
    >>> import numpy as np
    >>> from sfboost_lab.baselines.contract import FeaturePredictor
    >>> first = FeaturePredictor(np.array([0, 1]), LinearHead.of([[0.0]], [0.0]))
    >>> outputs_of(first, [[3.0]])
    (array([[0.5, 0.5]]), array([[3.]]))
    """
    parts = getattr(predictor, "stable_and_unstable", None)
    if parts is None:
        return predictor.predict_proba(X), predictor.features(X)
    stable, unstable = parts(X)
    return np.exp(stable), unstable


class OtherStable:
    """A predictor with another f_S: the base of those that change `stable_and_unstable`."""

    def __init__(self, predictor: Any) -> None:
        self._predictor = predictor

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._predictor, name)

    def stable_and_unstable(self, X: Any) -> tuple[Any, Any]:
        """Log f_S and Φ_U."""
        stable, unstable = self._predictor.stable_and_unstable(X)
        return stable, unstable

    def predict_proba(self, X: Any) -> Any:
        """f_S."""
        return np.exp(self.stable_and_unstable(X)[0])


@dataclass(frozen=True, eq=False)
class BoostedPredictor(MostProbable):
    """A predictor, what was learned about its unstable features in one domain, and what was done with it."""

    source: Predictor
    adaptation: Any
    decision_: str

    @property
    def classes_(self) -> npt.NDArray[Any]:
        """The classes of the source."""
        return self.source.classes_

    @property
    def head(self) -> LinearHead | None:
        """None: the combination is no linear function of the features."""
        return None

    def features(self, X: Any) -> Floats:
        """Return the features of the source."""
        return self.source.features(X)

    def predict_proba(self, X: Any) -> Floats:
        """Return the combined probabilities."""
        return np.asarray(self.adaptation.predict_proba(*outputs_of(self.source, X)))


def boost(predictor: Any, X: Any, **options: Any) -> BoostedPredictor:
    """Adapt a predictor by SFB on its f_S and Φ_U; options are those of the library's `adapt_rows`."""
    made = adapt(*outputs_of(predictor, X), classes=predictor.classes_, **options)
    return BoostedPredictor(predictor, made, made.decision.kind)


class BoostingAdapter(Method):
    """What adapters by SFB share: they see unlabelled rows, and give no linear head."""

    test_access: ClassVar[TestAccess] = "unlabelled"
    head_only: ClassVar[bool] = False


@dataclass(frozen=True)
class SFBOurs(BoostingAdapter):
    """Ours: fitted to convergence, with the check that may refuse to adapt.

    Parameters
    ----------
    correction : str
        See `sfboost.adapt`. "auto" is "posthoc" on learned features, which leak, and "likelihood" on given
        columns (`docs/decisions`).
    rounds : int, optional
    force : bool
        Adapt even where the check advises against it.

    Examples
    --------
    >>> SFBOurs().title
    'SFB (ours)'
    """

    name: ClassVar[str] = "sfb"
    title: ClassVar[str] = "SFB (ours)"

    correction: str = "auto"
    rounds: int | None = None
    force: bool = False

    def adapt(self, predictor: Predictor, X_test: Any, y_test: Any = None, *, seed: int = 0) -> Predictor:
        """Adapt to unlabelled rows."""
        correction = self.correction
        if correction == "auto":
            correction = "posthoc" if hasattr(predictor, "body") else "likelihood"
        told: dict[str, Any] = {
            "training": Training(evidence=getattr(predictor, "evidence_", None)),
            "refuse": not self.force,
            "random_state": seed,
        }
        if correction not in HEADS:
            settings = Settings(correction=correction, rounds=self.rounds)
            return boost(predictor, X_test, settings=settings, **told)
        parts, classes = outputs_of(predictor, X_test), predictor.classes_
        made = adapt_corrected(*parts, correction, classes=classes, **told)
        return BoostedPredictor(predictor, made, made.decision.kind)


@dataclass(frozen=True)
class SFBLeak(BoostingAdapter):
    """Ours: pseudo-labels err as they did on held-out rows of the training domains (leak correction).

    Needs a predictor of the trainer "sfb" or "sfb-columns", which keep those rows.

    Examples
    --------
    >>> SFBLeak().title
    'SFB (ours, leak-corrected)'
    """

    name: ClassVar[str] = "sfb-leak"
    title: ClassVar[str] = "SFB (ours, leak-corrected)"

    def adapt(self, predictor: Predictor, X_test: Any, y_test: Any = None, *, seed: int = 0) -> Predictor:
        """Adapt to unlabelled rows."""
        leak_model = getattr(predictor, "leak_model", None)
        if leak_model is None:
            raise ValueError(
                f"{self.title} needs held-out training rows, which this predictor "
                f"({type(predictor).__name__}) does not keep. Use the trainer 'sfb' or 'sfb-columns', or "
                "the adapter 'sfb'."
            )
        made = leak_model().adapt(*outputs_of(predictor, X_test))
        return BoostedPredictor(predictor, made, "leak-corrected")


@dataclass(frozen=True)
class SFBLabels(BoostingAdapter):
    """SFB with the true labels of test rows in place of pseudo-labels (ORACLE): what adapting could gain.

    Examples
    --------
    >>> SFBLabels().test_access
    'labelled'
    """

    name: ClassVar[str] = "sfb-labels"
    title: ClassVar[str] = "SFB (true labels)"
    test_access: ClassVar[TestAccess] = "labelled"

    def adapt(self, predictor: Predictor, X_test: Any, y_test: Any = None, *, seed: int = 0) -> Predictor:
        """Fit the head on Φ_U to labels, and combine."""
        if y_test is None:
            raise ValueError(f"{self.title} needs labels of the test domain: pass y_test.")
        return boost(predictor, X_test, y=y_test, refuse=False, random_state=seed)


@dataclass(frozen=True)
class FlattenedSFB(SFBOurs):
    """The adapter "sfb" after the leak is taken out of f_S, as measured on held-out training rows.

    Examples
    --------
    >>> FlattenedSFB(rounds=5).title
    'SFB (ours)'
    """

    name: ClassVar[str] = "sfb-flat"

    def adapt(self, predictor: Predictor, X_test: Any, y_test: Any = None, *, seed: int = 0) -> Predictor:
        """Adapt to unlabelled rows."""
        flat: Any = Flattened(predictor)
        return super().adapt(flat, X_test, y_test, seed=seed)


class Flattened(OtherStable):
    """A predictor whose f_S says nothing of Φ_U beyond the label.

    Examples
    --------
    >>> class Model:
    ...     def flatten(self, proba, unstable):
    ...         return 1 - proba
    >>> class Leaky:
    ...     def leak_model(self):
    ...         return Model()
    ...     def stable_and_unstable(self, X):
    ...         return np.log([[0.25, 0.75]]), np.zeros((1, 1))
    >>> Flattened(Leaky()).predict_proba(None)
    array([[0.75, 0.25]])
    """

    def stable_and_unstable(self, X: Any) -> tuple[Any, Any]:
        """Log f_S without its leak, and Φ_U."""
        stable, unstable = super().stable_and_unstable(X)
        return np.log(self._predictor.leak_model().flatten(np.exp(stable), unstable)), unstable


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
        with unwarned():  # stopping early is what the paper does
            return boost(source, X_test, settings=settings, random_state=seed)

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
        with unwarned():
            return boost(predictor, X_test, y=y_test, settings=settings)


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
