"""The idx format of MNIST: a magic number, the shape, then the bytes."""

from __future__ import annotations

import math
import struct
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfboost_lab.datasets.archives import open_unpacked

_TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
_PIECE = 2**22


def read_idx(path: Path) -> NDArray[Any]:
    """Return the array in an idx file, plain or gzipped.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from sfboost_lab.datasets.idx import read_idx
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "few").write_bytes(bytes.fromhex("00000801 00000003 050004"))
    ...     read_idx(Path(folder, "few"))
    array([5, 0, 4], dtype=uint8)
    """
    with open_unpacked(path) as source:
        magic = source.read(4)
        if len(magic) < 4 or magic[:2] != b"\0\0" or magic[2] not in _TYPES:
            raise ValueError(f"{path.name} begins with {magic!r}; an idx file begins with 0, 0 and a type.")
        dtype = np.dtype(_TYPES[magic[2]])
        header = source.read(4 * magic[3])
        if len(header) < 4 * magic[3]:
            raise ValueError(f"{path.name} ends within its header; get the file again.")
        shape = struct.unpack(f">{magic[3]}I", header)
        wanted = math.prod(shape) * dtype.itemsize
        # In pieces, so that a lying header allocates nothing; one byte more than wanted, so that neither a
        # short nor a long file passes.
        body = bytearray()
        while len(body) <= wanted and (piece := source.read(min(_PIECE, wanted + 1 - len(body)))):
            body += piece
    if len(body) != wanted:
        raise ValueError(
            f"{path.name} says it holds {shape} values of {dtype.itemsize} byte, which needs {wanted} bytes, "
            f"but has {'more' if len(body) > wanted else len(body)}; get the file again."
        )
    return np.frombuffer(body, dtype=dtype).reshape(shape).astype(dtype.newbyteorder("="))
