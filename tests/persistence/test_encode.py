"""Trees: what is encoded is decoded to the same, and what is not in the list means nothing."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfboost.persistence.decode import Decoder
from sfboost.persistence.encode import ModelEncoder
from sfboost.persistence.errors import SavedModelError

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
    back = again(value)
    assert type(back) is type(value)
    assert back == value


def test_an_array_of_objects_comes_back():
    array = np.array([["a", None], [float("inf"), 3]], dtype=object)
    array[1, 1] = [1, 2]
    back = again(array)
    assert back.dtype == object
    assert back.tolist() == array.tolist()


def test_equal_arrays_do_not_share_memory_afterwards():
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


@pytest.mark.parametrize(
    "tree",
    [
        {"object": "os.system", "state": {}},
        {"object": "sklearn.tree.DecisionTreeClassifier", "state": {}},
        {"object": ["Temperature"], "state": {}},
        {"object": "Temperature"},
        {"array": "parts/0.npy"},
        {"array": "../parts/0.npy"},
        {"array": ["parts/0.npy"]},
        {"eval": "1"},
        {},
        {"tuple": 3},
        {"torch": "load"},
        {"dtype": "<f8", "number": "<f8"},
    ],
    ids=str,
)
def test_a_tree_that_means_nothing_is_refused(tree):
    with pytest.raises(SavedModelError):
        Decoder({}).decode(tree)
