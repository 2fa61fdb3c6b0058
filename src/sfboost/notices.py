"""Warnings that point at the line of the user's that caused them, however deep it was found out."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

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
