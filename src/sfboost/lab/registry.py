"""Things found by name: explicit lists, nothing scanned, nothing imported before it is asked for."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from typing import Any


def require_known(kind: str, name: str, names: Iterable[str]) -> None:
    """Refuse a name that is not in the list, with the nearest that is.

    Examples
    --------
    >>> require_known("adapter", "t4a", ["t3a", "tent"])
    Traceback (most recent call last):
    KeyError: "No adapter 't4a'. Did you mean 't3a'? There are: t3a, tent."
    """
    known = list(names)
    if name not in known:
        close = difflib.get_close_matches(name, known, n=1)
        hint = f"Did you mean {close[0]!r}? " if close else ""
        raise KeyError(f"No {kind} {name!r}. {hint}There are: {', '.join(known)}.")


def import_named(path: str) -> Any:
    """Import what ``module:attribute`` names.

    Examples
    --------
    >>> import_named("math:pi") > 3
    True
    """
    module, _, attribute = path.partition(":")
    return getattr(import_module(module), attribute)


class Registry(Mapping[str, Any]):
    """Names and what they stand for, imported when it is asked for.

    Parameters
    ----------
    kind : str
        For messages: "trainer", "adapter".
    entries : mapping of str to str
        ``module:attribute`` by name.

    Examples
    --------
    >>> Registry("adapter", {"t3a": "sfboost.lab.baselines.t3a:T3A"})["t3a"].title
    'T3A'
    """

    def __init__(self, kind: str, entries: Mapping[str, str]) -> None:
        self.kind = kind
        self.entries = dict(entries)

    def __getitem__(self, name: str) -> Any:
        require_known(self.kind, name, self.entries)
        return import_named(self.entries[name])

    def __contains__(self, name: object) -> bool:
        return name in self.entries

    def __iter__(self) -> Iterator[str]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)
