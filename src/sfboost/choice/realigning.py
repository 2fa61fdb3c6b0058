"""Put shifted features back: what the other features say of them, plus their own part with its sign turned.

A feature is split in two: its regression on the other features, and a residual. Training says how it follows
from the others and how large its residual is; the new rows say what its residual is there; the test says how
much of its meaning is left, and with which sign. Nothing left: the residual is dropped, and the feature with
it. Only a matrix of second moments is kept of training, no rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from sfboost.marginal.probabilities import FloatArray
from sfboost.shift import DomainData
from sfboost.shift.coordinates import design_matrix, mean_and_spread

# Added to the diagonals of standardised second moments: features may repeat each other.
_RIDGE = 1e-3
# Residuals are stretched and squeezed by at most this factor.
_MOST_SCALE = 20.0


@dataclass(frozen=True, eq=False)
class FeatureModel:
    """How unstable features go with all others in training.

    Attributes
    ----------
    mean, spread : arrays of shape (p + d,)
        Of the features that DomainData calls `features`, then of U.
    gram : array of shape (p + d + 1, p + d + 1)
        Second moments of both, standardised, and of a column of ones.
    n_features : int
        p.
    """

    mean: FloatArray
    spread: FloatArray
    gram: FloatArray
    n_features: int

    @classmethod
    def learn(cls, views: Sequence[DomainData]) -> Self:
        """Learn from training domains, each row with the same weight as any other of its domain."""
        every = DomainData.joined(views)
        X = np.hstack([every.features, every.unstable])
        mean, spread = mean_and_spread(X, every.weight)
        Z = design_matrix(X, mean, spread)
        return cls(mean, spread, (Z * every.weight[:, None]).T @ Z, every.features.shape[1])

    def standardised(self, view: DomainData) -> FloatArray:
        """All features in training units, and a column of ones."""
        return design_matrix(np.hstack([view.features, view.unstable]), self.mean, self.spread)

    def expected(self, view: DomainData, columns: npt.NDArray[np.intp]) -> tuple[FloatArray, FloatArray]:
        """Both sides with some columns, counted over both, as training expects them, given all others."""
        kept = np.setdiff1d(np.arange(len(self.gram)), columns)
        made = self.standardised(view)[:, kept] @ _regression(self.gram, kept, columns)
        both = np.hstack([view.features, view.unstable])
        both[:, columns] = made * self.spread[columns] + self.mean[columns]
        return both[:, : self.n_features], both[:, self.n_features :]

    def realign(self, view: DomainData, columns: Sequence[int], left: Sequence[float]) -> Realignment:
        """Learn from rows of a new domain how to put the columns of U back.

        `left` is how much of the meaning of each column is left there.
        """
        turned = self.n_features + np.asarray(columns, dtype=np.intp)
        kept = np.setdiff1d(np.arange(len(self.gram)), turned)
        then = _regression(self.gram, kept, turned)
        Z = self.standardised(view)
        here = (Z * view.weight[:, None]).T @ Z
        now = _regression(here, kept, turned)
        own = self.gram[turned, turned] - (then * self.gram[np.ix_(kept, turned)]).sum(axis=0)
        new = view.weight @ (Z[:, turned] - Z[:, kept] @ now) ** 2
        scale = np.sqrt(np.maximum(own, 0.0) / np.maximum(new, 1e-12))
        factor = np.asarray(left) * np.clip(scale, 1.0 / _MOST_SCALE, _MOST_SCALE)
        return Realignment(self, np.asarray(columns, dtype=np.intp), then, now, factor)


@dataclass(frozen=True, eq=False)
class Realignment:
    """How the changed columns of a new domain are put back.

    Attributes
    ----------
    feature_model : FeatureModel
    columns : integer array
        Columns of U that changed.
    then, now : arrays of shape (p + d + 1 - c, c)
        Regressions of these columns on all others, in training and in the new domain.
    factor : array of shape (c,)
        What their residuals are multiplied with; 0 drops the column's own part.
    """

    feature_model: FeatureModel
    columns: npt.NDArray[np.intp]
    then: FloatArray
    now: FloatArray
    factor: FloatArray

    def apply(self, view: DomainData) -> FloatArray:
        """U with the changed columns put back."""
        feature_model = self.feature_model
        Z, turned = feature_model.standardised(view), feature_model.n_features + self.columns
        kept = np.setdiff1d(np.arange(Z.shape[1]), turned)
        others = Z[:, kept]
        put_back = others @ self.then + self.factor * (Z[:, turned] - others @ self.now)
        unstable = view.unstable.copy()
        unstable[:, self.columns] = put_back * feature_model.spread[turned] + feature_model.mean[turned]
        return unstable


def _regression(gram: FloatArray, on: npt.NDArray[np.intp], of: npt.NDArray[np.intp]) -> FloatArray:
    own = gram[np.ix_(on, on)] + _RIDGE * np.eye(len(on))
    return np.asarray(np.linalg.solve(own, gram[np.ix_(on, of)]))
