"""Stable Feature Boosting: adapt a classifier to a new domain without labels.

>>> import sfboost
>>> sfboost.StableFeatureBoosting(stable_features=["age", "sex"])
StableFeatureBoosting(stable_features=['age', 'sex'])
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sfboost.adaptation import (
        AdaptationRefused,
        AdaptationWarning,
        Explanation,
        Settings,
        Training,
    )
    from sfboost.boosting import (
        AdaptedClassifier,
        AdaptedDomains,
        DomainEvaluation,
        StableFeatureBoosting,
        adapt,
        adapted_scorer,
        learn_training,
    )
    from sfboost.choice import Reason
    from sfboost.columns import StableFeatureSelector
    from sfboost.persistence import SavedModelError, SavedModelWarning, load
    from sfboost.shift import Change, Shift

__version__ = "0.1.0"

__all__ = [
    "AdaptationRefused",
    "AdaptationWarning",
    "AdaptedClassifier",
    "AdaptedDomains",
    "Change",
    "DomainEvaluation",
    "Explanation",
    "Reason",
    "SavedModelError",
    "SavedModelWarning",
    "Settings",
    "Shift",
    "StableFeatureBoosting",
    "StableFeatureSelector",
    "Training",
    "__version__",
    "adapt",
    "adapted_scorer",
    "learn_training",
    "load",
]

_ROOMS = ("adaptation", "boosting", "choice", "shift", "persistence", "columns")


def __getattr__(name: str) -> Any:
    """Import on first use, so that the command can answer Ctrl-C while scikit-learn is still loading."""
    if name in __all__:
        rooms = (import_module(f"sfboost.{room}") for room in _ROOMS)
        found = next(getattr(room, name) for room in rooms if name in room.__all__)
        return globals().setdefault(name, found)
    if not name.startswith("_"):
        try:
            return import_module(f"sfboost.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"sfboost.{name}":
                raise
    raise AttributeError(f"module 'sfboost' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_ROOMS})
