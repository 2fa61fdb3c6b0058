"""What a trained network can do: features, stable predictions, adaptation. The base of `SFBClassifier`."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from sfboost.adaptation import Settings, StableEvidence, Training
from sfboost.adaptation.checks import check_weight
from sfboost.adaptation.engine import adapt_rows
from sfboost.adaptation.settings import resolve
from sfboost.boosting.adapted import AdaptedClassifier
from sfboost.boosting.diagnosing import alarm_of, know_training, numbers, with_leak
from sfboost.calibration import Temperature
from sfboost.diagnostics import NewRows, Recalibration, TrainingRows, training_leaks
from sfboost.leakage.model import LeakModel, fit_leak_model
from sfboost.marginal.probabilities import FloatArray
from sfboost.torch.inputs import chunks
from sfboost.torch.precision import Precision
from sfboost.torch.split_network import SplitNetwork

_CHUNK = 4096


class FittedPredictor(ClassifierMixin, BaseEstimator):
    """Predicts with f_S until adapted. Not to be made by itself: `SFBClassifier.fit` sets what it needs."""

    device: str
    classes_: npt.NDArray[Any]
    network_: SplitNetwork
    backbone_: nn.Module | None
    precision_: Precision
    temperature_: Temperature
    evidence_: StableEvidence
    leak_model_: LeakModel | None
    validation_: tuple[FloatArray, FloatArray, npt.NDArray[Any], npt.NDArray[Any]]

    @property
    def source_prior_(self) -> FloatArray:
        """Class shares of the rows that f_S was calibrated on; each domain counts once."""
        _, _, y, domain = self.validation_
        return np.mean(
            [(y[domain == d][:, None] == self.classes_).mean(axis=0) for d in np.unique(domain)], 0
        )

    @property
    def training_(self) -> Training:
        """What adaptations need to know, of f_S as adapted with (flattened if it is), on held-out rows."""
        proba, features, labels, domain = self.validation_
        if self.leak_model_ is not None:
            proba = self.leak_model_.flatten(proba, features)
        held_out = TrainingRows(
            proba, np.searchsorted(self.classes_, labels), domain.astype(object), numbers(features)
        )
        errors = Recalibration.fit(held_out.stable, held_out.y, held_out.domain)
        return know_training(self.evidence_, training_leaks(held_out), self.source_prior_, errors)

    def _through_backbone(self, x: Any) -> Tensor:
        assert self.backbone_ is not None
        device, dtype = torch.device(self.device), self.precision_.dtype
        with torch.no_grad():
            return torch.cat([self.backbone_(part.to(device)).cpu() for part in chunks(x, _CHUNK, dtype)])

    def _outputs(self, X: Any) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Φ_S, Φ_U and the stable logits of every row, as float64 arrays."""
        if self.backbone_ is not None:
            X = self._through_backbone(X)
        device = torch.device(self.device)
        collected: list[tuple[Tensor, Tensor, Tensor]] = []
        self.network_.eval()
        with torch.no_grad():
            for part in chunks(X, _CHUNK, self.precision_.dtype):
                stable, unstable = self.network_.features(part.to(device))
                collected.append((stable, unstable, self.network_.stable_logits(stable)))
        return tuple(np.concatenate([t[k].double().cpu().numpy() for t in collected]) for k in range(3))  # type: ignore[return-value]

    def transform(self, X: Any) -> tuple[FloatArray, FloatArray]:
        """Return (Φ_S(X), Φ_U(X))."""
        check_is_fitted(self, "network_")
        stable, unstable, _ = self._outputs(X)
        return stable, unstable

    def stable_and_unstable(self, X: Any, *, flattened: bool = True) -> tuple[FloatArray, FloatArray]:
        """Return calibrated log f_S of shape (n, K), and Φ_U: what `sfboost.adapt` takes.

        `flattened=False` leaves in f_S what the model, if it flattens, takes out of it.
        """
        check_is_fitted(self, "network_")
        _, unstable, logits = self._outputs(X)
        log_proba = self.temperature_.apply(logits)
        if self.leak_model_ is None or not flattened:
            return log_proba, unstable
        return np.log(self.leak_model_.flatten(np.exp(log_proba), unstable)), unstable

    @property
    def unstable_names_(self) -> tuple[str, ...]:
        """Names of the features in Φ_U."""
        return tuple(f"Φ_U[{j}]" for j in range(self.network_.n_unstable))

    def predict_log_proba(self, X: Any) -> FloatArray:
        """Logarithm of `predict_proba`."""
        return self.stable_and_unstable(X)[0]

    def predict_proba(self, X: Any) -> FloatArray:
        """f_S: probabilities from the stable features alone, of shape (n, K)."""
        return np.exp(self.predict_log_proba(X))

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The most probable class by the stable features alone."""
        best = self.predict_log_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[best])

    def adapt(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        answer: str = "safe",
        leak: float | None = None,
        settings: Settings | None = None,
        transport: str = "posterior",
        uncertainty: bool = False,
        noise: str = "complementary",
        **leak_options: Any,
    ) -> AdaptedClassifier:
        """Learn from unlabelled rows of a new domain what Φ_U means there; this model is not changed.

        Parameters
        ----------
        X : array-like, tensor or Dataset
            Rows of the new domain.
        y : array-like of shape (n,), optional
            Labels where they are known; None or NaN elsewhere.
        sample_weight : array-like of shape (n,), optional
        answer : {"safe", "paper", "checked"}, default="safe"
            "safe" allows for the leak of f_S and for sampling error, and may blend or keep f_S (`decision_`).
            "paper" has no guard and adapts whatever the rows: where they are few, or f_S is not shown to be
            informative, it warns. "checked" has no guard and keeps f_S there; with Settings("paper") that is
            what "safe" means, unless a leak is given. With noise="train" there is no guard: the leak is what
            is corrected, and unless the answer is "paper" the training domains must agree about it.
        leak : float, optional
            δ that the guard allows for. None is the largest leak of the training domains, on held-out rows,
            as far as it is beyond sampling error.
        noise : {"complementary", "train"}
            How pseudo-labels err. "complementary": independently of Φ_U given the label (the paper).
            "train": as measured on the labelled training domains (`sfboost.leakage.model`).
        settings : Settings, optional
            How to fit Φ_U. None is `Settings(correction="posthoc")`: on learned features, which leak, it did
            better than the likelihood (`docs/decisions/split.md`).
        transport : {"posterior", "likelihood"}
            As in `sfboost.adapt`; "likelihood" is label shift, fitted by the likelihood unless `settings` say
            otherwise.
        uncertainty : bool
            Also compute standard errors (`adaptation.uncertainty`).
        **leak_options
            For `sfboost.leakage.model.fit_leak_model`, with noise="train".

        Returns
        -------
        AdaptedClassifier
        """
        if noise == "train":
            if leak is not None or y is not None or sample_weight is not None:
                raise ValueError(
                    "noise='train' measures the leak and learns without labels and weights: leave out leak, "
                    "y and sample_weight, or use noise='complementary'."
                )
            # The leak model knows the score as it was before flattening.
            stable, unstable = self.stable_and_unstable(X, flattened=False)
            model = self.leak_model(force=answer == "paper", **leak_options)
            return AdaptedClassifier(copy(self), model.adapt(np.exp(stable), unstable))
        if noise != "complementary":
            raise ValueError(f"noise must be 'complementary' or 'train', got {noise!r}.")
        if leak_options:
            raise TypeError(f"{', '.join(leak_options)}: only noise='train' takes that; see `settings`.")
        stable, unstable = self.stable_and_unstable(X)
        if settings is None:
            settings = Settings(correction=None if transport == "likelihood" else "posthoc")
        choices = resolve(settings, transport=transport)
        if settings.method == "paper" and answer == "safe" and leak is None:
            answer = "checked"
        training, alarm = with_leak(self.training_, leak, answer), None
        if answer == "safe" or uncertainty:
            asked = training if answer == "safe" else replace(training, leak=0.0)
            new = self._new_rows(np.exp(stable), unstable, sample_weight, training)
            # Complementarity is judged as if P(Y | X_S) were stable.
            alarm = alarm_of(asked, replace(new, X_unstable=None) if transport == "likelihood" else new)
        adaptation = adapt_rows(
            np.exp(stable),
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
        return AdaptedClassifier(copy(self), adaptation)

    @staticmethod
    def _new_rows(
        stable: FloatArray, unstable: FloatArray, sample_weight: Any, training: Training
    ) -> NewRows:
        """Rows of positive weight as the diagnostics want them."""
        used = np.arange(len(stable))
        if sample_weight is not None:
            used = np.flatnonzero(check_weight(sample_weight, len(stable)))
        return NewRows(stable[used], numbers(unstable[used]), recalibration=training.recalibration)

    def leak_model(self, **options: Any) -> LeakModel:
        """Learn P(f_S | Y, Φ_U) on the held-out training rows; see `fit_leak_model`."""
        check_is_fitted(self, "network_")
        proba, unstable, y, domain = self.validation_
        return fit_leak_model(proba, unstable, y, domain, **options)
