"""The bytes of a saved model: a sealed zip, and the parts in it, each checked before anything is made of it.

A file is a zip without compression whose comment is the SHA-256 of all the bytes before it (the seal). The
seal tells accidents: a cut or a changed byte, wherever it is. It is no signature: whoever writes a file can
seal it, so every other check assumes a hostile writer. Parts are JSON, arrays as .npy, and weights of
networks as safetensors.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import re
import zipfile
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from reprlib import repr as shortened
from typing import Any, Literal

import numpy as np
import numpy.typing as npt


class SavedModelError(ValueError):
    """A model that cannot be saved safely, or a file that is not to be loaded."""


class SavedModelWarning(UserWarning):
    """A file was loaded, and something about it should be known."""


# -- the container ------------------------------------------------------------------------------------

#: How a file begins.
HEAD = b"PK\x03\x04"
_SEAL = 64  # hexadecimal digits of SHA-256
_NAME = re.compile(r"[a-z]+(/[0-9]+)?\.[a-z]+")
_ENTRY = b"PK\x01\x02"  # begins each entry of the list of members
_MOST_PARTS = 100_000


def pack(parts: Mapping[str, bytes]) -> bytes:
    """The bytes of a sealed archive; equal parts give equal bytes.

    Examples
    --------
    >>> unpack(pack({"model.json": b"{}"}))
    {'model.json': b'{}'}
    """
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        archive.comment = b"0" * _SEAL
        for name, content in parts.items():
            info = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
            info.create_system, info.external_attr = 3, 0o644 << 16  # the same on every system
            archive.writestr(info, content)
    body = buffer.getvalue()[:-_SEAL]
    return body + _seal(body)


def unpack(data: bytes) -> dict[str, bytes]:
    """The parts of a sealed archive; nothing is written to disk."""
    if not data.startswith(HEAD):
        raise SavedModelError("it does not begin like a saved model")
    if len(data) < _SEAL or data[-_SEAL:] != _seal(data[:-_SEAL]):
        raise SavedModelError(
            "its checksum is wrong: it was cut short or changed after saving, or sfboost did not write it"
        )
    return read_stored(data)


def _seal(body: bytes) -> bytes:
    return hashlib.sha256(body).hexdigest().encode("ascii")


def read_stored(data: bytes, names: re.Pattern[str] = _NAME) -> dict[str, bytes]:
    """Members of an uncompressed zip: stored bytes cannot swell beyond the length of the file."""
    if data.count(_ENTRY) > _MOST_PARTS:  # before an object is made of each
        raise SavedModelError(f"it has more than {_MOST_PARTS} parts")
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = archive.infolist()
        if len({member.filename for member in members}) < len(members):
            raise SavedModelError("two of its parts have the same name")
        for member in members:
            if not names.fullmatch(member.filename):
                raise SavedModelError(
                    f"it has a part named {shortened(member.filename)}, which no saved model has"
                )
            if member.compress_type != zipfile.ZIP_STORED or member.flag_bits & 0x1:
                raise SavedModelError(f"its part {member.filename} is compressed or encrypted")
        if sum(member.file_size for member in members) > len(data):
            raise SavedModelError("its parts claim to be larger than the file")
        return {member.filename: archive.read(member) for member in members}


# -- JSON ---------------------------------------------------------------------------------------------

# An empty list is 3 bytes in a file and 128 in memory, once read and once decoded. What is saved has about 12
# bytes for each list, object and key.
_FREE_MARKS = 1_000_000
_BYTES_EACH = 8
# Text is hashed with a secret of the process. Numbers are not, so all keys can share one hash, and n such
# keys take n² steps.
_MOST_KEYS = 1000


def to_json(tree: Any) -> bytes:
    """The bytes of a tree."""
    return json.dumps(tree, allow_nan=False, separators=(",", ":")).encode("ascii")


def from_json(data: bytes, name: str) -> Any:
    """The tree of JSON bytes, unless its lists, objects and keys would take far more memory than the bytes.

    Examples
    --------
    >>> from_json(b"[1, {}]", "model.json")
    [1, {}]
    """
    most = max(_FREE_MARKS, len(data) // _BYTES_EACH)
    if sum(data.count(mark) for mark in (b"[", b"{", b":")) > most:
        raise SavedModelError(f"its {name} has more than {most} lists, objects and keys in {len(data)} bytes")
    return json.loads(data)


def check_keys(keys: Iterable[Hashable]) -> None:
    """Refuse a dict or set of more than a thousand keys that are no text."""
    if sum(not isinstance(key, str) for key in keys) > _MOST_KEYS:
        raise SavedModelError(f"it has a dict or set of more than {_MOST_KEYS} keys that are no text")


# -- arrays: numbers, dates and text, never objects, and no byte more or less than declared -------------

_KINDS = frozenset("biufcUSmM")
_LARGEST_NUMBER = 16  # bytes; a long double means something else on the next machine
_LONGEST_HEADER = 4096


def array_to_bytes(array: npt.NDArray[Any], where: str = "an array") -> bytes:
    """The .npy bytes of an array; `where` names it in errors.

    Examples
    --------
    >>> array_from_bytes(array_to_bytes(np.array(["yes", "no"])))
    array(['yes', 'no'], dtype='<U3')
    """
    _check_dtype(array.dtype, where)
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, array, version=(1, 0), allow_pickle=False)
    return buffer.getvalue()


def array_from_bytes(data: bytes) -> npt.NDArray[Any]:
    """The array of .npy bytes."""
    dtype, shape, order, start = check_header(data)
    _check_dtype(dtype)
    if start == len(data):
        return np.empty(shape, dtype, order=order)
    return np.frombuffer(data, dtype, offset=start).reshape(shape, order=order).copy(order="K")


def check_header(data: bytes) -> tuple[np.dtype[Any], tuple[int, ...], Literal["C", "F"], int]:
    """Type, shape and order of .npy bytes, and where the values begin; refused unless they fill the rest.

    numpy would set aside whatever memory a header claims.
    """
    file = io.BytesIO(data)
    try:
        if np.lib.format.read_magic(file) != (1, 0):
            raise ValueError("format 1.0 is needed")
        shape, fortran, dtype = np.lib.format.read_array_header_1_0(file, max_header_size=_LONGEST_HEADER)
    except Exception as error:  # numpy tries several ways to read a header, each with its own errors
        raise SavedModelError(f"an array has no readable header ({error})") from None
    size = len(data) - file.tell()
    if dtype.hasobject or not dtype.itemsize:
        raise SavedModelError(f"an array has the type {dtype}")
    if min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize != size:
        raise SavedModelError(f"an array of shape {shape} and type {dtype} has {size} bytes")
    return dtype, shape, "F" if fortran else "C", file.tell()


def _check_dtype(dtype: np.dtype[Any], where: str = "an array") -> None:
    too_wide = dtype.kind in "fc" and dtype.itemsize > _LARGEST_NUMBER // (2 if dtype.kind == "f" else 1)
    if dtype.kind not in _KINDS or dtype.subdtype is not None or too_wide:
        raise SavedModelError(f"{where} of type {dtype} is not numbers, dates or text")


# -- weights of networks --------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Tensors:
    """Tensors by name, such as the state of a network."""

    tensors: dict[str, Any]


def tensors_to_bytes(value: Tensors) -> bytes:
    """Bytes by safetensors."""
    from safetensors.torch import save

    # Clones, since safetensors refuses tensors that share memory.
    return bytes(save({k: v.detach().cpu().contiguous().clone() for k, v in value.tensors.items()}))


def tensors_from_bytes(data: bytes) -> Tensors:
    """Tensors by name."""
    from safetensors import SafetensorError
    from safetensors.torch import load

    try:
        return Tensors(load(data))
    except SafetensorError as error:
        raise SavedModelError(f"its weights cannot be read ({error})") from None
