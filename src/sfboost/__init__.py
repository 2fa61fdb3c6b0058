"""Stable Feature Boosting: adapt a classifier to a new domain without labels.

>>> import sfboost
>>> sfboost.__version__
'0.1.0'
"""

from sfboost.adaptation import Adaptation, AdaptationRefused, AdaptationWarning, Explanation, adapt
from sfboost.boosting import AdaptedClassifier, DomainEvaluation, StableFeatureBoosting, adapted_scorer
from sfboost.persistence import SavedModelError, SavedModelWarning, load
from sfboost.selection import StableFeatureSelector

__version__ = "0.1.0"

__all__ = [
    "Adaptation",
    "AdaptationRefused",
    "AdaptationWarning",
    "AdaptedClassifier",
    "DomainEvaluation",
    "Explanation",
    "SavedModelError",
    "SavedModelWarning",
    "StableFeatureBoosting",
    "StableFeatureSelector",
    "__version__",
    "adapt",
    "adapted_scorer",
    "load",
]
