"""How often a prediction of confidence c is right: reliability curves and the ECE."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfboost.marginal.probabilities import FloatArray, IntArray

#: Of confidence.
N_BINS = 15


@dataclass(frozen=True, eq=False)
class ReliabilityCurve:
    """Mean confidence, accuracy and weight of the non-empty confidence bins.

    Attributes
    ----------
    confidence, accuracy : arrays of shape (n_filled_bins,)
    weight : array of shape (n_filled_bins,)
        Share of the rows in each bin; sums to one.
    """

    confidence: FloatArray
    accuracy: FloatArray
    weight: FloatArray

    @property
    def ece(self) -> float:
        """Expected calibration error: Σ_b weight_b · |accuracy_b − confidence_b|."""
        bins = np.arange(len(self.weight))
        return expected_calibration_error(self.confidence, self.weight * self.accuracy, self.weight, bins)


def reliability_curve(
    proba: FloatArray, y: IntArray, *, sample_weight: FloatArray | None = None
) -> ReliabilityCurve:
    """Bin rows by the confidence of the predicted class, in bins (lo, hi] of equal width.

    Who says 80 % should be right in eight rows of ten: each bin compares what was said with how often it came
    true.

    Parameters
    ----------
    proba : array of shape (n, K)
    y : integer array of shape (n,)
        Class positions 0..K-1.

    Examples
    --------
    >>> import numpy as np
    >>> proba = np.array([[0.25, 0.75]] * 4)
    >>> reliability_curve(proba, np.array([1, 1, 1, 0])).ece
    0.0

    References
    ----------
    .. [1] M. P. Naeini, G. F. Cooper and M. Hauskrecht (2015). Obtaining Well Calibrated Probabilities Using
       Bayesian Binning. AAAI.
    .. [2] C. Guo, G. Pleiss, Y. Sun and K. Q. Weinberger (2017). On Calibration of Modern Neural Networks.
       ICML.
    """
    weight = np.ones(len(proba)) if sample_weight is None else sample_weight
    right = (proba.argmax(axis=1) == y).astype(np.float64)
    return bin_confidence(proba.max(axis=1), right, weight)


def bin_confidence(confidence: FloatArray, right: FloatArray, weight: FloatArray) -> ReliabilityCurve:
    """The curve from each row's confidence and whether it was right (1.0 or 0.0)."""
    bins = confidence_bins(confidence)
    mass = np.bincount(bins, weight, N_BINS)
    filled = mass > 0.0
    means = [np.bincount(bins, weight * v, N_BINS)[filled] / mass[filled] for v in (confidence, right)]
    return ReliabilityCurve(means[0], means[1], mass[filled] / mass.sum())


def confidence_bins(confidence: FloatArray) -> IntArray:
    """The bin (lo, hi] of each confidence, from 0."""
    return np.clip(np.ceil(confidence * N_BINS).astype(np.intp) - 1, 0, N_BINS - 1)


def expected_calibration_error(
    confidence: FloatArray, right: FloatArray, weight: FloatArray, bins: IntArray, total: float = 1.0
) -> float:
    """Σ_b |Σ_{i in b} right_i − weight_i · confidence_i| / total.

    Parameters
    ----------
    right : array of shape (n,)
        How much of each row's weight was right.
    weight : array of shape (n,)
        Sums to `total`.
    bins : integer array of shape (n,)
        Rows whose excesses cancel; see `confidence_bins`.

    Examples
    --------
    >>> import numpy as np
    >>> confidence, right = np.array([0.7, 0.7, 0.9]), np.array([1.0, 0.0, 1.0])
    >>> round(expected_calibration_error(confidence, right, np.ones(3), np.array([0, 0, 1]), 3.0), 3)
    0.167
    """
    return float(np.abs(np.bincount(bins, right - weight * confidence)).sum()) / total


@dataclass(frozen=True, eq=False)
class HeldOutCalibration:
    """The stable predictor on held-out rows of one domain.

    Attributes
    ----------
    n_rows : int
    accuracy, log_loss : float
        After calibration.
    reliability, reliability_raw : ReliabilityCurve
        After and before calibration.
    """

    n_rows: int
    accuracy: float
    log_loss: float
    reliability: ReliabilityCurve
    reliability_raw: ReliabilityCurve

    @classmethod
    def of(
        cls, y: IntArray, raw: FloatArray, calibrated: FloatArray, weight: FloatArray
    ) -> HeldOutCalibration | None:
        """From log-probabilities before and after calibration; None without rows."""
        if not len(y):
            return None
        share = weight / weight.sum()
        return cls(
            n_rows=len(y),
            accuracy=float(share @ (calibrated.argmax(axis=1) == y)),
            log_loss=-float(share @ calibrated[np.arange(len(y)), y]),
            reliability=reliability_curve(np.exp(calibrated), y, sample_weight=weight),
            reliability_raw=reliability_curve(np.exp(raw), y, sample_weight=weight),
        )
