"""From a tree of JSON and parts back to objects. Every name is looked up in a closed list."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from reprlib import repr as shortened
from typing import Any

import numpy as np

from sfboost.persistence.arrays import array_from_bytes
from sfboost.persistence.errors import SavedModelError
from sfboost.persistence.foreign import load_foreign
from sfboost.persistence.objects import make_object
from sfboost.persistence.registry import type_of
from sfboost.persistence.tensors import dtype_of, tensors_from_bytes
from sfboost.persistence.trees import check_keys

_FLOATS = {"nan": float("nan"), "inf": float("inf"), "-inf": float("-inf")}

_LONGEST_DTYPE = 32  # a list of fields by commas would be parsed one by one


class Decoder:
    """Turns what a `ModelEncoder` made back into objects.

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
            "float": lambda name: _FLOATS[name],
            "tuple": lambda items: tuple(self._list(items)),
            "dict": self._dict,
            "slice": lambda ends: slice(*self._list(ends)),
            "array": self._array,
            "scalar": lambda part: self._array(part)[()],
            "dtype": _dtype,
            "number": lambda name: _dtype(name).type,
            "skops": lambda part: load_foreign(self._part(part, ".skops"), self.trusted),
            "tensors": lambda part: tensors_from_bytes(self._part(part, ".safetensors")),
            "torch": dtype_of,
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


def _dtype(name: Any) -> np.dtype[Any]:
    if not isinstance(name, str) or len(name) > _LONGEST_DTYPE:
        raise SavedModelError(f"it holds numbers of type {shortened(name)}")
    return np.dtype(name)
