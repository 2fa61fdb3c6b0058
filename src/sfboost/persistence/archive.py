"""The container: named parts in one zip, stored as they are, under a seal.

A file is a zip without compression whose comment is the SHA-256 of all the bytes before it (the seal). The
seal tells accidents: a cut or a changed byte, wherever it is. It is no signature: whoever writes a file can
seal it, so every other check assumes a hostile writer.
"""

from __future__ import annotations

import hashlib
import io
import re
import zipfile
from collections.abc import Mapping
from reprlib import repr as shortened

from sfboost.persistence.errors import SavedModelError

_SEAL = 64  # hexadecimal digits of SHA-256
#: How a file begins.
HEAD = b"PK\x03\x04"
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
    """The parts of a sealed archive; nothing is written to disk.

    Raises
    ------
    SavedModelError
        If the seal is broken, or if the archive is not one that `pack` could have written.
    """
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
