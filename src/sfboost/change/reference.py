"""What own domains say blind: the numbers, no rows, that a new domain's moments are compared with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from sfboost.change.class_shares import back_to_training
from sfboost.change.coordinates import MeaningCoordinates
from sfboost.change.moments import Moments, measure_elsewhere, measure_moments
from sfboost.change.view import View
from sfboost.marginal.probabilities import FloatArray

# Against features that repeat each other; of the mean diagonal of the Gram matrix.
_RIDGE = 1e-2


@dataclass(frozen=True, eq=False)
class BlindDomain:
    """A domain seen without its labels: its moments if P(Y | X_S) transports, and if P(X_S | Y) does.

    `elsewhere` is what its features say of the classes that they did not say in training; see
    `measure_elsewhere`.
    """

    name: Any
    n_rows: int
    posterior: Moments
    likelihood: Moments
    elsewhere: FloatArray | None = None


@dataclass(frozen=True, eq=False)
class Reference:
    """Everything the test keeps of training.

    Attributes
    ----------
    coordinates : MeaningCoordinates
    domains : tuple of BlindDomain
    importance : array of shape (d,)
        Share of each unstable feature in the pooled evidence; sums to one.
    prior : array of shape (K,)
        Class shares of the training rows.
    names : tuple of str
        Of the unstable features, by column.
    groups : integer array of shape (d,)
        Columns of one feature (a category and its codes) have one number.
    neutral : array of shape (d,) or None
        Average U, by which the evidence of own domains was measured; None if it was by f_S.
    stable_score : float
        Brier score of f_S in own domains that it was not trained on, the mean over domains; 0 in files of
        before.
    """

    coordinates: MeaningCoordinates
    domains: tuple[BlindDomain, ...]
    importance: FloatArray
    prior: FloatArray
    names: tuple[str, ...]
    groups: npt.NDArray[np.intp]
    neutral: FloatArray | None = None
    stable_score: float = 0.0

    @property
    def guess_score(self) -> float:
        """Brier score of a guess at random."""
        return 1.0 - 1.0 / len(self.prior)

    @property
    def misled(self) -> bool:
        """Whether f_S is worse than a guess at random: a change is seen against it, and cannot be seen."""
        return self.stable_score > self.guess_score

    @classmethod
    def learn(
        cls,
        views: Sequence[View],
        labels: Sequence[npt.NDArray[np.intp]],
        domains: Sequence[Any],
        names: Sequence[str] | None = None,
        groups: Sequence[int] | None = None,
    ) -> Self:
        """Learn from labelled domains, each viewed by predictors that were trained on the others."""
        everything, y = _stacked(views), np.concatenate(labels)
        n_classes, d = everything.log_stable.shape[1], everything.unstable.shape[1]
        prior = np.bincount(y, everything.weight, n_classes)
        prior = np.maximum(prior, 1e-6) / np.maximum(prior, 1e-6).sum()
        coordinates = MeaningCoordinates.learn(everything, y)
        numbers = np.arange(d) if groups is None else np.asarray(groups, dtype=np.intp)
        return cls(
            coordinates,
            tuple(_left_out(views, labels, domains, i, prior) for i in range(len(views))),
            _importance(coordinates, everything),
            prior,
            tuple(f"x{j}" for j in range(d)) if names is None else tuple(names),
            np.unique(numbers, return_inverse=True)[1],
            None if everything.log_neutral is None else average(views),
            float(np.mean([_brier(view, own) for view, own in zip(views, labels, strict=True)])),
        )


def _brier(view: View, y: npt.NDArray[np.intp]) -> float:
    """Of f_S, on labelled rows."""
    wrong = np.exp(view.log_stable) - np.eye(view.log_stable.shape[1])[y]
    return float(view.weight @ (wrong**2).sum(axis=1))


def average(views: Sequence[View]) -> FloatArray:
    """U of all domains on average, each row with the weight that it has in its domain."""
    sizes = np.array([len(view.weight) for view in views], dtype=np.float64)
    return np.asarray(sizes / sizes.sum() @ np.array([view.weight @ view.unstable for view in views]))


def _left_out(
    views: Sequence[View],
    labels: Sequence[npt.NDArray[np.intp]],
    domains: Sequence[Any],
    out: int,
    prior: FloatArray,
) -> BlindDomain:
    """One own domain in coordinates that the others have taught, as a new one would be measured."""
    others = [i for i in range(len(views)) if i != out] or [out]
    coordinates = MeaningCoordinates.learn(
        _stacked([views[i] for i in others]), np.concatenate([labels[i] for i in others])
    )
    return measure_domain(domains[out], coordinates, views[out], prior)


def measure_domain(name: Any, coordinates: MeaningCoordinates, view: View, prior: FloatArray) -> BlindDomain:
    """Both kinds of moments of one domain."""
    weight = back_to_training(np.exp(view.log_stable), prior, view.weight)
    return BlindDomain(
        name,
        int(np.count_nonzero(view.weight)),
        measure_moments(coordinates, view),
        measure_moments(coordinates, replace(view, weight=weight)),
        measure_elsewhere(coordinates, view) if len(prior) > 2 else None,
    )


def _stacked(views: Sequence[View]) -> View:
    """All rows, each domain with its own share of the weight."""
    sizes = np.array([len(view.weight) for view in views], dtype=np.float64)
    log_stable, unstable, log_pooled, features = (
        np.concatenate([getattr(view, name) for view in views])
        for name in ("log_stable", "unstable", "log_pooled", "features")
    )
    shares = sizes / sizes.sum()
    weight = np.concatenate([share * view.weight for share, view in zip(shares, views, strict=True)])
    neutral = [view.log_neutral for view in views if view.log_neutral is not None]
    log_neutral = np.concatenate(neutral) if len(neutral) == len(views) else None
    return View(log_stable, unstable, log_pooled, features, weight, log_neutral)


def _importance(coordinates: MeaningCoordinates, view: View) -> FloatArray:
    """How much of the evidence follows each feature, X_S held fixed: ridge coefficients in training units."""
    U, design = coordinates.standardised(view), coordinates.design(view)
    together = np.column_stack([U, design])
    gram = (together * view.weight[:, None]).T @ together
    gram += _RIDGE * np.trace(gram) / len(gram) * np.eye(len(gram))
    coef = np.linalg.solve(gram, (together * view.weight[:, None]).T @ view.evidence)[: U.shape[1]]
    size = np.linalg.norm(coef, axis=1) + 1e-9
    return np.asarray(size / size.sum())
