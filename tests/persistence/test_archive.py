"""The container: sealed, stored, closed; written whole or not at all."""

import hashlib
import io
import struct
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfboost.persistence.archive import pack, unpack
from sfboost.persistence.errors import SavedModelError

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


def test_any_zip_tool_can_look_inside():
    with zipfile.ZipFile(io.BytesIO(pack({"model.json": b"{}"}))) as archive:
        assert archive.testzip() is None
        assert archive.namelist() == ["model.json"]


def test_a_file_cut_anywhere_is_refused():
    data = pack({"model.json": b"{}", "parts/0.npy": bytes(range(256))})
    for length in range(len(data)):
        with pytest.raises(SavedModelError):
            unpack(data[:length])


def test_a_bit_changed_anywhere_is_refused():
    data = pack({"model.json": b"{}", "parts/0.npy": bytes(range(256))})
    for place in range(len(data)):
        changed = bytearray(data)
        changed[place] ^= 1 << (place % 8)
        with pytest.raises(SavedModelError):
            unpack(bytes(changed))


def test_bytes_before_or_after_are_refused():
    data = pack({"model.json": b"{}"})
    for changed in (b"\0" + data, data + b"\0", data + data):
        with pytest.raises(SavedModelError):
            unpack(changed)


@given(st.binary(max_size=300))
def test_random_bytes_are_refused(data):
    for changed in (data, b"PK\x03\x04" + data):
        with pytest.raises(SavedModelError):
            unpack(changed)


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


def test_parts_that_claim_more_than_the_file_are_refused():
    body = bytearray(zipped([("parts/0.npy", b"x" * 10)])[:-64])
    entry = body.rindex(b"PK\x01\x02")
    struct.pack_into("<II", body, entry + 20, 2**31, 2**31)  # compressed and plain size
    with pytest.raises(SavedModelError, match="larger than the file"):
        unpack(seal(bytes(body)))


def test_an_encrypted_part_is_refused():
    body = bytearray(zipped([("parts/0.npy", b"x" * 10)])[:-64])
    body[body.rindex(b"PK\x01\x02") + 8] |= 1
    with pytest.raises(SavedModelError, match="encrypted"):
        unpack(seal(bytes(body)))


def test_a_long_list_of_members_is_refused_before_it_is_read():
    body = bytearray(zipped([("parts/0.npy", b"x" * 10)])[:-64])
    entry, end = body.rindex(b"PK\x01\x02"), body.rindex(b"PK\x05\x06")
    one, tail = bytes(body[entry:end]), body[end:]
    struct.pack_into("<I", tail, 12, 100_001 * len(one))
    with pytest.raises(SavedModelError, match="more than 100000 parts"):
        unpack(seal(bytes(body[:entry]) + one * 100_001 + bytes(tail)))
