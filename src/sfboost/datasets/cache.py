"""Where what was made or fetched once is kept."""

from __future__ import annotations

import os
from pathlib import Path

CACHE_VARIABLE = "SFBOOST_CACHE"


def cache_folder() -> Path:
    """Return the cache: the folder ``SFBOOST_CACHE`` names, else the system's place for caches.

    Examples
    --------
    >>> from sfboost.datasets.cache import cache_folder
    >>> cache_folder().is_absolute()
    True
    """
    named = os.environ.get(CACHE_VARIABLE)
    if named:
        return Path(named).absolute()
    try:
        import pooch
    except ImportError:
        return Path.home() / ".cache" / "sfboost"
    return Path(pooch.os_cache("sfboost"))
