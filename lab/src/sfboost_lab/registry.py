"""Things found by name: explicit lists, nothing scanned, nothing imported before it is asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Generic, TypeVar

from sfboost.registry import import_named, unknown

Thing = TypeVar("Thing")


class Registry(Mapping[str, Thing], Generic[Thing]):
    """Names and what they stand for, imported when it is asked for.

    Parameters
    ----------
    kind : str
        For messages: "trainer", "adapter".
    entries : mapping of str to str
        ``module:attribute`` by name.

    Examples
    --------
    >>> Registry("number", {"pi": "math:pi"})["pi"]
    3.141592653589793
    """

    def __init__(self, kind: str, entries: Mapping[str, str]) -> None:
        self.kind = kind
        self.entries = dict(entries)

    def __getitem__(self, name: str) -> Thing:
        if name not in self.entries:
            raise KeyError(unknown(self.kind, name, self.entries))
        found: Thing = import_named(self.entries[name])
        return found

    def __contains__(self, name: object) -> bool:
        return name in self.entries

    def __iter__(self) -> Iterator[str]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)
