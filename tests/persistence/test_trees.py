"""Objects as trees: what is encoded is decoded to the same, and what is not in the list means nothing."""

import importlib
import json
import math
import pkgutil
from dataclasses import is_dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import BaseEstimator

import sfboost
from sfboost import SavedModelError
from sfboost.persistence.registry import KINDS, TYPES, name_of, type_of
from sfboost.persistence.trees import Decoder, ModelEncoder

PLAIN = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
TREES = st.recursive(
    PLAIN,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=5) | st.integers(), inner, max_size=3)
    ),
    max_leaves=10,
)


def again(value):
    encoder = ModelEncoder()
    tree = json.loads(json.dumps(encoder.encode(value), allow_nan=False))
    return Decoder(encoder.parts).decode(tree)


def same(a, b):
    if isinstance(a, float) and math.isnan(a):
        return isinstance(b, float) and math.isnan(b)
    if isinstance(a, list | tuple):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    return type(a) is type(b) and a == b


@given(TREES)
def test_a_tree_comes_back_the_same(value):
    assert same(again(value), value)


@pytest.mark.parametrize(
    "value",
    [
        slice(1, None, 2),
        np.float64(0.1),
        np.int32(3),
        np.bool_(True),
        np.str_("ß"),
        np.dtype("f4"),
        np.dtype(object),
        np.float32,
    ],
    ids=repr,
)
def test_numpy_and_slices_come_back_with_their_type(value):
    assert same(again(value), value)


def test_an_array_of_objects_comes_back_and_equal_arrays_do_not_share_memory():
    array = np.array([["a", None], [float("inf"), 3]], dtype=object)
    array[1, 1] = [1, 2]
    back = again(array)
    assert (back.dtype, back.tolist()) == (object, array.tolist())
    one, two = again([np.ones(3), np.ones(3)])
    assert not np.shares_memory(one, two)


def test_columns_of_a_table_come_back_as_their_names():
    pd = pytest.importorskip("pandas", reason="needs the app extra")
    assert list(again(pd.DataFrame(columns=["age", "bmi"]).columns)) == ["age", "bmi"]


@pytest.mark.parametrize(
    "value",
    [{1, 2}, b"bytes", object(), len, 1j, range(3), np.zeros(1, "i4,f8")],
    ids=lambda value: type(value).__name__,
)
def test_what_has_no_place_is_refused_by_name(value):
    with pytest.raises(SavedModelError, match=r"here\["):
        ModelEncoder().encode([value], "here")


def test_what_holds_itself_is_refused():
    loop = []
    loop.append(loop)
    with pytest.raises(SavedModelError, match="holds itself"):
        ModelEncoder().encode(loop)


# -- the closed list --------------------------------------------------------------------------------------

NEEDS_TORCH = {name for name, module in TYPES.items() if module.startswith("sfboost.torch")}


@pytest.mark.parametrize("name", sorted(TYPES))
def test_every_name_leads_to_its_type_and_back(name):
    if name in NEEDS_TORCH:
        pytest.importorskip("torch", reason="needs the torch extra")
    assert name_of(type_of(name)) == name
    assert name not in KINDS or hasattr(type_of(name), "save")


def test_the_list_is_in_order():
    assert list(TYPES) == sorted(TYPES, key=str.lower)
    assert set(KINDS) <= set(TYPES)


def test_a_class_that_only_has_the_name_is_another_class():
    assert name_of(type("Temperature", (), {"__module__": "sfboost.elsewhere"})) is None


def test_every_head_and_everything_an_adaptation_holds_is_listed():
    """A new result type that is not listed would make saving fail for users, not for us."""
    missing = set()
    for room in ("adaptation", "heads", "calibration"):
        for module in pkgutil.iter_modules([f"{sfboost.__path__[0]}/{room}"]):
            found = vars(importlib.import_module(f"sfboost.{room}.{module.name}"))
            for name, value in found.items():
                ours = isinstance(value, type) and value.__module__ == f"sfboost.{room}.{module.name}"
                kept = ours and (is_dataclass(value) or issubclass(value, BaseEstimator))
                if kept and not name.startswith("_") and name_of(value) is None:
                    missing.add(name)
    assert missing <= NEVER_KEPT, missing - NEVER_KEPT


#: Never part of a fitted model.
NEVER_KEPT = {
    *("Amount", "Coordinates", "Explanation", "Problem", "SoftLabelMixin"),
    *("StressTable", "Whitening", "Yardstick"),
}
