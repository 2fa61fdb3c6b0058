"""From objects to a tree of JSON and parts."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from sfboost.persistence.arrays import array_to_bytes
from sfboost.persistence.errors import SavedModelError
from sfboost.persistence.foreign import dump_foreign
from sfboost.persistence.objects import state_of
from sfboost.persistence.registry import TYPES, name_of
from sfboost.persistence.tensors import Tensors, dtype_name, tensors_to_bytes

_DEEPEST = 100
_PLAIN = (type(None), bool, int, str)


class ModelEncoder:
    """Turns objects into JSON, collecting arrays and foreign parts on the way.

    What is not plain JSON is a dict with one key that says what it is.

    Parameters
    ----------
    trusted : names of types beyond the default list that may go through skops

    Attributes
    ----------
    parts : dict of name to bytes
    libraries : set of str
        Libraries, beside ours and numpy, whose types are inside.

    Examples
    --------
    >>> ModelEncoder().encode((1, float("inf")))
    {'tuple': [1, {'float': 'inf'}]}
    """

    def __init__(self, trusted: Collection[str] = ()) -> None:
        self.trusted = tuple(trusted)
        self.parts: dict[str, bytes] = {}
        self.libraries: set[str] = set()

    def encode(self, value: Any, where: str = "model", depth: int = 0) -> Any:
        """JSON of `value`; `where` names it in errors."""
        if depth > _DEEPEST:
            raise SavedModelError(f"{where} is nested more than {_DEEPEST} deep, or holds itself")
        kind, inner = type(value), depth + 1
        if kind in _PLAIN:
            return value
        if kind is float:
            return value if math.isfinite(value) else {"float": repr(value)}
        if kind in (list, tuple):
            items = [self.encode(item, f"{where}[{i}]", inner) for i, item in enumerate(value)]
            return items if kind is list else {"tuple": items}
        if kind is dict:
            pairs = value.items()
            return {
                "dict": [
                    [self.encode(k, f"a key of {where}", inner), self.encode(v, f"{where}[{k!r}]", inner)]
                    for k, v in pairs
                ]
            }
        if kind is slice:
            return {
                "slice": [self.encode(end, where, inner) for end in (value.start, value.stop, value.step)]
            }
        return self._encode_numpy(value, where, inner)

    def _encode_numpy(self, value: Any, where: str, depth: int) -> Any:
        if _package(value) == "pandas" and hasattr(value, "to_numpy"):
            value = value.to_numpy()  # a selection such as X.columns[:3]
        if type(value) in (np.ndarray, np.memmap):
            if value.dtype == object:
                items = self.encode(value.ravel().tolist(), where, depth)
                return {"objects": items, "shape": list(value.shape)}
            return {"array": self._add_array(value, where)}
        if isinstance(value, np.generic):
            return {"scalar": self._add_array(np.asarray(value), where)}
        if isinstance(value, np.dtype) and value.names is None:
            return {"dtype": value.str}
        if isinstance(value, type) and issubclass(value, np.generic):
            return {"number": np.dtype(value).str}
        return self._encode_object(value, where, depth)

    def _encode_object(self, value: Any, where: str, depth: int) -> Any:
        name = name_of(type(value))
        if name is not None:
            if TYPES[name].startswith("sklearn."):
                self.libraries.add("scikit-learn")
            try:
                state = state_of(value)
            except SavedModelError as error:
                raise SavedModelError(f"{where}: {error}") from None
            return {
                "object": name,
                "state": {k: self.encode(v, f"{where}.{k}", depth) for k, v in state.items()},
            }
        root = _package(value)
        if root == "torch" or isinstance(value, Tensors):
            self.libraries |= {"torch", "safetensors"}
            if isinstance(value, Tensors):
                return {"tensors": self._add_part("safetensors", tensors_to_bytes(value))}
            return {"torch": dtype_name(value, where)}
        if isinstance(value, BaseEstimator) or root in ("sklearn", "numpy"):
            self.libraries |= {"scikit-learn", "skops"}
            return {"skops": self._add_part("skops", dump_foreign(value, self.trusted, where))}
        if callable(value):
            raise SavedModelError(f"{where} is a function, and a file holds no code: name columns instead")
        raise SavedModelError(
            f"{where} is a {type(value).__module__}.{type(value).__qualname__}, which cannot be saved "
            "safely: a file holds numbers, text, and estimators of sfboost and scikit-learn"
        )

    def _add_array(self, array: Any, where: str) -> str:
        try:
            return self._add_part("npy", array_to_bytes(array))
        except SavedModelError as error:
            raise SavedModelError(f"{where}: {error}") from None

    def _add_part(self, ending: str, content: bytes) -> str:
        name = f"parts/{len(self.parts)}.{ending}"
        self.parts[name] = content
        return name


def _package(value: Any) -> str:
    return type(value).__module__.partition(".")[0]
