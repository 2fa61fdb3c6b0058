"""What a trained network can do: features, stable predictions, adaptation. The base of `SFBClassifier`."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from sfboost.adaptation import Settings, Training
from sfboost.adaptation.checks import check_weight
from sfboost.boosting.adaptable import AdaptableClassifier, Parts
from sfboost.boosting.arrays import record_of, rows_of
from sfboost.boosting.components import PlayedComponents
from sfboost.boosting.diagnosing import know_training, meanings_here, numbers
from sfboost.boosting.domains import learn_domain
from sfboost.boosting.estimator import StableFeatureBoosting
from sfboost.calibration import Temperature
from sfboost.diagnostics import Diagnosis, NewRows, TrainingRows, diagnose
from sfboost.marginal.probabilities import FloatArray
from sfboost.shift import DomainData
from sfboost.torch.embedding import Preference
from sfboost.torch.plan import Plan
from sfboost.torch.rows import Scaling, number_type, read_x
from sfboost.torch.split_network import Ensemble, SplitNetwork
from sfboost.torch.verification import Verification, verify

_CHUNK = 4096


class FittedPredictor(AdaptableClassifier):
    """Predicts with all that was learned until it is adapted. Made by `SFBClassifier.fit`."""

    device: str
    network: str | nn.Module
    row_shape_: tuple[int, ...]
    classes_: npt.NDArray[Any]
    network_: SplitNetwork | Ensemble
    backbone_: nn.Module | None
    plan: Plan
    temperature_: Temperature
    validation_: tuple[FloatArray, FloatArray, npt.NDArray[Any], npt.NDArray[Any]]
    first_guess_: npt.NDArray[np.intp] | None = None
    scaling_: Scaling | None = None
    embedded_: StableFeatureBoosting | None = None
    preference_: Preference | None = None
    search_: list[dict[str, Any]] | None = None
    architecture_: dict[str, Any] | None = None

    def _learn_training(self, log_stable: FloatArray) -> Training:
        """What adaptations need to know, on held-out rows, of which f_S says this."""
        proba, features, y, domain = self._held_out()
        choices = self._choices(self.settings)
        held_out = TrainingRows(proba, y, domain.astype(object), numbers(features))
        heads = tuple(
            learn_domain(name, y[mine], features[mine], np.ones(len(mine)), len(self.classes_), choices)
            for name, mine in held_out.by_domain
        )
        training, _ = know_training(held_out, log_stable, heads)
        prior = np.mean([head.class_balance for head in heads], axis=0)  # each domain counts once
        # The features have seen these domains, which flatters them.
        weight, names = np.ones(len(y)), tuple(f"Φ_U[{j}]" for j in range(features.shape[1]))
        record = record_of(proba, features, y, held_out.domain, weight, names)
        return replace(training, source_prior=prior, record=record)

    def answer_rows(self, X: Any, sample_weight: Any = None, parts: Parts | None = None) -> DomainData | None:
        """Rows as the candidates of answer="best" see them; None where none has played."""
        check_is_fitted(self, "network_")
        record = self.training_.record
        if record is None or self.embedded_ is not None:
            return None
        log_stable, _, unstable = self._read(X) if parts is None else parts
        return rows_of(record, log_stable, unstable, check_weight(sample_weight, len(unstable)))

    @property
    def dtype(self) -> torch.dtype:
        """The type of the numbers that the network is trained in."""
        return number_type(self.plan.precision)

    # -- a frozen network of which nothing is stable -------------------------------------------------

    @property
    def components_(self) -> PlayedComponents | None:  # type: ignore[override]
        """What own domains say of components, where these took the place of the learned split."""
        return None if self.embedded_ is None else self.embedded_.components_

    def _embedded_rows(self, X: Any) -> FloatArray:
        """What the frozen network makes of rows."""
        return np.asarray(self._read_rows(X).double().numpy())

    def _facing(self, X: Any, sample_weight: Any) -> AdaptableClassifier:
        if self.embedded_ is None:
            return self
        facing = copy(self)
        facing.embedded_ = self.embedded_._facing(self._embedded_rows(X), sample_weight)
        return facing

    # -- is f_S stable? ------------------------------------------------------------------------------

    @cached_property
    def verification_(self) -> Verification:
        """Whether the learned f_S is shown to be stable on rows that it was not trained on.

        Where components took its place, `preference_` says why. It is found when it is first asked for, and
        kept; files have the rows that it is found from.
        """
        check_is_fitted(self, "network_")
        return verify(*self._held_out(), guess=self.first_guess_)

    def _held_out(self) -> tuple[FloatArray, FloatArray, npt.NDArray[np.intp], npt.NDArray[Any]]:
        """f_S, Φ_U, class positions and domains of the rows that it was calibrated on."""
        proba, features, labels, domain = self.validation_
        return proba, features, np.searchsorted(self.classes_, labels), domain

    def _doubt(self) -> str | None:
        if self.embedded_ is not None:
            return self.embedded_._doubt()
        verification = self.verification_
        return super()._doubt() if verification.stable else verification.reason

    def _unforeseeable(self) -> str | None:
        """Own domains play on features that have seen them: only a stable f_S says how good an answer is."""
        if self.embedded_ is not None or self.verification_.stable:
            return None
        why = self.verification_.reason
        return f"f_S is not shown to be stable, so that nothing says how good it is here: {why}"

    def diagnose(self, X_new: Any = None, *, level: float = 0.05) -> Diagnosis:
        """Check each assumption of Theorem 4.4 on held-out training rows and, if given, on a new domain.

        Parameters
        ----------
        X_new : array-like or tensor, optional
            Unlabelled rows of the new domain.
        level : float
            Nominal false-alarm rate of each check.

        Returns
        -------
        Diagnosis
        """
        check_is_fitted(self, "network_")
        if self.embedded_ is not None:
            raise ValueError(
                "Components took the place of the learned split, and no rows are kept: pass what the frozen "
                "network makes of labelled rows to model.embedded_.diagnose(features, y, sample_domain)."
            )
        proba, features, labels, domain = self._held_out()
        training, new = TrainingRows(proba, labels, domain.astype(object), numbers(features)), None
        if X_new is not None:
            log_stable, unstable = self.stable_and_unstable(X_new)
            new = NewRows(np.exp(log_stable), numbers(unstable), self.training_.recalibration)
        found = diagnose(training, new, level=level, random_state=self.random_state or 0)
        return found if X_new is None else replace(found, meanings=meanings_here(self, X_new, level))

    def _read_rows(self, X: Any) -> Tensor:
        """Rows as the network that is trained gets them: scaled, and through the frozen one below it."""
        device = torch.device(self.device)
        with torch.no_grad():
            parts = (self._scaled(part) for part in read_x(X, self.dtype).split(_CHUNK))
            if self.backbone_ is not None:
                parts = (self.backbone_(part.to(device)).cpu() for part in parts)
            return torch.cat(list(parts))

    def _scaled(self, x: Tensor) -> Tensor:
        """Rows as the network learned from them. A module of the user's may take rows of any shape."""
        if tuple(x.shape[1:]) != tuple(self.row_shape_) and not isinstance(self.network, nn.Module):
            raise ValueError(
                f"Rows of X have the shape {tuple(x.shape[1:])}, and the model was fitted to rows of shape "
                f"{tuple(self.row_shape_)}: pass rows of that shape."
            )
        return x if self.scaling_ is None else self.scaling_.apply(x)

    def _outputs(self, X: Any) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Φ_S, Φ_U and the stable logits of every row, as float64 arrays."""
        self.network_.eval()
        made: list[tuple[Tensor, Tensor, Tensor]] = []
        with torch.no_grad():
            for part in self._read_rows(X).split(_CHUNK):
                stable, unstable = self.network_.features(part.to(torch.device(self.device)))
                made.append((stable, unstable, self.network_.stable_logits(stable)))
        features, said, logits = (
            np.concatenate([t[k].double().cpu().numpy() for t in made]) for k in range(3)
        )
        return features, said, logits

    def transform(self, X: Any) -> tuple[FloatArray, FloatArray]:
        """Return (Φ_S(X), Φ_U(X))."""
        check_is_fitted(self, "network_")
        stable, unstable, _ = self._outputs(X)
        return stable, unstable

    def stable_and_unstable(self, X: Any) -> tuple[FloatArray, FloatArray]:
        """Return calibrated log f_S of shape (n, K), and Φ_U: what `sfboost.adapt` takes."""
        check_is_fitted(self, "network_")
        if self.embedded_ is not None:
            return self.embedded_.stable_and_unstable(self._embedded_rows(X))
        _, unstable, logits = self._outputs(X)
        return self.temperature_.apply(logits), unstable

    @property
    def unstable_names_(self) -> tuple[str, ...]:
        """Names of the features in Φ_U."""
        if self.embedded_ is not None:
            return self.embedded_.unstable_names_
        return tuple(f"Φ_U[{j}]" for j in range(self.network_.n_unstable))

    def _choices(self, settings: Settings | None) -> Settings:
        """Unless told otherwise the paper's correction, or the one that label shift has."""
        if self.embedded_ is not None:
            return self.embedded_._choices(settings)
        if settings is None:
            settings = Settings(correction=None if self.transport == "likelihood" else "posthoc")
        return super()._choices(settings)
