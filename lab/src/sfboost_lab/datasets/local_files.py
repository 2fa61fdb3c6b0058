"""Which files of a data set are here, and getting those that are not."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sfboost_lab.datasets.registry import find
from sfboost_lab.datasets.sources import MissingDataError, Progress, explain_missing, fetch, locate, verify


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
    >>> from sfboost_lab.datasets.local_files import Holding
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
    >>> from sfboost_lab.datasets.local_files import held
    >>> held("colored_digits")
    []
    """
    files, candidates = find(name).wanted_files()
    here = [Holding(file.path, locate(file.candidates(), data_dir)) for file in files]
    if candidates:
        here.append(Holding(candidates[0], locate(candidates, data_dir)))
    return here


def fetch_all(name: str, data_dir: Path | None = None, progress: Progress | None = None) -> list[Holding]:
    """Return all files of a data set, fetched where needed, and whether their bytes are the known ones.

    Examples
    --------
    >>> from sfboost_lab.datasets.local_files import fetch_all
    >>> fetch_all("ac")
    []
    """
    files, candidates = find(name).wanted_files()
    got = []
    for file in files:
        path = fetch(file, data_dir, progress)
        got.append(Holding(file.path, path, verify(file, path)))
    if candidates:
        path_or_none = locate(candidates, data_dir)
        if path_or_none is None:
            raise MissingDataError(explain_missing(candidates[:3], data_dir))
        got.append(Holding(candidates[0], path_or_none))
    return got
