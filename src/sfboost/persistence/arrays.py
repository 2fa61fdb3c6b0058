"""Arrays as plain .npy: numbers, dates and text, never objects, and no byte more or less than declared."""

from __future__ import annotations

import io
import math
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from sfboost.persistence.errors import SavedModelError

_KINDS = frozenset("biufcUSmM")
_LARGEST_NUMBER = 16  # bytes; a long double means something else on the next machine
_LONGEST_HEADER = 4096


def array_to_bytes(array: npt.NDArray[Any]) -> bytes:
    """The .npy bytes of an array.

    Examples
    --------
    >>> array_from_bytes(array_to_bytes(np.array(["yes", "no"])))
    array(['yes', 'no'], dtype='<U3')
    """
    _check_dtype(array.dtype)
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


def _check_dtype(dtype: np.dtype[Any]) -> None:
    too_wide = dtype.kind in "fc" and dtype.itemsize > _LARGEST_NUMBER // (2 if dtype.kind == "f" else 1)
    if dtype.kind not in _KINDS or dtype.subdtype is not None or too_wide:
        raise SavedModelError(f"an array of type {dtype} is not numbers, dates or text")
