"""Arrays: numbers, dates and text, as declared."""

import io
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from sfboost.persistence.arrays import array_from_bytes, array_to_bytes, check_header
from sfboost.persistence.errors import SavedModelError

TYPES = st.one_of(
    hnp.boolean_dtypes(),
    hnp.integer_dtypes(endianness="?"),
    hnp.floating_dtypes(sizes=(16, 32, 64), endianness="?"),
    hnp.unicode_string_dtypes(min_len=1),
    hnp.datetime64_dtypes(),
)


@given(hnp.arrays(TYPES, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)), st.booleans())
def test_an_array_comes_back_bit_for_bit(array, fortran):
    array = np.asfortranarray(array) if fortran and array.ndim else array
    back = array_from_bytes(array_to_bytes(array))
    assert back.dtype == array.dtype
    assert back.shape == array.shape
    assert back.tobytes() == array.tobytes()
    assert back.flags.writeable
    if array.size:
        assert back.flags.f_contiguous == array.flags.f_contiguous


@pytest.mark.parametrize(
    "array", [np.array([object()]), np.zeros(2, "i4,f8"), np.zeros(1, np.void), np.zeros(1, np.longdouble)]
)
def test_other_types_are_refused_when_saving(array):
    with pytest.raises(SavedModelError, match="not numbers, dates or text"):
        array_to_bytes(array)


class Boom:
    def __reduce__(self):
        return (print, ("executed",))


def test_a_pickle_inside_is_refused_and_not_run(capsys):
    buffer = io.BytesIO()
    np.save(buffer, np.array([Boom()], dtype=object), allow_pickle=True)
    with pytest.raises(SavedModelError, match="type object"):
        array_from_bytes(buffer.getvalue())
    with pytest.raises(SavedModelError, match="no readable header"):
        array_from_bytes(pickle.dumps(Boom()))
    assert capsys.readouterr().out == ""


def header(text):
    text = text + b" " * (-(len(text) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


@pytest.mark.parametrize(
    ("descr", "shape", "size"),
    [
        ("'<f8'", "(1000000000000,)", 16),
        ("'<f8'", "(3,)", 16),
        ("'<f8'", "(-1, -2)", 16),
        ("'<U0'", "(1000000000000,)", 0),
        ("'|V0'", "(1000000000000,)", 0),
        ("'|O'", "(2,)", 16),
        ("[('a', '|O')]", "(2,)", 16),
        ("('<f8', (2,))", "(1,)", 16),
    ],
)
def test_a_header_that_lies_is_refused_before_any_memory_is_taken(descr, shape, size):
    text = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}".encode()
    with pytest.raises(SavedModelError):
        array_from_bytes(header(text) + bytes(size))


def test_objects_are_refused_where_any_other_type_may_be():
    with pytest.raises(SavedModelError, match="type object"):
        check_header(header(b"{'descr': '|O', 'fortran_order': False, 'shape': (2,), }") + bytes(16))


@given(st.binary(max_size=100))
def test_a_header_of_random_bytes_is_an_error_and_nothing_worse(content):
    for data in (content, header(content)):
        with pytest.raises(SavedModelError):
            array_from_bytes(data)
