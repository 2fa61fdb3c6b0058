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
# Who calls us in the user's name: `score` of a classifier is scikit-learn's.
_BETWEEN = ("sklearn", "joblib")


def warn(message: str, category: type[Warning]) -> None:
    """Warn, at the first line outside of this package, and of those that call it in the user's name.

    A counted `stacklevel` is right for one way of getting here; a filter by module, and whoever reads the
    warning, want the right line on every way.
    """
    frame, level = sys._getframe(1), 2
    known = (sys.modules[name].__file__ for name in _BETWEEN if name in sys.modules)
    homes = (_HOME, *(str(Path(file).parent) for file in known if file is not None))
    while frame.f_back is not None and frame.f_code.co_filename.startswith(homes):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def left_out(n_rows: int, column: str, table: str = "") -> str:
    """What is said of rows that have no label, or no domain.

    Examples
    --------
    >>> left_out(1, "town"), left_out(3, "sick", "train.csv")
    ("1 row has no 'town' and is left out.", "3 rows of train.csv have no 'sick' and are left out.")
    """
    rows, have, are = ("row", "has", "is") if n_rows == 1 else ("rows", "have", "are")
    return f"{n_rows} {rows}{f' of {table}' if table else ''} {have} no {column!r} and {are} left out."


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
