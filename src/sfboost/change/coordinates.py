"""In which coordinates meanings are measured: units, class directions, what X_S says of U. Numbers only."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from sfboost.change.view import View
from sfboost.marginal.probabilities import FloatArray

# Share of the mean diagonal of XᵀX that is added to it: features may repeat each other.
_RIDGE = 1e-3


@dataclass(frozen=True, eq=False)
class MeaningCoordinates:
    """Learned on labelled training rows.

    Attributes
    ----------
    centre, unit : arrays of shape (d,)
        Mean and standard deviation of each unstable feature: U is measured in these, also in a new domain, so
        that a change of unit there is seen.
    excess : array of shape (d,)
        Excess kurtosis of each: large where few rows make up the spread, as of a code that is rare.
    direction : array of shape (K, d)
        Class means of each unstable feature, centred, of length one: where its meaning points to.
    mean, spread : arrays of shape (p,)
        Of the features that predict U.
    to_unstable, to_evidence : arrays of shape (p + 1, d) and (p + 1, K)
        Ridge regressions of U and of the evidence on those features, intercept last.
    """

    centre: FloatArray
    unit: FloatArray
    excess: FloatArray
    direction: FloatArray
    mean: FloatArray
    spread: FloatArray
    to_unstable: FloatArray
    to_evidence: FloatArray

    @classmethod
    def learn(cls, view: View, y: npt.NDArray[np.intp]) -> Self:
        """Learn them from rows whose labels are known (positions among the classes)."""
        weight, n_classes = view.weight, view.log_stable.shape[1]
        centre, unit = _moments(view.unstable, weight)
        U = (view.unstable - centre) / unit
        onehot = np.eye(n_classes)[y] * weight[:, None]
        direction = (onehot.T @ U) / np.maximum(onehot.sum(axis=0), np.finfo(np.float64).tiny)[:, None]
        direction = direction - direction.mean(axis=0)
        length = np.linalg.norm(direction, axis=0)
        direction = direction / np.where(length > 0.0, length, 1.0)
        mean, spread = _moments(view.features, weight)
        excess = np.maximum(weight @ (U**2) ** 2, 1.0) - 3.0  # a fourth power takes ten times as long
        made = cls(centre, unit, excess, direction, mean, spread, np.empty(0), np.empty(0))
        design = made.design(view)
        gram = (design * weight[:, None]).T @ design
        gram += _RIDGE * np.trace(gram) / len(gram) * np.eye(len(gram))
        to_unstable, to_evidence = (
            np.asarray(np.linalg.solve(gram, (design * weight[:, None]).T @ target), dtype=np.float64)
            for target in (U, view.evidence)
        )
        return replace(made, to_unstable=to_unstable, to_evidence=to_evidence)

    @classmethod
    def _upgraded(cls, state: dict[str, Any]) -> dict[str, Any]:
        """Files of before: spreads were judged as those of Gaussian features."""
        return {"excess": np.zeros_like(state["unit"])} | state

    def standardised(self, view: View) -> FloatArray:
        """U in the units of training."""
        return (view.unstable - self.centre) / self.unit

    def design(self, view: View) -> FloatArray:
        """The features that predict U, in the units of training, and a column of ones."""
        return np.column_stack([(view.features - self.mean) / self.spread, np.ones(len(view.features))])


def _moments(X: FloatArray, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
    mean = weight @ X
    spread = np.sqrt(weight @ (X - mean) ** 2)
    return mean, np.where(spread > 0.0, spread, 1.0)
