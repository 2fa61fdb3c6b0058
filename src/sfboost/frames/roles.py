"""Which column of a table is what: the target, the domain, an id, stable and unstable features."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from difflib import get_close_matches
from typing import Any, Self

AUTO = "auto"
COMPONENTS = "components"


@dataclass(frozen=True)
class Roles:
    """Names of columns by what they are for.

    Attributes
    ----------
    target, domain : str or None
        None if the model was fitted in Python, which names neither.
    id : str or None
        Passes through to the predictions; never a feature.
    stable, unstable : tuple of str
        Columns of the table; with `search`, `stable` holds the candidates.
    search : bool
        Whether stable columns are to be searched for (`--stable auto`).
    components : bool
        Whether what adapts are directions of the new rows (`--unstable components`).
    """

    target: str | None
    domain: str | None
    id: str | None
    stable: tuple[str, ...]
    unstable: tuple[str, ...]
    search: bool = False
    components: bool = False

    @property
    def features(self) -> tuple[str, ...]:
        """Stable columns, then unstable ones."""
        return (*self.stable, *self.unstable)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """The inverse of `to_dict`."""
        sets = {name: tuple(values[name]) for name in ("stable", "unstable")}
        return cls(**(values | sets))


def assign(
    columns: list[str],
    *,
    target: str,
    domain: str,
    stable: str | None,
    unstable: str | None,
    id: str | None = None,
    drop: str | None = None,
    where: str = "The table",
) -> Roles:
    """Roles of a table's columns from comma-separated names (* and ? match); a set not named gets the others.

    Examples
    --------
    >>> columns = ["sick", "town", "age", "ca"]
    >>> roles = assign(columns, target="sick", domain="town", stable="age", unstable=None)
    >>> roles.stable, roles.unstable
    (('age',), ('ca',))
    """
    search = stable is not None and stable.strip() == AUTO and AUTO not in columns
    components = unstable is not None and unstable.strip() == COMPONENTS and COMPONENTS not in columns
    aside = {"--target": (target,), "--domain": (domain,), "--id": () if id is None else (id,)}
    asked = {
        "--stable": None if search else stable,
        "--unstable": None if components else unstable,
        "--drop": drop,
    }
    literal = {name for names in asked.values() for name in split(names)}
    free = [name for name in columns if name not in literal.union(*aside.values())]
    named = {option: pick(columns, names, free) for option, names in asked.items()}
    wanted = [name for names in (*aside.values(), *named.values()) for name in names]
    require_columns(columns, wanted, where)
    used: dict[str, str] = {}
    for option, names in (*aside.items(), *named.items()):
        for name in names:
            if name in used:
                raise ValueError(
                    f"Column {name!r} is named by {used[name]} and by {option}: a column has one role."
                )
            used[name] = option
    rest = tuple(name for name in columns if name not in used)
    if stable is None and unstable is None:
        raise ValueError(
            "Which features can be trusted? Name them with --stable, or let --stable auto search for them "
            f"among {', '.join(rest[:12])}{' …' if len(rest) > 12 else ''}."
        )
    first = rest if search or stable is None else named["--stable"]
    if components and first:
        return Roles(target, domain, id, first, (), search, components)
    second = rest if unstable is None and not search else named["--unstable"]
    if not first:
        raise ValueError("No column is left for the stable features: name at least one with --stable.")
    if not second and not search:
        raise ValueError("No column is left for the unstable features: there is nothing to adapt.")
    return Roles(target, domain, id, first, second, search)


def pick(columns: list[str], names: str | None, free: list[str] | None = None) -> tuple[str, ...]:
    """Names between commas; one with * or ? stands for every (free) column that it matches.

    Examples
    --------
    >>> pick(["age", "word_1", "word_2"], "age, word_*")
    ('age', 'word_1', 'word_2')
    """
    found: list[str] = []
    for name in split(names):
        matches = [name] if name in columns else fnmatch.filter(columns if free is None else free, name)
        found += matches or [name]  # what matches nothing is told as missing
    return tuple(dict.fromkeys(found))


def split(names: str | None) -> tuple[str, ...]:
    """Names between commas, without blanks around them."""
    return tuple(part for name in (names or "").split(",") if (part := name.strip()))


def require_columns(columns: Iterable[str], wanted: Iterable[str], where: str = "The table") -> None:
    """Refuse names that are not there, with the nearest that are."""
    there = list(columns)
    missing = list(dict.fromkeys(name for name in wanted if name not in there))
    if not missing:
        return
    by_plain_name = {name.strip().casefold(): name for name in there}
    sentences = []
    for name in missing:
        near = get_close_matches(name.casefold(), list(by_plain_name), n=2, cutoff=0.6)
        hint = f" (did you mean {' or '.join(repr(by_plain_name[n]) for n in near)}?)" if near else ""
        sentences.append(f"{name!r}{hint}")
    shown = ", ".join(there[:30]) + (" …" if len(there) > 30 else "")
    raise ValueError(f"{where} has no column {', '.join(sentences)}. It has: {shown}.")
