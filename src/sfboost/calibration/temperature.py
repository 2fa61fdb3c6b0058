"""Temperature scaling: softmax(log f / T + b), chosen by likelihood or by ECE (the paper).

Where some labels are wrong, Pr[Y | X] has a floor that no temperature gives:
(1 − η) softmax(log f / T) + η p, p the class shares. η is fitted too if asked for.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize, minimize_scalar

from sfboost.calibration.reliability import bin_confidence
from sfboost.marginal.probabilities import FloatArray, IntArray, log_softmax

# T between 1/20 and 20: beyond that the predictor is unusable whatever its temperature.
_LARGEST_LOG_SCALE = float(np.log(20.0))
_NOISES, _LEAST_GAIN = np.arange(1, 20) / 20, 2.0
_GRID = np.exp(np.linspace(np.log(0.1), np.log(10.0), 201))


@dataclass(frozen=True, eq=False)
class Temperature:
    """A fitted temperature: divides log-probabilities by `temperature` and adds `bias`.

    `noise`, of shape (K,), is then mixed in: probabilities that every row has, whatever its features.

    Examples
    --------
    >>> import numpy as np
    >>> hot = Temperature(2.0)
    >>> np.exp(hot.apply(np.log([[0.1, 0.9]]))).round(3)
    array([[0.25, 0.75]])
    >>> np.exp(Temperature(noise=np.array([0.25, 0.25])).apply(np.log([[0.1, 0.9]]))).round(3)
    array([[0.3, 0.7]])
    """

    temperature: float = 1.0
    bias: FloatArray | None = None
    noise: FloatArray | None = None

    def apply(self, log_proba: FloatArray) -> FloatArray:
        """Calibrated log-probabilities of shape (n, K) from raw ones (or from logits)."""
        shift = 0.0 if self.bias is None else self.bias
        return _mixed(log_softmax(log_proba / self.temperature + shift), self.noise)


def _mixed(log_proba: FloatArray, noise: FloatArray | None) -> FloatArray:
    if noise is None:
        return log_proba
    return np.asarray(np.log((1.0 - noise.sum()) * np.exp(log_proba) + noise))


def fit_temperature(
    log_proba: FloatArray,
    y: IntArray,
    *,
    criterion: str = "nll",
    bias: bool = False,
    noise: bool = False,
    domain: object = None,
    sample_weight: FloatArray | None = None,
) -> Temperature:
    """Choose a temperature on labelled rows that the predictor was not fitted to.

    A classifier that is too sure is as right as before if its logits are divided by a number above one, and
    means what it says. One number cannot overfit, and the order of the classes stays.

    Parameters
    ----------
    log_proba : array of shape (n, K)
        Log-probabilities or logits; finite.
    y : integer array of shape (n,)
        Class positions 0..K-1.
    criterion : {"nll", "ece"}
        `"nll"` minimises the log loss; `"ece"` is the paper's choice: a grid of temperatures, the mean
        ECE over domains, ties broken by log loss.
    bias : bool
        Also fit one offset per class (by log loss in either case).
    noise : bool
        Also fit the share of labels that are as good as drawn (with "nll"), where it raises the log
        likelihood by two or more.
    domain : array of shape (n,), optional
        Domain of each row. If given, every domain counts the same whatever its size; otherwise rows
        are pooled.
    sample_weight : array of shape (n,), optional

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> logits = rng.normal(size=(20000, 1)) @ np.array([[-1.0, 1.0]])
    >>> y = (rng.random(20000) < 1 / (1 + np.exp(-2 * logits[:, 1]))).astype(int)
    >>> round(fit_temperature(3 * logits, y).temperature, 1)
    3.0

    References
    ----------
    .. [1] C. Guo, G. Pleiss, Y. Sun and K. Q. Weinberger (2017). On Calibration of Modern Neural Networks.
       ICML.
    """
    if criterion not in ("nll", "ece"):
        raise ValueError(f'criterion={criterion!r} is not known: use "nll" or "ece".')
    groups = _groups(y, domain)
    weight = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    balanced = np.empty(len(y))
    for rows in groups:
        balanced[rows] = weight[rows] / (weight[rows].sum() * len(groups))
    fitted = _fit_by_nll(log_proba, y, balanced, bias)
    if criterion == "nll":
        return _with_noise(fitted, log_proba, y, balanced) if noise else fitted
    shift = 0.0 if fitted.bias is None else fitted.bias * fitted.temperature
    return _fit_by_ece(log_proba + shift, y, weight, balanced, groups, shift)


def _groups(y: IntArray, domain: object) -> list[IntArray]:
    if domain is None:
        return [np.arange(len(y))]
    names, place = np.unique(np.asarray(domain), return_inverse=True)
    return [np.flatnonzero(place == i) for i in range(len(names))]


def _nll(log_proba: FloatArray, y: IntArray, weight: FloatArray) -> float:
    return -float(weight @ log_softmax(log_proba)[np.arange(len(y)), y])


def _fit_by_nll(log_proba: FloatArray, y: IntArray, weight: FloatArray, bias: bool) -> Temperature:
    best = minimize_scalar(
        lambda log_scale: _nll(np.exp(log_scale) * log_proba, y, weight),
        bounds=(-_LARGEST_LOG_SCALE, _LARGEST_LOG_SCALE),
        method="bounded",
        options={"xatol": 1e-8},
    )
    scale = float(np.exp(best.x))
    if not bias:
        return Temperature(1.0 / scale)
    onehot = np.eye(log_proba.shape[1])[y]

    def loss(theta: FloatArray) -> tuple[float, FloatArray]:
        fitted = log_softmax(theta[0] * log_proba + theta[1:])
        residual = (np.exp(fitted) - onehot) * weight[:, None]
        gradient = np.concatenate([[np.sum(residual * log_proba)], residual.sum(axis=0)])
        # The mean of the offsets is free: a trace of ridge keeps them centred.
        value = -float(weight @ fitted[np.arange(len(y)), y]) + 0.5e-8 * float(theta[1:] @ theta[1:])
        return value, gradient + np.concatenate([[0.0], 1e-8 * theta[1:]])

    start = np.concatenate([[scale], np.zeros(log_proba.shape[1])])
    limits = [(float(np.exp(-_LARGEST_LOG_SCALE)), float(np.exp(_LARGEST_LOG_SCALE)))]
    limits += [(-50.0, 50.0)] * log_proba.shape[1]
    theta = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=limits, options={"gtol": 1e-9}).x
    return Temperature(1.0 / float(theta[0]), theta[1:] - theta[1:].mean())


def _with_noise(fitted: Temperature, log_proba: FloatArray, y: IntArray, weight: FloatArray) -> Temperature:
    """The best of a grid of noise shares, each with its own temperature."""
    shares = np.bincount(y, weight, minlength=log_proba.shape[1]).astype(np.float64)
    shift = 0.0 if fitted.bias is None else fitted.bias * fitted.temperature

    def loss(log_scale: float, noise: FloatArray) -> float:
        logits = log_softmax(np.exp(log_scale) * (log_proba + shift))
        return -float(weight @ _mixed(logits, noise)[np.arange(len(y)), y])

    limits = (-_LARGEST_LOG_SCALE, _LARGEST_LOG_SCALE)
    without = loss(-float(np.log(fitted.temperature)), np.zeros(len(shares)))
    best, least = fitted, without - _LEAST_GAIN / len(y)
    for share in _NOISES:
        found = minimize_scalar(loss, args=(share * shares,), bounds=limits, method="bounded")
        if found.fun < least:
            temperature = float(np.exp(-found.x))
            bias = None if fitted.bias is None else fitted.bias * fitted.temperature / temperature
            best, least = Temperature(temperature, bias, share * shares), float(found.fun)
    return best


def _fit_by_ece(
    log_proba: FloatArray,
    y: IntArray,
    weight: FloatArray,
    balanced: FloatArray,
    groups: list[IntArray],
    shift: FloatArray | float,
) -> Temperature:
    """ECE is piecewise constant with jumps in T: a grid, not a gradient."""
    right = (log_proba.argmax(axis=1) == y).astype(np.float64)  # the same at every temperature
    below_best = log_proba - log_proba.max(axis=1, keepdims=True)

    def mean_ece(temperature: float) -> float:
        confidence = 1.0 / np.exp(below_best / temperature).sum(axis=1)
        curves = [bin_confidence(confidence[g], right[g], weight[g]) for g in groups]
        return float(np.mean([curve.ece for curve in curves]))

    eces = np.array([mean_ece(temperature) for temperature in _GRID])
    tied = _GRID[eces <= eces.min() + 1e-12]
    temperature = float(min(tied, key=lambda t: _nll(log_proba / t, y, balanced)))
    return Temperature(temperature, None if isinstance(shift, float) else shift / temperature)
