"""Calibration of class probabilities: temperature scaling, ECE, reliability curves.

Layer 1.
"""

from sfboost.calibration.reliability import HeldOutCalibration, ReliabilityCurve, reliability_curve
from sfboost.calibration.temperature import Temperature, fit_temperature

__all__ = [
    "HeldOutCalibration",
    "ReliabilityCurve",
    "Temperature",
    "fit_temperature",
    "reliability_curve",
]
