"""Which columns are stable: a ranked proposal by their invariance over training domains.

Layer 4: a scikit-learn transformer around score tests of multinomial regressions.
"""

from sfboost.columns.invariance import Invariance
from sfboost.columns.selector import ColumnVerdict, Selection, StableFeatureSelector

__all__ = ["ColumnVerdict", "Invariance", "Selection", "StableFeatureSelector"]
