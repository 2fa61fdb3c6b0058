"""What the cells of a column say: numbers, truth values or text, whichever library holds them.

Numbers need narwhals alone. Text goes through Arrow, so that a category has one spelling everywhere.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Literal

import narwhals as nw
import numpy as np

from sfboost.marginal.probabilities import FloatArray

Kind = Literal["number", "truth", "category"]
_NUMBER = r"^\s*[+-]?(\d+([.,]\d*)?|[.,]\d+)([eE][+-]?\d+)?\s*$"


def kind_of(values: Any) -> Kind | None:
    """What the type of a column says that it holds; None is neither numbers nor text."""
    if values.dtype == nw.Boolean:
        return "truth"
    if values.dtype.is_numeric():
        return "number"
    return "category" if values.dtype in (nw.String, nw.Categorical, nw.Enum) else None


def as_series(column: Any) -> Any:
    """A column, of whatever library, as a narwhals series; one of Python objects gets a type."""
    values = column if isinstance(column, nw.Series) else nw.from_native(column, series_only=True)
    if values.dtype not in (nw.Object, nw.Unknown) or not hasattr(values.to_native(), "iloc"):
        return values
    native = values.to_native()
    with suppress(TypeError, ValueError):  # numbers and None, or a sparse column
        if not _holds_text_or_truth(native):
            return nw.new_series(values.name or "", np.asarray(native, dtype=np.float64), backend="pandas")
    pa = arrow()
    cells = [None if cell is None or cell != cell else cell for cell in _plain_cells(native)]
    with suppress(pa.ArrowInvalid, pa.ArrowTypeError):
        return nw.from_native(pa.chunked_array([pa.array(cells)]), series_only=True)
    texts = [None if cell is None else str(cell) for cell in cells]
    return nw.from_native(pa.chunked_array([pa.array(texts, pa.string())]), series_only=True)


def as_numbers(values: Any, name: str) -> FloatArray:
    """Numbers with NaN for what is missing; whole ones beyond 2^53 are rounded."""
    in_arrow = values.implementation.is_pyarrow()  # whose own cast refuses them
    if not in_arrow and (values.dtype == nw.Boolean or values.dtype.is_numeric()):
        numbers = values.cast(nw.Float64).to_numpy()
        # May be a view of the user's memory, and is not written to.
        return np.asarray(numbers, dtype=np.float64)
    pa = arrow()
    cells = values.to_arrow()
    if pa.types.is_dictionary(cells.type):
        cells = cells.cast(cells.type.value_type)
    try:
        return np.asarray(cells.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise ValueError(
            f"Column {name!r} held numbers in training and is {cells.type} here: turn it into numbers."
        ) from None


def whole_numbers(frame: Any, name: str) -> FloatArray | None:
    """A column of floats of an Arrow table that has no gaps, as it lies there; None of any other."""
    column = frame.column(name) if hasattr(frame, "column_names") else None
    if column is None or column.null_count or column.type not in (arrow().float64(), arrow().float32()):
        return None
    # May be a view of the user's memory, and is not written to.
    return np.asarray(column.to_numpy(), dtype=np.float64)


def as_text(values: Any, name: str = "") -> Any:
    """Arrow cells as text: 3, 3.0 and "3.0" are the same category; NaN is missing."""
    pa = arrow()
    from pyarrow import compute as pc

    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    if pa.types.is_floating(values.type):
        values = pc.if_else(pc.is_nan(values), None, values)
    try:
        text = values.cast(pa.string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise ValueError(
            f"Column {name!r} holds {values.type}, which is neither number nor text: turn it into one."
        ) from None
    return pc.replace_substring_regex(text, r"^([+-]?\d+)\.0+$", r"\1")


def refuse_spoilt_numbers(name: str, text: Any) -> None:
    """Refuse text that is numbers for the most part: a column of numbers with mistakes in it."""
    pa = arrow()
    from pyarrow import compute as pc

    known = text.drop_null()
    numeric = np.asarray(pc.match_substring_regex(known, _NUMBER))
    if len(numeric) and 0.5 < numeric.mean() < 1.0:
        example = known.filter(pa.array(~numeric))[0].as_py()
        raise ValueError(
            f"Column {name!r} holds numbers, but also text such as {example!r} ({int((~numeric).sum())} of "
            f"{len(numeric)} cells): mend those cells, or say --categorical {name} (in Python: make it a "
            "categorical column) if it holds codes."
        )


def arrow() -> Any:
    """Pyarrow, or the sentence that says how to get it."""
    try:
        import pyarrow
    except ImportError as error:
        raise ImportError(
            "Text columns are encoded with pyarrow: pip install 'sfboost[app]', or pass numbers."
        ) from error
    return pyarrow


def _plain_cells(native: Any) -> list[Any]:
    import pandas as pd

    return [None if pd.isna(cell) is True else cell for cell in native.tolist()]


def _holds_text_or_truth(native: Any) -> bool:
    return any(isinstance(cell, (str, bool, np.bool_)) for cell in native.tolist())


def text_columns(rows: Any) -> list[str]:
    """Names of the columns of a frame that hold text or categories."""
    frame = nw.from_native(rows, eager_only=True)
    return [name for name in frame.columns if kind_of(as_series(frame[name])) == "category"]
