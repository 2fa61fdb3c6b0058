"""JSON of somebody else's making, bounded before anything is built of it."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable
from typing import Any

from sfboost.persistence.errors import SavedModelError

# An empty list is 3 bytes in a file and 128 in memory, once read and once decoded. What is saved has about 12
# bytes for each list, object and key.
_FREE = 1_000_000
_BYTES_EACH = 8
# Text is hashed with a secret of the process. Numbers are not, so all keys can share one hash, and n such
# keys take n² steps.
_MOST_KEYS = 1000


def parse(data: bytes, name: str) -> Any:
    """The tree of JSON bytes, unless its lists, objects and keys would take far more memory than the bytes.

    Examples
    --------
    >>> parse(b"[1, {}]", "model.json")
    [1, {}]
    """
    most = max(_FREE, len(data) // _BYTES_EACH)
    if sum(data.count(mark) for mark in (b"[", b"{", b":")) > most:
        raise SavedModelError(f"its {name} has more than {most} lists, objects and keys in {len(data)} bytes")
    return json.loads(data)


def check_keys(keys: Iterable[Hashable]) -> None:
    """Refuse a dict or set of more than a thousand keys that are no text."""
    if sum(not isinstance(key, str) for key in keys) > _MOST_KEYS:
        raise SavedModelError(f"it has a dict or set of more than {_MOST_KEYS} keys that are no text")
