"""In which coordinates meanings are measured: units, class directions, what X_S says of U. Numbers only."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

from sfboost.marginal.probabilities import FloatArray
from sfboost.shift.rows import DomainData

# Share of the mean diagonal of XᵀX that is added to it: features may repeat each other, U and X_S more so.
_RIDGE, _RIDGE_OF_EVIDENCE = 1e-3, 1e-2
# A variance, or a share of the rows, that is no more than what rounding leaves.
_NOTHING = 1e-12


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
    to_unstable : array of shape (p + 1, d)
        Ridge regression of U on those features, intercept last.
    says : array of shape (d, K)
        What a step of each unstable feature, in its own unit, adds to what the pooled classifier says of each
        class: the linear part of `DomainData.evidence`.
    """

    centre: FloatArray
    unit: FloatArray
    excess: FloatArray
    direction: FloatArray
    mean: FloatArray
    spread: FloatArray
    to_unstable: FloatArray
    says: FloatArray

    @classmethod
    def learn(cls, sums: MeaningSums, units: CommonUnits, says: FloatArray) -> Self:
        """Learn them from sums over rows whose labels are known; `says` is in common units."""
        total, (first, second, third, fourth) = sums.weight, sums.powers / sums.weight
        unit = _spread(second - first**2)
        known = sums.by_class[:, :1] > _NOTHING * total
        means = np.where(
            known, sums.by_class[:, 1:] / np.where(known, sums.by_class[:, :1], 1.0) - first, 0.0
        )
        direction = (means - means.mean(axis=0)) / unit
        length = np.linalg.norm(direction, axis=0)
        direction = direction / np.where(length > 0.0, length, 1.0)
        about = fourth - 4.0 * first * third + 6.0 * first**2 * second - 3.0 * first**4
        gram, products = sums.gram / total, sums.products / total
        shift = gram[-1, :-1]
        spread = _spread(np.diag(gram)[:-1] - shift**2)
        # The columns of the design in units of these rows; its last one stays a column of ones.
        turn = np.diag(np.append(1.0 / spread, 1.0))
        turn[-1, :-1] = -shift / spread
        design = turn.T @ gram @ turn
        design += _RIDGE * np.trace(design) / len(design) * np.eye(len(design))
        targets = turn.T @ ((products - gram[:, -1:] * first) / unit)
        return cls(
            units.centre + units.unit * first,
            units.unit * unit,
            np.maximum(about / unit**4, 1.0) - 3.0,
            direction,
            units.mean + units.spread * shift,
            units.spread * spread,
            np.linalg.solve(design, targets),
            says / units.unit[:, None],
        )

    def standardised(self, view: DomainData) -> FloatArray:
        """U in the units of training."""
        return (view.unstable - self.centre) / self.unit

    def evidence(self, U: FloatArray) -> FloatArray:
        """What U, in the units of training, adds to the pooled answer: its linear part.

        What trees say has many steps, which differ from row to row and from one training to the next. What
        own domains agree on, and what a change of meaning turns, is how the answer goes with U on average.
        """
        return np.asarray(U @ (self.unit[:, None] * self.says))

    def design(self, view: DomainData) -> FloatArray:
        """The features that predict U, in the units of training, and a column of ones."""
        return design_matrix(view.features, self.mean, self.spread)


class CommonUnits(NamedTuple):
    """Mean and standard deviation over all domains, of U and of the features that predict it."""

    centre: FloatArray
    unit: FloatArray
    mean: FloatArray
    spread: FloatArray

    @classmethod
    def of(cls, view: DomainData) -> Self:
        """Of all rows."""
        return cls(*mean_and_spread(view.unstable, view.weight), *mean_and_spread(view.features, view.weight))

    def evidence(self, view: DomainData) -> FloatArray:
        """How the evidence follows each unstable feature, X_S held fixed: ridge coefficients, (d, K)."""
        U, X = (view.unstable - self.centre) / self.unit, (view.features - self.mean) / self.spread
        together = np.column_stack([U, X, np.ones(len(U))])
        weighted = together * view.weight[:, None]
        gram = weighted.T @ together
        gram += _RIDGE_OF_EVIDENCE * np.trace(gram) / len(gram) * np.eye(len(gram))
        return np.asarray(np.linalg.solve(gram, weighted.T @ view.evidence)[: U.shape[1]])


@dataclass(frozen=True, eq=False)
class MeaningSums:
    """Sums over labelled rows in common units: all domains less one are the others.

    Attributes
    ----------
    weight : float
    powers : array of shape (4, d)
        Σ U, U², U³, U⁴.
    by_class : array of shape (K, 1 + d)
        Σ 1 and Σ U of each class.
    gram : array of shape (p + 1, p + 1)
        Σ x xᵀ of the features that predict U, and of one.
    products : array of shape (p + 1, d)
        Σ x Uᵀ.
    """

    weight: float
    powers: FloatArray
    by_class: FloatArray
    gram: FloatArray
    products: FloatArray

    @classmethod
    def of(cls, view: DomainData, y: npt.NDArray[np.intp], units: CommonUnits, share: float) -> Self:
        """Of one domain that has this share of all rows; labels are positions among the classes."""
        weight = share * view.weight
        U = (view.unstable - units.centre) / units.unit
        X = design_matrix(view.features, units.mean, units.spread)
        squared, weighted = U * U, X * weight[:, None]
        onehot = np.eye(view.log_stable.shape[1])[y] * weight[:, None]
        return cls(
            float(weight.sum()),
            np.stack([weight @ U, weight @ squared, weight @ (squared * U), weight @ (squared * squared)]),
            np.column_stack([onehot.sum(axis=0), onehot.T @ U]),
            weighted.T @ X,
            weighted.T @ U,
        )

    def __add__(self, other: MeaningSums) -> MeaningSums:
        return MeaningSums(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    def __sub__(self, other: MeaningSums) -> MeaningSums:
        return MeaningSums(*(getattr(self, f.name) - getattr(other, f.name) for f in fields(self)))


def mean_and_spread(X: FloatArray, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean and standard deviation of each column, one where it does not vary; weights sum to one."""
    mean = weight @ X
    spread = np.sqrt(weight @ (X - mean) ** 2)
    return mean, np.where(spread > 0.0, spread, 1.0)


def design_matrix(X: FloatArray, mean: FloatArray, spread: FloatArray) -> FloatArray:
    """Columns in these units, and one of ones."""
    return np.column_stack([(X - mean) / spread, np.ones(len(X))])


def _spread(variance: FloatArray) -> FloatArray:
    """Its root in common units; one where what is left is rounding."""
    return np.sqrt(np.where(variance > _NOTHING, variance, 1.0))
