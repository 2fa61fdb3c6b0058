"""Stable Feature Boosting: adapt a classifier to a new domain without labels.

>>> import sfboost
>>> sfboost.__version__
'0.1.0'
"""

from sfboost.adaptation import Adaptation, AdaptationRefused, AdaptationWarning, Explanation, adapt

__version__ = "0.1.0"

__all__ = [
    "Adaptation",
    "AdaptationRefused",
    "AdaptationWarning",
    "Explanation",
    "__version__",
    "adapt",
]
