"""The result of adapting: an immutable predictor of (stable probabilities, unstable features)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from sfboost.adaptation.checks import as_rows, check_unstable
from sfboost.adaptation.decision import Decision
from sfboost.adaptation.explanation import Explanation
from sfboost.adaptation.fitting import UnstableModel
from sfboost.adaptation.regularisation import CrossFit
from sfboost.adaptation.settings import Settings
from sfboost.adaptation.standardize import Standardizer
from sfboost.heads import SoftLabelMixin
from sfboost.marginal import PseudoLabelStatistics, as_probability_matrix, floored_log, log_combine
from sfboost.marginal.probabilities import FloatArray
from sfboost.persistence import Savable


@dataclass(frozen=True, eq=False, repr=False)
class Adaptation(Savable):
    """What was learned in the new domain. Made by `adapt`; predicting never changes it.

    Attributes
    ----------
    classes : array of shape (K,)
    decision : Decision
        `kind` is "adapted" or "kept stable"; `reason` says why.
    prior : array of shape (K,)
        Class shares of the new domain.
    divisor : array of shape (K,)
        The p of w = f_S / p: the prior itself if P(Y | X_S) is stable, else that of the training rows.
    statistics : PseudoLabelStatistics
        Of the rows that were adapted to; has `confusion` (ε) and `informativeness` (s).
    unstable : UnstableModel or None
        f_U; None if the stable predictor was kept.
    standardizer : Standardizer or None
    cross_fit : CrossFit or None
        Held-out likelihood, and how the penalty was chosen.
    settings : Settings
    n_rows, n_labelled, n_features : int
    warnings : tuple of str
    """

    classes: npt.NDArray[Any]
    decision: Decision
    prior: FloatArray
    divisor: FloatArray
    statistics: PseudoLabelStatistics
    unstable: UnstableModel | None
    standardizer: Standardizer | None
    cross_fit: CrossFit | None
    settings: Settings
    n_rows: int
    n_labelled: int
    n_features: int
    warnings: tuple[str, ...] = ()

    @property
    def confusion(self) -> FloatArray:
        """ε[y, y'] = Pr[Ŷ = y | Y = y'], estimated without labels."""
        return self.statistics.confusion

    @property
    def informativeness(self) -> float:
        """s: what the stable predictor claims to know. Zero is nothing, one is everything."""
        return self.statistics.informativeness

    @property
    def head(self) -> SoftLabelMixin | None:
        """The fitted head on the unstable features, or None."""
        return None if self.unstable is None else self.unstable.head

    @property
    def rounds(self) -> int:
        """Rounds of pseudo-labelling; 0 if the stable predictor was kept or every label was known."""
        return 0 if self.unstable is None else len(self.unstable.history)

    def predict_log_proba(self, stable_proba: Any, X_unstable: Any) -> FloatArray:
        """Logarithm of `predict_proba`."""
        stable = as_probability_matrix(stable_proba, n_classes=len(self.classes))
        X = self._check(X_unstable, len(stable))
        if self.unstable is None:
            with np.errstate(divide="ignore"):
                return np.log(stable)
        return log_combine(stable, self.unstable.log_proba(X), self.divisor)

    def predict_proba(self, stable_proba: Any, X_unstable: Any) -> FloatArray:
        """Pr[Y | X_S, X_U] of shape (n, K), from stable probabilities and unstable features.

        Parameters
        ----------
        stable_proba : array-like of shape (n,) or (n, K)
        X_unstable : array-like of shape (n, d)
            The same columns as in `adapt`, raw.
        """
        return np.exp(self.predict_log_proba(stable_proba, X_unstable))

    def predict(self, stable_proba: Any, X_unstable: Any) -> npt.NDArray[Any]:
        """The most probable class of each row."""
        best = self.predict_log_proba(stable_proba, X_unstable).argmax(axis=1)
        return self.classes[best]

    def unstable_proba(self, X_unstable: Any) -> FloatArray:
        """Pr[Y | X_U] of shape (n, K); the prior if the stable predictor was kept."""
        n_rows = X_unstable.shape[0] if hasattr(X_unstable, "shape") else len(X_unstable)
        X = self._check(X_unstable, n_rows)
        if self.unstable is None:
            return np.tile(self.prior, (X.shape[0], 1))
        return np.exp(self.unstable.log_proba(X))

    def explain(
        self, stable_proba: Any, x_unstable: Any, *, feature_names: tuple[str, ...] | None = None
    ) -> Explanation:
        """The terms of one row's prediction; see `Explanation`."""
        stable = as_probability_matrix(np.reshape(np.asarray(stable_proba, dtype=float), (1, -1)))
        row = x_unstable.toarray() if sparse.issparse(x_unstable) else x_unstable
        if not hasattr(row, "columns"):
            row = np.reshape(np.asarray(row), (1, -1))
        joint = self.predict_log_proba(stable, row)[0]
        if self.unstable is None:
            flat = floored_log(self.prior)
            return Explanation(self.classes, joint, floored_log(stable[0]), flat, flat)
        X = self._check(row, 1)
        unstable = self.unstable.log_proba(X)[0]
        names = feature_names or tuple(f"x{j}" for j in range(self.n_features))
        terms = (joint, floored_log(stable[0]), unstable, floored_log(self.divisor))
        coef = getattr(self.head, "coef_", None)
        if coef is None:
            return Explanation(self.classes, *terms, feature_names=names)
        if len(coef) == 1:  # one column of log-odds: the second class
            coef = np.vstack([np.zeros_like(coef), coef])
        scale = 1.0 if self.unstable.temperature is None else 1.0 / self.unstable.temperature.temperature
        features = scale * X.reshape(-1, 1) * coef.T
        values = np.asarray(row, dtype=float)[0]
        return Explanation(self.classes, *terms, features, unstable - features.sum(axis=0), names, values)

    def _check(self, X_unstable: Any, n_rows: int) -> Any:
        if self.settings.wraps_head and self.standardizer is None:
            return as_rows(X_unstable, n_rows)  # the wrapped pipeline knows its own columns
        X = check_unstable(X_unstable, n_rows=n_rows, n_features=self.n_features)
        return X if self.standardizer is None else self.standardizer.apply(X)

    def __str__(self) -> str:
        shares = ", ".join(
            f"{name}: {share:.3f}" for name, share in zip(self.classes, self.prior, strict=True)
        )
        lines = [
            f"Adaptation: {self.decision.kind} ({self.decision.reason})",
            f"  rows {self.n_rows}, labelled {self.n_labelled}, unstable features {self.n_features}",
            f"  class shares {{{shares}}}, informativeness {self.informativeness:.3f}",
        ]
        if self.cross_fit is not None:
            held_out = f"{self.cross_fit.gain:.4f} ± {self.cross_fit.standard_error:.4f}"
            lines.append(f"  held-out likelihood {held_out} nats a row")
        lines += [f"  note: {sentence}" for sentence in self.warnings]
        return "\n".join(lines)

    __repr__ = __str__
