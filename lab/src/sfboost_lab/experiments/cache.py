"""Work that many runs share, done once: arrays in files, named by what they are made from."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from sfboost.whole_files import whole_file
from sfboost_lab.experiments.run import digest

Arrays = dict[str, npt.NDArray[Any]]


class Cache:
    """Named arrays in a folder, each set written whole or not at all.

    Two processes that miss the same set at the same time both make it; what they make is the same.

    Parameters
    ----------
    folder : path

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     first = Cache(folder).get({"steps": 400}, lambda: {"weight": np.ones(2)})
    ...     again = Cache(folder).get({"steps": 400}, lambda: 1 / 0)
    >>> again["weight"].tolist()
    [1.0, 1.0]
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)

    def get(self, key: Any, make: Callable[[], Mapping[str, npt.NDArray[Any]]]) -> Arrays:
        """Return the arrays of this key, made now if they are not there or cannot be read."""
        path = self.folder / f"{digest(key)}.npz"
        found = _read(path)
        if found is not None:
            return found
        made = {name: np.asarray(value) for name, value in make().items()}
        self.folder.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as part:
            np.savez(part, allow_pickle=False, **made)
        return made


def _read(path: Path) -> Arrays | None:
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except (FileNotFoundError, zipfile.BadZipFile, EOFError, ValueError):  # cut or emptied by a lost plug
        return None
