"""Between an object of a registered type and its attributes by name."""

from __future__ import annotations

import inspect
from dataclasses import fields, is_dataclass
from reprlib import repr as shortened
from typing import Any

from sklearn.utils.metadata_routing import MetadataRequest

from sfboost.persistence.errors import SavedModelError

_ROUTING = "_metadata_request"
# Made by their constructor, which checks what it gets: compiled code relies on it.
_CONSTRUCTED = {"BSpline": ("t", "c", "k", "extrapolate")}


def state_of(value: Any) -> dict[str, Any]:
    """Attributes that say all about `value`. A class may say it itself, in `_saved_state`."""
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
    check_state(cls, state)
    return state


def make_object(cls: type, state: dict[str, Any]) -> Any:
    """An object of a registered class with these attributes. Parameters that the file lacks get defaults."""
    if hasattr(cls, "_from_saved_state"):
        return cls._from_saved_state(state)
    if is_dataclass(cls) or cls.__name__ in _CONSTRUCTED:
        return cls(**state)
    check_state(cls, state)
    value: Any = object.__new__(cls)
    parameters = inspect.signature(cls).parameters.values()
    defaults = {p.name: p.default for p in parameters if p.default is not inspect.Parameter.empty}
    routing = state.pop(_ROUTING, None)
    vars(value).update(state)
    for name, default in defaults.items():
        vars(value).setdefault(name, default)
    if routing is not None:
        request = MetadataRequest(owner=value)
        for method, asked in routing.items():
            for name, alias in asked.items():
                getattr(request, method).add_request(param=name, alias=alias)
        vars(value)[_ROUTING] = request
    return value


def check_state(cls: type, state: dict[str, Any]) -> None:
    """Refuse a folder of cached results: scikit-learn would unpickle what lies there."""
    if state.get("memory") is not None:
        raise SavedModelError(
            f"a {cls.__name__} has memory={shortened(state['memory'])}, a cache of pickles: set memory=None"
        )
