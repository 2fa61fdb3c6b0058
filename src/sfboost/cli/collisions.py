"""Files that a command writes must be none of those that it reads, and no two of them the same."""

from __future__ import annotations

from pathlib import Path

from sfboost.tables.sources import PIPE


def refuse_collisions(read: dict[str, str | Path | None], written: dict[str, str | Path | None]) -> None:
    """Raise `ValueError` where writing one of the named files would destroy another, under whatever name.

    Examples
    --------
    >>> refuse_collisions({"TRAIN": "a.csv"}, {"-o": "b.csv", "--report": "./a.csv"})
    Traceback (most recent call last):
    ...
    ValueError: --report and TRAIN are the same file (a.csv): give --report a name of its own.
    """
    others = _files(read)
    for option, path in _files(written).items():
        for name, other in others.items():
            if _same(path, other):
                raise ValueError(
                    f"{option} and {name} are the same file ({path}): give {option} a name of its own."
                )
        others[option] = path


def _files(paths: dict[str, str | Path | None]) -> dict[str, Path]:
    """Those that are (or will be) files: a pipe or a device loses nothing."""
    given = {name: Path(path) for name, path in paths.items() if path is not None and str(path) != PIPE}
    return {name: path for name, path in given.items() if path.is_file() or not path.exists()}


def _same(first: Path, second: Path) -> bool:
    if first.exists() and second.exists():
        return first.samefile(second)
    # A link to a file that is not there yet leads to the same place; so do two spellings of it.
    return first.resolve() == second.resolve()
