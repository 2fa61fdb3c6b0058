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
from scipy.special import ndtr

from sfboost.answers.candidates import Answer
from sfboost.answers.rows import AnswerRows
from sfboost.calibration import Temperature
from sfboost.marginal.probabilities import FloatArray, IntArray, log_softmax

# Standard deviations, before any label is seen, of the shift of a class and of the logarithm of the slope.
_SHIFT, _LOG_SLOPE = 1.0, 0.5
_MOST_STEPS, _LONGEST_STEP, _TOLERANCE = 100, 1.0, 1e-9
# Labelled rows that differ from the others more than this are not drawn at random.
_LEVEL = 0.05


@dataclass(frozen=True, eq=False)
class RecalibratedAnswer:
    """Another answer, put right by labels.

    Attributes
    ----------
    base : Answer
    temperature : Temperature
    """

    base: Any
    temperature: Temperature

    def log_proba(self, rows: AnswerRows) -> FloatArray:
        """What the other answer says, less or more sure, and with other class shares."""
        return self.temperature.apply(self.base.log_proba(rows))


def put_right(
    answers: Mapping[str, Answer], learned: Mapping[str, Answer], rows: AnswerRows, known: IntArray
) -> tuple[dict[str, Answer], dict[str, float], bool]:
    """Answers after labels, how well each foretells them, and whether their rows look drawn at random.

    `learned` has answers that saw the labels already, as they would be without: these are judged in their
    place, and not put right. Nor is any where the labelled rows look chosen. `known` is −1 without a label.
    """
    labelled = np.flatnonzero(known >= 0)
    part, y = rows.take(labelled), known[labelled]
    said = np.exp(np.hstack([rows.view.log_stable[:, 1:], rows.view.log_pooled[:, 1:]]))
    random = drawn_at_random(said, labelled)
    made, fits = dict(answers), {}
    for name, answer in answers.items():
        log_proba = learned.get(name, answer).log_proba(part)
        fits[name] = float(log_proba[np.arange(len(y)), y].sum())
        if random and name not in learned:
            temperature, fits[name] = recalibrate(log_proba, y)
            made[name] = RecalibratedAnswer(answer, temperature)
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
    """How labelled rows put an answer right, and how likely their labels are, before and after.

    Two hypotheses have even odds: the answer is right as it is, or it has another slope and other shifts, of
    which a normal prior is known. The labels say how far each is to be believed; the likelihood is that of
    both together, that of the second by Laplace's approximation.

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
    n_rows, n_classes = log_proba.shape
    rows = np.arange(n_rows)
    precision = np.append(np.full(n_classes, _SHIFT**-2), _LOG_SLOPE**-2)
    theta = np.zeros(n_classes + 1)  # shifts, then the logarithm of the slope
    for _ in range(_MOST_STEPS):
        scaled = np.exp(theta[-1]) * log_proba
        proba = np.exp(log_softmax(scaled + theta[:-1]))
        wrong = -proba
        wrong[rows, y] += 1.0
        centred = scaled - (proba * scaled).sum(axis=1, keepdims=True)
        gradient = np.append(wrong.sum(axis=0), (wrong * scaled).sum()) - precision * theta
        curvature = np.diag(precision)
        curvature[:-1, :-1] += np.diag(proba.sum(axis=0)) - proba.T @ proba
        curvature[:-1, -1] += (proba * centred).sum(axis=0)
        curvature[-1, :-1] = curvature[:-1, -1]
        curvature[-1, -1] += (proba * centred**2).sum()
        step = np.linalg.solve(curvature, gradient)
        theta = theta + np.clip(step, -_LONGEST_STEP, _LONGEST_STEP)
        if np.abs(step).max() < _TOLERANCE:
            break
    before = float(log_proba[rows, y].sum())
    fitted = float(log_softmax(np.exp(theta[-1]) * log_proba + theta[:-1])[rows, y].sum())
    volume = np.linalg.slogdet(curvature)[1] - np.log(precision).sum()
    after = fitted - 0.5 * float(precision @ theta**2) - 0.5 * float(volume)
    believed = float(np.exp(after - np.logaddexp(before, after)))
    found = Temperature(float(np.exp(-believed * theta[-1])), believed * theta[:-1])
    return found, float(np.logaddexp(before, after) - np.log(2.0))
