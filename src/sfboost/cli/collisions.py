"""Files that a command writes must be none of those that it reads, no two of them the same, and writable."""

from __future__ import annotations

from pathlib import Path

from sfboost.tables.reading import PIPE
from sfboost.whole_files import refuse_unwritable


def refuse_collisions(read: dict[str, str | Path | None], written: dict[str, str | Path | None]) -> None:
    """Raise `ValueError` where writing one of the named files would destroy another, under whatever name.

    Or where it cannot be written: that is to be known before the work, not after it.

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
            if is_same_file(path, other):
                raise ValueError(
                    f"{option} and {name} are the same file ({path}): give {option} a name of its own."
                )
        others[option] = path
    for option, target in written.items():
        if target is not None and str(target) != PIPE:
            try:
                refuse_unwritable(target)
            except IsADirectoryError:
                raise  # it says so itself
            except OSError as error:
                raise ValueError(
                    f"{option} {target} cannot be written ({error.strerror or error}): name a file in a "
                    "folder that can."
                ) from None


def _files(paths: dict[str, str | Path | None]) -> dict[str, Path]:
    """Those that are (or will be) files: a pipe or a device loses nothing."""
    given = {name: Path(path) for name, path in paths.items() if path is not None and str(path) != PIPE}
    return {name: path for name, path in given.items() if path.is_file() or not path.exists()}


def is_same_file(first: Path, second: Path) -> bool:
    """Whether two paths lead to one file, there or not there yet."""
    if first.exists() and second.exists():
        return first.samefile(second)
    # A link to a file that is not there yet leads to the same place; so do two spellings of it.
    return first.resolve() == second.resolve()
