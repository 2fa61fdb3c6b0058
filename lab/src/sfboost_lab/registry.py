"""Things found by name: explicit lists, nothing scanned, nothing imported before it is asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from typing import Generic, TypeVar

from sfboost.registry import import_named, unknown

Thing = TypeVar("Thing")


class Registry(MutableMapping[str, Thing], Generic[Thing]):
    """Names and what they stand for, imported when it is asked for. One's own may be added.

    Parameters
    ----------
    kind : str
        For messages: "trainer", "adapter".
    entries : mapping of str to str
        ``module:attribute`` by name.

    Examples
    --------
    >>> numbers = Registry("number", {"pi": "math:pi"})
    >>> numbers["three"] = 3
    >>> sorted(numbers.values())
    [3, 3.141592653589793]
    """

    def __init__(self, kind: str, entries: Mapping[str, str]) -> None:
        self.kind = kind
        self.entries: dict[str, str | Thing] = dict(entries)

    def __getitem__(self, name: str) -> Thing:
        if name not in self.entries:
            raise KeyError(unknown(self.kind, name, self.entries))
        entry = self.entries[name]
        found: Thing = import_named(entry) if isinstance(entry, str) else entry
        return found

    def __setitem__(self, name: str, thing: str | Thing) -> None:
        self.entries[name] = thing

    def __delitem__(self, name: str) -> None:
        del self.entries[name]

    def __contains__(self, name: object) -> bool:
        return name in self.entries

    def __iter__(self) -> Iterator[str]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)
