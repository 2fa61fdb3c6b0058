"""Things found by name: explicit lists, nothing scanned, nothing imported before it is asked for."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from importlib import import_module
from typing import Any


def unknown(kind: str, name: Any, names: Iterable[str]) -> str:
    """What is said of a name that is not in the list: the nearest that is, and all of them.

    It may be no text at all: files and users name what they like.

    Examples
    --------
    >>> unknown("adapter", "t4a", ["t3a", "tent"])
    "No adapter 't4a'. Did you mean 't3a'? There are: t3a, tent."
    """
    known = list(names)
    close = difflib.get_close_matches(str(name), known, n=1)
    hint = f"Did you mean {close[0]!r}? " if close else ""
    return f"No {kind} {name!r}. {hint}There are: {', '.join(known)}."


def import_named(path: str) -> Any:
    """Import what ``module:attribute`` names.

    Examples
    --------
    >>> import_named("math:pi") > 3
    True
    """
    module, _, attribute = path.partition(":")
    return getattr(import_module(module), attribute)
