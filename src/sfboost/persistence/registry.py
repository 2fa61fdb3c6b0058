"""The closed list of types that a file may name. Nothing else is ever looked up by a name from a file.

A type goes by its own name. It is imported when it is met, so that this room can stay below the ones whose
results it keeps; `state_of` and `make_object` go between an object of it and its attributes by name.
"""

from __future__ import annotations

import inspect
from dataclasses import fields, is_dataclass
from importlib import import_module
from reprlib import repr as shortened
from typing import Any

from sklearn.utils.metadata_routing import MetadataRequest

from sfboost.persistence.archive import SavedModelError

#: What a file may hold as a whole.
KINDS = ("Adaptation", "AdaptedClassifier", "SFBClassifier", "StableFeatureBoosting")

#: Where each type lives.
TYPES: dict[str, str] = {
    "AdamLogisticRegression": "sfboost.heads",
    "Adaptation": "sfboost.adaptation",
    "AdaptedClassifier": "sfboost.boosting",
    "BestAnswer": "sfboost.choice",
    "BlindDomain": "sfboost.shift.reference",
    "BSpline": "scipy.interpolate",
    "Change": "sfboost.shift",
    "Choice": "sfboost.choice",
    "ClassShares": "sfboost.choice.shares",
    "Column": "sfboost.frames",
    "Columns": "sfboost.boosting",
    "ColumnTransformer": "sklearn.compose",
    "ColumnVerdict": "sfboost.columns.selector",
    "CrossFit": "sfboost.adaptation.regularisation",
    "Decision": "sfboost.adaptation",
    "Directions": "sfboost.boosting.components",
    "DomainLeak": "sfboost.diagnostics.complementarity",
    "DomainScale": "sfboost.boosting.domain_scale",
    "DomainSummary": "sfboost.adaptation",
    "Encoder": "sfboost.frames",
    "FeatureChange": "sfboost.shift",
    "FeatureModel": "sfboost.choice.realigning",
    "FrozenEstimator": "sklearn.frozen",
    "GivenProbabilities": "sfboost.boosting",
    "HeldOutCalibration": "sfboost.calibration",
    "Invariance": "sfboost.columns.invariance",
    "LinearFit": "sfboost.heads.linear",
    "LogisticRegression": "sklearn.linear_model",
    "make_column_selector": "sklearn.compose",
    "MeaningCoordinates": "sfboost.shift.coordinates",
    "MissingIndicator": "sklearn.impute",
    "Mixture": "sfboost.choice.mixture",
    "Moments": "sfboost.shift.moments",
    "OneHotEncoder": "sklearn.preprocessing",
    "Pipeline": "sklearn.pipeline",
    "Plan": "sfboost.torch.plan",
    "PlayedComponents": "sfboost.boosting.components",
    "PooledClassifier": "sfboost.boosting.validation",
    "PooledPredictor": "sfboost.choice.predictors",
    "PredictionSets": "sfboost.diagnostics.performance",
    "Preference": "sfboost.torch.embedding",
    "PseudoLabelStatistics": "sfboost.marginal",
    "RealignedPredictor": "sfboost.choice.predictors",
    "Realignment": "sfboost.choice.realigning",
    "Reason": "sfboost.choice",
    "RecalibratedPredictor": "sfboost.choice.recalibrating",
    "Recalibration": "sfboost.diagnostics.recalibration",
    "Reference": "sfboost.shift",
    "RelearnedPredictor": "sfboost.choice.predictors",
    "ReliabilityCurve": "sfboost.calibration",
    "Scaling": "sfboost.torch.rows",
    "Selection": "sfboost.columns.selector",
    "Settings": "sfboost.adaptation.settings",
    "SFBClassifier": "sfboost.torch",
    "Shift": "sfboost.shift",
    "SimpleImputer": "sklearn.impute",
    "SoftLabelClassifier": "sfboost.heads",
    "SoftLogisticRegression": "sfboost.heads",
    "SourceRecord": "sfboost.choice",
    "SplineTransformer": "sklearn.preprocessing",
    "StableEvidence": "sfboost.adaptation",
    "StableFeatureBoosting": "sfboost.boosting",
    "StableFeatureSelector": "sfboost.columns",
    "StablePredictor": "sfboost.choice.predictors",
    "Standardizer": "sfboost.adaptation.standardize",
    "StandardScaler": "sklearn.preprocessing",
    "Temperature": "sfboost.calibration",
    "Training": "sfboost.adaptation",
    "UnstableModel": "sfboost.adaptation.fitting",
}

_ROUTING = "_metadata_request"
# Made by their constructor, which checks what it gets: compiled code relies on it.
_CONSTRUCTED = {"BSpline": ("t", "c", "k", "extrapolate")}


def type_of(name: Any) -> type:
    """The class that a name in a file stands for.

    Examples
    --------
    >>> type_of("Temperature").__name__
    'Temperature'
    """
    if not isinstance(name, str) or name not in TYPES:
        raise SavedModelError(
            f"it holds a {shortened(name)}, which is no type that this version of sfboost knows"
        )
    found = getattr(import_module(TYPES[name]), name)
    assert isinstance(found, type)
    return found


def name_of(cls: type) -> str | None:
    """The name of a class in files, or None if it has none. A subclass is another class.

    Examples
    --------
    >>> name_of(dict) is None
    True
    """
    name = cls.__name__
    # Of another package it is another class; not to look saves importing torch for nothing.
    known = name in TYPES and TYPES[name].partition(".")[0] == cls.__module__.partition(".")[0]
    return name if known and type_of(name) is cls else None


def state_of(value: Any, where: str) -> dict[str, Any]:
    """Attributes that say all about `value`, `where` in errors. A class may say it in `_saved_state`."""
    cls = type(value)  # not the value: a FrozenEstimator passes on what it is asked
    if hasattr(cls, "_saved_state"):
        return dict(value._saved_state())
    if cls.__name__ in _CONSTRUCTED:
        return {name: getattr(value, name) for name in _CONSTRUCTED[cls.__name__]}
    if is_dataclass(cls):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    state = dict(vars(value))
    if _ROUTING in state:
        # scikit-learn's object points back at its owner; what the user asked for is a plain dict.
        state[_ROUTING] = state[_ROUTING]._serialize()
    _refuse_cache(state, where)
    return state


def make_object(cls: type, state: dict[str, Any]) -> Any:
    """An object of a registered class with these attributes; parameters that the file lacks get defaults."""
    if hasattr(cls, "_from_saved_state"):
        return cls._from_saved_state(state)
    if is_dataclass(cls) or cls.__name__ in _CONSTRUCTED:
        return cls(**state)
    _refuse_cache(state, f"a {cls.__name__}")
    value: Any = object.__new__(cls)
    parameters = inspect.signature(cls).parameters.values()
    defaults = {p.name: p.default for p in parameters if p.default is not inspect.Parameter.empty}
    routing = state.pop(_ROUTING, None)
    vars(value).update(state | {name: given for name, given in defaults.items() if name not in state})
    if routing is not None:
        request = MetadataRequest(owner=value)
        for method, asked in routing.items():
            for name, alias in asked.items():
                getattr(request, method).add_request(param=name, alias=alias)
        vars(value)[_ROUTING] = request
    return value


def _refuse_cache(state: dict[str, Any], where: str) -> None:
    """Refuse a folder of cached results: scikit-learn would unpickle what lies there."""
    if state.get("memory") is not None:
        raise SavedModelError(
            f"{where} has memory={shortened(state['memory'])}, a cache of pickles: set memory=None"
        )
