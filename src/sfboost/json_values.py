"""Results as values that JSON knows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def json_values(value: Any, *, finite: bool = True) -> Any:
    """Dicts, lists, text and numbers; NaN and infinity, which JSON has not, become None if `finite`.

    Examples
    --------
    >>> json_values({1: (0.5, float("nan"))})
    {'1': [0.5, None]}
    """
    if isinstance(value, Mapping):
        return {str(key): json_values(item, finite=finite) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [json_values(item, finite=finite) for item in value]
    if hasattr(value, "tolist"):  # an array or a number of numpy
        return json_values(value.tolist(), finite=finite)
    if finite and isinstance(value, float) and not abs(value) < float("inf"):
        return None
    return value
