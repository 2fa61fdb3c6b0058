"""Between objects and a tree of JSON and parts.

What is not plain JSON is a dict with one key that says what it is. On the way back every name is looked up
in a closed list.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from reprlib import repr as shortened
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from sfboost.persistence.archive import (
    SavedModelError,
    Tensors,
    array_from_bytes,
    array_to_bytes,
    check_keys,
    tensors_from_bytes,
    tensors_to_bytes,
)
from sfboost.persistence.foreign import dump_foreign, load_foreign
from sfboost.persistence.registry import TYPES, make_object, name_of, state_of, type_of

_DEEPEST = 100
_PLAIN = (type(None), bool, int, str)
_LONGEST_DTYPE = 32  # a list of fields by commas would be parsed one by one


class ModelEncoder:
    """Turns objects into JSON, collecting arrays and foreign parts on the way.

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
            keys = [self.encode(key, f"a key of {where}", inner) for key in value]
            values = [self.encode(item, f"{where}[{key!r}]", inner) for key, item in value.items()]
            return {"dict": [list(pair) for pair in zip(keys, values, strict=True)]}
        if kind is slice:
            ends = (value.start, value.stop, value.step)
            return {"slice": [self.encode(end, where, inner) for end in ends]}
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
            state = state_of(value, where)
            return {
                "object": name,
                "state": {k: self.encode(v, f"{where}.{k}", depth) for k, v in state.items()},
            }
        if isinstance(value, Tensors):
            self.libraries |= {"torch", "safetensors"}
            return {"tensors": self._add_part("safetensors", tensors_to_bytes(value))}
        root = _package(value)
        if root == "torch":
            raise SavedModelError(
                f"{where} is a {type(value).__qualname__}: networks and penalties are saved by name only. "
                "Save the state_dict of your own module with safetensors, and build the model around it again"
            )
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
        return self._add_part("npy", array_to_bytes(array, where))

    def _add_part(self, ending: str, content: bytes) -> str:
        name = f"parts/{len(self.parts)}.{ending}"
        self.parts[name] = content
        return name


class Decoder:
    """Turns what an `ModelEncoder` made back into objects.

    Each part is used once, so that a small file cannot fill the memory.

    Parameters
    ----------
    parts : mapping of name to bytes
    trusted : names of types beyond the default list that may be made by skops

    Examples
    --------
    >>> Decoder({}).decode({"tuple": [1, {"float": "inf"}]})
    (1, inf)
    """

    def __init__(self, parts: Mapping[str, bytes], trusted: Collection[str] = ()) -> None:
        self.unused = dict(parts)
        self.trusted = tuple(trusted)
        self._readers: dict[str, Callable[[Any], Any]] = {
            "float": float,
            "tuple": lambda items: tuple(self._list(items)),
            "dict": self._dict,
            "slice": lambda ends: slice(*self._list(ends)),
            "array": self._array,
            "scalar": lambda part: self._array(part)[()],
            "dtype": _dtype,
            "number": lambda name: _dtype(name).type,
            "skops": lambda part: load_foreign(self._part(part, ".skops"), self.trusted),
            "tensors": lambda part: tensors_from_bytes(self._part(part, ".safetensors")),
        }

    def decode(self, tree: Any) -> Any:
        """The object that a tree stands for."""
        if isinstance(tree, list):
            return self._list(tree)
        if not isinstance(tree, dict):
            return tree
        if set(tree) == {"object", "state"}:
            cls = type_of(tree["object"])
            return make_object(cls, {name: self.decode(value) for name, value in tree["state"].items()})
        if set(tree) == {"objects", "shape"}:
            return self._objects(self._list(tree["objects"]), tree["shape"])
        if len(tree) == 1:
            [(kind, content)] = tree.items()
            if kind in self._readers:
                return self._readers[kind](content)
        raise SavedModelError(f"it holds an entry with the keys {shortened(list(tree))}, which means nothing")

    def _list(self, items: Any) -> list[Any]:
        if not isinstance(items, list):
            raise SavedModelError(f"it has a {type(items).__name__} where a list should be")
        return [self.decode(item) for item in items]

    def _dict(self, pairs: Any) -> dict[Any, Any]:
        keys = [self.decode(key) for key, _ in pairs]
        check_keys(keys)
        return {key: self.decode(value) for key, (_, value) in zip(keys, pairs, strict=True)}

    def _part(self, name: Any, ending: str) -> bytes:
        if not isinstance(name, str) or name not in self.unused or not name.endswith(ending):
            raise SavedModelError(f"it names a part {shortened(name)} that it does not have, or twice")
        return self.unused.pop(name)

    def _array(self, name: Any) -> Any:
        return array_from_bytes(self._part(name, ".npy"))

    @staticmethod
    def _objects(items: list[Any], shape: Any) -> Any:
        array = np.empty(len(items), dtype=object)
        for i, item in enumerate(items):  # at once, numpy would look into lists
            array[i] = item
        return array.reshape([int(n) for n in shape])


def _package(value: Any) -> str:
    return type(value).__module__.partition(".")[0]


def _dtype(name: Any) -> np.dtype[Any]:
    if not isinstance(name, str) or len(name) > _LONGEST_DTYPE:
        raise SavedModelError(f"it holds numbers of type {shortened(name)}")
    return np.dtype(name)
