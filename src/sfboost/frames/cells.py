"""Frames and their cells, whichever library holds them: pandas, polars, pyarrow, what else narwhals knows.

Numbers need narwhals alone. Text goes through Arrow, so that a category has one spelling everywhere.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Literal

import narwhals as nw
import numpy as np

from sfboost.marginal.probabilities import FloatArray

#: What the type of a column may say that it holds.
Holds = Literal["number", "truth", "text", "date"]
_SECONDS = 86_400


class EncodingWarning(UserWarning):
    """What became of columns that are no numbers, and of cells that are missing or new."""


def is_frame(X: Any) -> bool:
    """Whether X is a frame that is here, whose columns have names: text, and each its own.

    Examples
    --------
    >>> is_frame([[1.0]])
    False
    """
    if not nw.dependencies.is_into_dataframe(X):
        return False
    labels = _labels(X)
    return all(isinstance(name, str) for name in labels) and len(set(labels)) == len(labels)


def refuse_twins(X: Any) -> None:
    """Refuse a frame in which two columns have one name: nobody knows which is meant."""
    refuse_twin_names(_labels(X) if nw.dependencies.is_into_dataframe(X) else [], "X")


def refuse_twin_names(names: list[Any], where: str) -> None:
    """Refuse names of columns of which two are the same."""
    if len(set(names)) < len(names):
        twice = sorted({str(name) for name in names if names.count(name) > 1})
        raise ValueError(f"{where} has several columns named {twice}: give each its own name.")


def names_of(X: Any) -> list[str]:
    """Names of the columns of a frame."""
    return [str(name) for name in _labels(X)]


def _labels(X: Any) -> list[Any]:
    if hasattr(X, "column_names"):  # an Arrow table, perhaps one of very many batches: no detour
        return list(X.column_names)
    # Narwhals refuses pandas frames with two columns of one name.
    return list(X.columns) if hasattr(X, "iloc") else list(nw.from_native(X, eager_only=True).columns)


def text_columns(X: Any) -> list[str]:
    """Names of the columns of a frame that hold text or categories."""
    frame = nw.from_native(X, eager_only=True)
    return [name for name in frame.columns if held_by(as_series(frame[name])) == "text"]


def held_by(values: Any) -> Holds | None:
    """What the type of a column says that it holds; None is none of these."""
    if values.dtype == nw.Boolean:
        return "truth"
    if values.dtype.is_numeric():
        return "number"
    if values.dtype in (nw.Date, nw.Datetime):
        return "date"
    return "text" if values.dtype in (nw.String, nw.Categorical, nw.Enum) else None


def as_series(column: Any) -> Any:
    """A column, of whatever library, as a narwhals series; one of Python objects gets a type."""
    values = column if isinstance(column, nw.Series) else nw.from_native(column, series_only=True)
    native = values.to_native()
    if not hasattr(native, "iloc"):
        return values
    import pandas as pd

    if isinstance(native.dtype, pd.CategoricalDtype) and native.cat.categories.dtype == "interval":
        # What pandas.cut makes, as the text that it shows.
        return as_series(native.astype(object).map(str, na_action="ignore"))
    if values.dtype not in (nw.Object, nw.Unknown):
        return values
    objects = native.tolist()
    with suppress(TypeError, ValueError):  # numbers and None, or a sparse column
        if not any(isinstance(cell, (str, bool, np.bool_)) for cell in objects):
            return nw.new_series(values.name or "", np.asarray(native, dtype=np.float64), backend="pandas")
    pa = arrow()
    cells = [None if pd.isna(cell) is True else cell for cell in objects]
    with suppress(pa.ArrowInvalid, pa.ArrowTypeError):
        return nw.from_native(pa.chunked_array([pa.array(cells)]), series_only=True)
    texts = [None if cell is None else str(cell) for cell in cells]
    return nw.from_native(pa.chunked_array([pa.array(texts, pa.string())]), series_only=True)


def as_numbers(values: Any, name: str) -> FloatArray:
    """Numbers with NaN for what is missing; whole ones beyond 2^53 are rounded."""
    in_arrow = values.implementation.is_pyarrow()  # whose own cast refuses them
    if not in_arrow and held_by(values) in ("truth", "number"):
        # May be a view of the user's memory, and is not written to.
        return np.asarray(values.cast(nw.Float64).to_numpy(), dtype=np.float64)
    pa, cells = arrow(), _without_dictionary(values.to_arrow())
    try:
        return np.asarray(cells.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise ValueError(
            f"Column {name!r} held numbers in training and is {cells.type} here: turn it into numbers."
        ) from None


def as_days(values: Any) -> FloatArray:
    """Whole days since 1970 of dates, NaN for what is missing."""
    seconds = np.asarray(values.dt.timestamp("ms").to_numpy(), dtype=np.float64) / 1000
    return np.floor(seconds / _SECONDS)


def days_of_text(text: Any, written: str) -> FloatArray:
    """The same of Arrow text that is `written` like "%Y-%m-%d"; a time of day behind it is let go."""
    from pyarrow import compute as pc

    days = pc.replace_substring_regex(text, r"^\s*([^\sT]+).*$", r"\1")
    moments = pc.strptime(days, format=written, unit="s", error_is_null=True).cast(arrow().int64())
    return np.asarray(moments.to_numpy(zero_copy_only=False), dtype=np.float64) / _SECONDS


def as_text(values: Any, name: str = "") -> Any:
    """Arrow cells as text: 3, 3.0 and "3.0" are the same category; NaN is missing."""
    pa = arrow()
    from pyarrow import compute as pc

    values = _without_dictionary(values)
    if pa.types.is_floating(values.type):
        values = pc.if_else(pc.is_nan(values), None, values)
    try:
        text = values.cast(pa.string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise ValueError(
            f"Column {name!r} holds {values.type}, which is neither number nor text: turn it into one."
        ) from None
    return pc.replace_substring_regex(text, r"^([+-]?\d+)\.0+$", r"\1")


def _without_dictionary(cells: Any) -> Any:
    return cells.cast(cells.type.value_type) if arrow().types.is_dictionary(cells.type) else cells


def arrow() -> Any:
    """Pyarrow, or the sentence that says how to get it."""
    try:
        import pyarrow
    except ImportError as error:
        raise ImportError(
            "Text columns are encoded with pyarrow: pip install 'sfboost[app]', or pass numbers."
        ) from error
    return pyarrow
