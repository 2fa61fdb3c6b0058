"""How things are told: warnings at the line of the user's that caused them, progress, long lists of names."""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_HOME = str(Path(__file__).parent)


def warn(message: str, category: type[Warning]) -> None:
    """Warn, at the first line outside of this package.

    A counted `stacklevel` is right for one way of getting here; a filter by module, and whoever reads the
    warning, want the right line on every way.
    """
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_HOME):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


@contextmanager
def heard_by(handler: logging.Handler, log: str = "sfboost") -> Iterator[None]:
    """Hand what the library logs of its progress to a handler, within this."""
    logger = logging.getLogger(log)
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)


def first_names(names: Iterable[Any], most: int = 5) -> str:
    """The first few names, and how many more there are.

    Examples
    --------
    >>> first_names("ab"), first_names("abcdefg")
    ('a, b', 'a, b, c, d, e and 2 more')
    """
    told = list(map(str, names))
    more = f" and {len(told) - most} more" if len(told) > most else ""
    return ", ".join(told[:most]) + more
