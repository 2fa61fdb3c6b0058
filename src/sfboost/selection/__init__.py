"""Choosing stable columns by their invariance over training domains.

Layer 4: a scikit-learn transformer around score tests of multinomial regressions.
"""

from sfboost.selection.invariance import Invariance
from sfboost.selection.result import ColumnVerdict, Selection
from sfboost.selection.selector import StableFeatureSelector

__all__ = ["ColumnVerdict", "Invariance", "Selection", "StableFeatureSelector"]
