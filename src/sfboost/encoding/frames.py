"""Frames at the border: pandas, polars, pyarrow and whatever else narwhals knows, without a case each."""

from __future__ import annotations

from typing import Any

import narwhals as nw


class EncodingWarning(UserWarning):
    """Cells were missing, or held what training never saw, and were filled in."""


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
