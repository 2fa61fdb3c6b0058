"""The container and its arrays: sealed, stored, closed, and no larger than declared."""

import hashlib
import io
import pickle
import struct
import zipfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from sfboost.persistence.archive import (
    SavedModelError,
    array_from_bytes,
    array_to_bytes,
    check_header,
    pack,
    unpack,
)

NAMES = st.from_regex(r"parts/[0-9]{1,4}\.npy", fullmatch=True)


def seal(body):
    return body + hashlib.sha256(body).hexdigest().encode()


def zipped(members, **options):
    """A sealed zip of someone else's making."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", **options) as archive:
        archive.comment = b"0" * 64
        for name, content in members:
            archive.writestr(name, content)
    return seal(buffer.getvalue()[:-64])


@given(st.dictionaries(NAMES, st.binary(max_size=200), min_size=1, max_size=5))
def test_parts_come_back_in_order_and_equal_parts_give_equal_bytes(parts):
    data = pack(parts)
    assert list(unpack(data).items()) == list(parts.items())
    assert data == pack(dict(parts))
    with zipfile.ZipFile(io.BytesIO(data)) as archive:  # any zip tool can look inside
        assert archive.testzip() is None


def test_a_file_that_is_cut_or_changed_anywhere_is_refused():
    data = pack({"model.json": b"{}", "parts/0.npy": bytes(range(256))})
    for place in range(len(data)):
        changed = bytearray(data)
        changed[place] ^= 1 << (place % 8)
        for wrong in (data[:place], bytes(changed)):
            with pytest.raises(SavedModelError):
                unpack(wrong)
    for wrong in (b"\0" + data, data + b"\0", data + data):
        with pytest.raises(SavedModelError):
            unpack(wrong)


@pytest.mark.parametrize(
    "name", ["../model.json", "/etc/passwd", "parts/../model.json", "a\\b.npy", "C:x.npy", "model.json/"]
)
def test_names_that_lead_elsewhere_are_refused(name):
    with pytest.raises(SavedModelError, match="which no saved model has"):
        unpack(zipped([(name, b"x")]))


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_parts_of_one_name_are_refused():
    with pytest.raises(SavedModelError, match="same name"):
        unpack(zipped([("model.json", b"1"), ("model.json", b"2")]))


def test_a_bomb_is_refused_before_it_is_unpacked():
    data = zipped([("parts/0.npy", bytes(50_000_000))], compression=zipfile.ZIP_DEFLATED)
    assert len(data) < 100_000
    with pytest.raises(SavedModelError, match="compressed"):
        unpack(data)


def test_a_list_of_members_that_lies_is_refused():
    whole = bytes(zipped([("parts/0.npy", b"x" * 10)])[:-64])
    entry, end = whole.rindex(b"PK\x01\x02"), whole.rindex(b"PK\x05\x06")
    larger, encrypted, tail = bytearray(whole), bytearray(whole), bytearray(whole[end:])
    struct.pack_into("<II", larger, entry + 20, 2**31, 2**31)  # compressed and plain size
    encrypted[entry + 8] |= 1
    struct.pack_into("<I", tail, 12, 100_001 * (end - entry))
    many = whole[:entry] + whole[entry:end] * 100_001 + bytes(tail)
    for body, said in ((larger, "larger than"), (encrypted, "encrypted"), (many, "more than 100000 parts")):
        with pytest.raises(SavedModelError, match=said):
            unpack(seal(bytes(body)))


# -- arrays -----------------------------------------------------------------------------------------------

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
    assert (back.dtype, back.shape, back.tobytes()) == (array.dtype, array.shape, array.tobytes())
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
    data = header(f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}".encode()) + bytes(size)
    with pytest.raises(SavedModelError):
        array_from_bytes(data)
    if descr != "('<f8', (2,))":  # a part of skops may have types with fields
        with pytest.raises(SavedModelError):
            check_header(data)
