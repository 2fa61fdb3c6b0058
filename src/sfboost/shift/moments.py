"""The blind moments of one domain: what the unstable features say there, measured without its labels.

Under complementarity E[h | X_S] = Σ_y f_S,y E[h | y] for any function h of X_U, so that M[h] = (FᵀF)⁻¹ Fᵀh
are its class means. Where complementarity fails M is biased, and about as much in every domain: moments are
compared with those of other domains, measured in the same way, never with what labels say.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sfboost.marginal.probabilities import FloatArray
from sfboost.shift.coordinates import MeaningCoordinates
from sfboost.shift.prediction import UNKNOWN
from sfboost.shift.rows import DomainData

# The evidence of features that are all constant in a domain has a spread of this many of its training units.
_LEAST_SPREAD = 1e-3
# A variance, in training units, that is no more than what rounding leaves.
_CONSTANT = 1e-12


@dataclass(frozen=True, eq=False)
class Moments:
    """Each an array of values and one of robust standard errors, of the same shape.

    Attributes
    ----------
    evidence : arrays of shape (1,)
        How much the evidence of all unstable features together favours the class that f_S says.
    meaning : arrays of shape (d,)
        Blind class means of each feature along the direction that they have in training.
    evidence_slope, slope : arrays of shapes (1,) and (d,)
        Of the evidence, and of each feature, on what X_S predicts of them.
    scale : arrays of shape (d,)
        Log of each feature's standard deviation, in the units of training.
    shares : arrays of shape (K,)
        Log of the class shares that the pooled classifier says, less that of those that f_S says.
    evidence_scale : arrays of shape (1,)
        Log of the evidence's standard deviation.
    """

    evidence: tuple[FloatArray, FloatArray]
    meaning: tuple[FloatArray, FloatArray]
    evidence_slope: tuple[FloatArray, FloatArray]
    slope: tuple[FloatArray, FloatArray]
    scale: tuple[FloatArray, FloatArray]
    shares: tuple[FloatArray, FloatArray]
    evidence_scale: tuple[FloatArray, FloatArray]


def measure_moments(
    coordinates: MeaningCoordinates, view: DomainData, weights: Iterable[FloatArray]
) -> list[Moments]:
    """Measure a domain with each of these row weights."""
    F, pooled = np.exp(view.log_stable), np.exp(view.log_pooled)
    U, expected = coordinates.standardised(view), coordinates.design(view) @ coordinates.to_unstable
    evidence = coordinates.evidence(U), coordinates.evidence(expected)
    return [_measure(coordinates, F, pooled, U, expected, evidence, weight) for weight in weights]


def _measure(
    coordinates: MeaningCoordinates,
    F: FloatArray,
    pooled: FloatArray,
    U: FloatArray,
    expected: FloatArray,
    evidence: tuple[FloatArray, FloatArray],
    weight: FloatArray,
) -> Moments:
    n_classes, (said, foretold) = F.shape[1], evidence
    towards = (np.eye(n_classes) - 1.0 / n_classes) / n_classes
    together, error = _class_means(F, said, towards, weight)
    meaning, meaning_error = _class_means(F, U, coordinates.direction, weight)
    variance = weight @ (U - weight @ U) ** 2
    # A column of one value, as the size of a place or a code that does not occur, says nothing here: neither
    # what it means nor what its unit is.
    silent = variance <= _CONSTANT
    # Few rows may have too little of a rare code by chance: half an event is added, as to a count whose
    # logarithm is taken.
    spread = variance + 0.5 * np.maximum(coordinates.excess, 0.0) * (weight @ weight)
    return Moments(
        evidence=(together.sum(keepdims=True), np.sqrt((error.sum(axis=1) ** 2).sum(keepdims=True))),
        meaning=_but(silent, meaning, np.sqrt(np.einsum("ij,ij->j", meaning_error, meaning_error))),
        evidence_slope=_slope(foretold, said, weight, together=True),
        slope=_but(silent, *_slope(expected, U, weight)),
        scale=_but(
            silent,
            0.5 * np.log(np.where(silent, 1.0, spread)),
            np.sqrt(0.25 * (coordinates.excess + 2.0) * (weight @ weight)),
        ),
        shares=_log_ratio(pooled, F, weight),
        evidence_scale=_log_spread(said, weight),
    )


def _class_means(
    F: FloatArray, H: FloatArray, direction: FloatArray, weight: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Σ_y direction[y, j] · M[H]_yj for every column j, and each row's part in its error."""
    gram = (F * weight[:, None]).T @ F
    gram += 1e-9 * np.eye(len(gram))
    inverse = np.linalg.inv(gram)
    means = inverse @ ((F * weight[:, None]).T @ H)
    parts = weight[:, None] * (F @ (inverse @ direction))
    parts *= H - F @ means
    return (direction * means).sum(axis=0), parts


def _but(
    silent: npt.NDArray[np.bool_], value: FloatArray, error: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """A moment of each column, unknown where the column is silent."""
    return np.where(silent, 0.0, value), np.where(silent, UNKNOWN, error)


def _mean(H: FloatArray, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
    mean = weight @ H
    return mean, np.sqrt(weight**2 @ (H - mean) ** 2)


def _log_ratio(H: FloatArray, of: FloatArray, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Logarithm of the ratio of the means of each column."""
    above, below = weight @ H, weight @ of
    parts = weight[:, None] * (H / above - of / below)
    return np.log(above / below), np.sqrt((parts**2).sum(axis=0))


def _log_spread(H: FloatArray, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Half the logarithm of the variance of all columns together."""
    square = ((H - weight @ H) ** 2).sum(axis=1, keepdims=True)
    variance, error = _mean(square, weight)
    variance = np.maximum(variance, _LEAST_SPREAD**2)
    return 0.5 * np.log(variance), 0.5 * error / variance


def _slope(
    x: FloatArray, y: FloatArray, weight: FloatArray, together: bool = False
) -> tuple[FloatArray, FloatArray]:
    """Slope of each column of y on that of x; of all columns at once if `together`."""
    x, y = x - weight @ x, y - weight @ y
    weighted = weight[:, None] * x
    along, product = np.einsum("ij,ij->j", weighted, x), np.einsum("ij,ij->j", weighted, y)
    if together:
        along, product = along.sum(keepdims=True), product.sum(keepdims=True)
    along = np.maximum(along, np.finfo(np.float64).tiny)
    slope = product / along
    x *= slope
    y -= x
    y *= weighted
    parts = y.sum(axis=1, keepdims=True) if together else y
    return slope, np.sqrt(np.einsum("ij,ij->j", parts, parts)) / along
