"""The data sets, found by name: ``datasets.toml`` is the list, nothing is scanned.

Loaders are named as ``module:function``, so that reading it imports none of them, nor the extras they need.
At the end: which of their files are here, and getting those that are not.
"""

from __future__ import annotations

import importlib
import inspect
import os
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from sfboost.datasets.contract import Dataset, check_seed
from sfboost.registry import import_named, unknown
from sfboost_lab.datasets.sources import (
    File,
    MissingDataError,
    Progress,
    explain_missing,
    fetch,
    locate,
    verify,
)


@dataclass(frozen=True)
class Entry:
    """One line of the list.

    Parameters
    ----------
    name : str
        What it is found by.
    kind : {"images", "pictures", "table"}
        Image arrays, pictures on disk, or rows of columns.
    summary : str
        A few words.
    needs : str
        The files or options it cannot do without.
    loader : str
        The function that loads it, as ``module:function``; by default the one of its name.

    Examples
    --------
    >>> from sfboost_lab.datasets import find
    >>> find("colored_digits").kind
    'images'
    """

    name: str
    kind: str
    summary: str
    needs: str = "nothing"
    loader: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "loader", self.loader or f"sfboost_lab.datasets.{self.name}:{self.name}")

    def loading_function(self) -> Callable[..., Dataset]:
        """Import and return the function that loads this data set."""
        loaded: Callable[..., Dataset] = import_named(self.loader)
        return loaded

    def options(self) -> dict[str, Any]:
        """Return the options of the data set with their defaults."""
        parameters = inspect.signature(self.loading_function()).parameters.values()
        return {p.name: p.default for p in parameters if p.name not in ("random_state", "data_dir")}

    def wanted_files(self) -> tuple[tuple[File, ...], tuple[str, ...]]:
        """Return the files of the data set, or else the names its folder or archive may have."""
        module = importlib.import_module(self.loader.partition(":")[0])
        wanted = getattr(module, "FILES", ())
        return tuple(wanted.values() if isinstance(wanted, dict) else wanted), getattr(
            module, "CANDIDATES", ()
        )


_LISTED = tomllib.loads((files(__package__) / "datasets.toml").read_text("utf-8"))
ENTRIES: tuple[Entry, ...] = tuple(Entry(name, **told) for name, told in _LISTED.items())


def names() -> tuple[str, ...]:
    """Return the names of all data sets.

    Examples
    --------
    >>> from sfboost_lab.datasets import names
    >>> "colored_digits" in names()
    True
    """
    return tuple(entry.name for entry in ENTRIES)


def find(name: str) -> Entry:
    """Return the entry of this name; hyphens and capitals do not matter.

    Examples
    --------
    >>> from sfboost_lab.datasets import find
    >>> find("Colored-Digits").name
    'colored_digits'
    """
    key = name.lower().replace("-", "_")
    for entry in ENTRIES:
        if entry.name == key:
            return entry
    raise KeyError(unknown("data set", key, names()))


def load(
    name: str, *, data_dir: str | os.PathLike[str] | None = None, random_state: int = 0, **options: Any
) -> Dataset:
    """Load a data set by name.

    Parameters
    ----------
    name : str
        One of :func:`names`.
    data_dir : path, optional
        Folder with the files; by default the one ``SFBOOST_DATA`` names, then the cache, then a mirror.
    random_state : int, default=0
        The same seed gives the same rows.
    **options
        Options of the data set, those of :meth:`Entry.options`.

    Examples
    --------
    >>> from sfboost_lab.datasets import load
    >>> load("colored_digits", random_state=1).test[:3]
    ('test-1.0', 'test-0.9', 'test-0.8')
    """
    entry = find(name)
    unknown = sorted(set(options) - set(entry.options()))
    if unknown:
        raise ValueError(f"{entry.name!r} has no option {unknown}; it has {', '.join(entry.options())}.")
    needed = [o for o, default in entry.options().items() if default is inspect.Parameter.empty]
    missing = [option for option in needed if option not in options]
    if missing:
        raise ValueError(f"{entry.name!r} needs the option {', '.join(missing)}; give each a value.")
    folder = None if data_dir is None else Path(data_dir)
    return entry.loading_function()(data_dir=folder, random_state=check_seed(random_state), **options)


@dataclass(frozen=True)
class Holding:
    """A file, folder or archive of a data set.

    Parameters
    ----------
    name : str
        Its name in a data folder.
    path : Path or None
        Where it is; None where it is not.
    genuine : bool or None
        Whether its unpacked bytes have the known sha256; None where there is none, or nobody looked.

    Examples
    --------
    >>> from sfboost_lab.datasets.registry import Holding
    >>> Holding("pacs", None).path is None
    True
    """

    name: str
    path: Path | None
    genuine: bool | None = None


def held(name: str, data_dir: Path | None = None) -> list[Holding]:
    """Return what is here of a data set, without asking a mirror; empty where it needs no file.

    Examples
    --------
    >>> from sfboost_lab.datasets.registry import held
    >>> held("colored_digits")
    []
    """
    wanted, candidates = find(name).wanted_files()
    here = [Holding(file.path, locate(file.candidates(), data_dir)) for file in wanted]
    if candidates:
        here.append(Holding(candidates[0], locate(candidates, data_dir)))
    return here


def fetch_all(name: str, data_dir: Path | None = None, progress: Progress | None = None) -> list[Holding]:
    """Return all files of a data set, fetched where needed, and whether their bytes are the known ones.

    Examples
    --------
    >>> from sfboost_lab.datasets.registry import fetch_all
    >>> fetch_all("ac")
    []
    """
    wanted, candidates = find(name).wanted_files()
    got = []
    for file in wanted:
        path = fetch(file, data_dir, progress)
        got.append(Holding(file.path, path, verify(file, path)))
    if candidates:
        path_or_none = locate(candidates, data_dir)
        if path_or_none is None:
            raise MissingDataError(explain_missing(candidates[:3], data_dir))
        got.append(Holding(candidates[0], path_or_none))
    return got
