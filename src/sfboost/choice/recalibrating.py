"""A few labels put an answer right: how sure it is, and how frequent it takes each class to be.

A new domain often differs from training in its class shares, or by a column that has one value there: either
moves all log-probabilities of a class by the same amount, and no weight of the candidates can undo it. Twenty
labels can. They must be of rows drawn without regard to their class: labels of positives alone would make
every row one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import logsumexp, ndtr, softmax

from sfboost.calibration import Temperature
from sfboost.choice.predictors import TargetPredictor
from sfboost.marginal.probabilities import FloatArray, IntArray, log_softmax
from sfboost.shift import DomainData

# Standard deviations, before any label is seen, of the shift of a class and of the logarithm of the slope.
_SHIFT, _LOG_SLOPE = 1.0, 0.5
_MOST_STEPS, _LONGEST_STEP, _TOLERANCE = 100, 1.0, 1e-9
# Labelled rows that differ from the others more than this are not drawn at random.
_LEVEL = 0.05


@dataclass(frozen=True, eq=False)
class RecalibratedPredictor:
    """Another answer, put right by labels.

    Attributes
    ----------
    base : TargetPredictor
    temperature : Temperature
    """

    base: Any
    temperature: Temperature

    def log_proba(self, rows: DomainData) -> FloatArray:
        """What the other answer says, less or more sure, and with other class shares."""
        return self.temperature.apply(self.base.log_proba(rows))


def put_right(
    answers: Mapping[str, TargetPredictor],
    learned: Mapping[str, TargetPredictor],
    rows: DomainData,
    known: IntArray,
) -> tuple[dict[str, TargetPredictor], dict[str, float], bool]:
    """Answers after labels, how well each foretells them, and whether their rows look drawn at random.

    `learned` has answers that saw the labels already, as they would be without: these are judged in their
    place, and not put right. Nor is any where the labelled rows look chosen. `known` is −1 without a label.
    """
    labelled = np.flatnonzero(known >= 0)
    part, y = rows.take(labelled), known[labelled]
    said = np.exp(np.hstack([rows.log_stable[:, 1:], rows.log_pooled[:, 1:]]))
    random = drawn_at_random(said, labelled)
    made, fits = dict(answers), {}
    for name, answer in answers.items():
        log_proba = learned.get(name, answer).log_proba(part)
        fits[name] = float(log_proba[np.arange(len(y)), y].sum())
        if random and name not in learned:
            temperature, fits[name] = recalibrate(log_proba, y)
            made[name] = RecalibratedPredictor(answer, temperature)
    return made, fits, random


def drawn_at_random(said: FloatArray, labelled: IntArray) -> bool:
    """Whether labelled rows look like the others by what is said of them, an array of shape (n, columns)."""
    others = np.setdiff1d(np.arange(len(said)), labelled)
    if not len(others):
        return True
    spread = said.std(axis=0) * np.sqrt(1.0 / len(labelled) + 1.0 / len(others))
    apart = np.abs(said[labelled].mean(axis=0) - said[others].mean(axis=0))
    far = apart / np.maximum(spread, np.finfo(np.float64).tiny)
    return bool(2.0 * ndtr(-far.max()) * said.shape[1] >= _LEVEL)


def recalibrate(log_proba: FloatArray, y: IntArray) -> tuple[Temperature, float]:
    """How labelled rows put an answer right, and how likely their labels are.

    Four hypotheses have even odds: the answer is right as it is, it is too sure or not sure enough, it takes
    classes to be more or less frequent than they are, or both. What slope and shifts are is known by a normal
    prior. The labels say how far each hypothesis is to be believed; the likelihood is that of all together.

    Examples
    --------
    >>> y = np.repeat([0, 1], [2, 18])
    >>> found, _ = recalibrate(np.log(np.full((20, 2), 0.5)), y)
    >>> bool(0.75 < np.exp(found.apply(np.log([[0.5, 0.5]])))[0, 1] < 0.9)
    True

    References
    ----------
    .. [1] J. Platt (1999). Probabilistic Outputs for Support Vector Machines. Advances in Large Margin
       Classifiers.
    .. [2] R. E. Kass and A. E. Raftery (1995). Bayes Factors. Journal of the American Statistical
       Association 90.
    """
    shifts, slope = np.arange(log_proba.shape[1]), np.array([log_proba.shape[1]])
    free = (shifts[:0], slope, shifts, np.append(shifts, slope))
    found = [_fitted(log_proba, y, part) for part in free]
    fits = np.array([fit for _, fit in found])
    *shift, log_slope = softmax(fits) @ np.array([theta for theta, _ in found])
    return Temperature(float(np.exp(-log_slope)), np.array(shift)), float(logsumexp(fits) - np.log(len(fits)))


def _fitted(log_proba: FloatArray, y: IntArray, free: IntArray) -> tuple[FloatArray, float]:
    """The most likely shifts and logarithm of the slope, some of them free and the others none.

    And the logarithm of the likelihood, what is free averaged over its prior (Laplace's approximation).
    """
    rows = np.arange(len(y))
    precision = np.append(np.full(log_proba.shape[1], _SHIFT**-2), _LOG_SLOPE**-2)
    theta = np.zeros(len(precision))
    curvature = np.diag(precision)
    for _ in range(_MOST_STEPS if len(free) else 0):
        scaled = np.exp(theta[-1]) * log_proba
        proba = np.exp(log_softmax(scaled + theta[:-1]))
        wrong = -proba
        wrong[rows, y] += 1.0
        centred = scaled - (proba * scaled).sum(axis=1, keepdims=True)
        gradient = np.append(wrong.sum(axis=0), (wrong * scaled).sum()) - precision * theta
        curvature = np.diag(precision)
        curvature[:-1, :-1] += np.diag(proba.sum(axis=0)) - proba.T @ proba
        curvature[:-1, -1] = curvature[-1, :-1] = (proba * centred).sum(axis=0)
        curvature[-1, -1] += (proba * centred**2).sum()
        step = np.linalg.solve(curvature[np.ix_(free, free)], gradient[free])
        theta[free] += np.clip(step, -_LONGEST_STEP, _LONGEST_STEP)
        if np.abs(step).max() < _TOLERANCE:
            break
    fit = log_softmax(np.exp(theta[-1]) * log_proba + theta[:-1])[rows, y].sum()
    volume = np.linalg.slogdet(curvature[np.ix_(free, free)])[1] - np.log(precision[free]).sum()
    return theta, float(fit - 0.5 * precision @ theta**2 - 0.5 * volume)
