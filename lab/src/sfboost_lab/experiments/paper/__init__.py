"""The paper's figures as data: one file per table, each with its source."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files


@dataclass(frozen=True)
class PaperValue:
    """A number of the paper and what its ± means.

    Parameters
    ----------
    mean, spread : float
        As printed; the spread is NaN where none is.
    kind : {"se", "sd", "unclear"}
        The paper mixes standard errors and standard deviations. "unclear" is taken for a standard error,
        which is the larger reading.
    seeds : int

    Examples
    --------
    >>> PaperValue(89.2, 2.9, "sd", 100).standard_error
    0.29
    """

    mean: float
    spread: float
    kind: str
    seeds: int

    @property
    def standard_error(self) -> float:
        """Of the mean."""
        return self.spread / math.sqrt(self.seeds) if self.kind == "sd" else self.spread


@dataclass(frozen=True)
class PaperTable:
    """One table of the paper.

    Examples
    --------
    >>> paper_table("synthetic").value("SFB", "AC").mean
    89.2
    """

    title: str
    source: str
    seeds: int
    note: str
    columns: tuple[str, ...]
    rows: Mapping[str, tuple[PaperValue | None, ...]]

    def value(self, row: str, column: str) -> PaperValue | None:
        """The number of a row and column, or None where the paper has none."""
        if row not in self.rows or column not in self.columns:
            return None
        return self.rows[row][self.columns.index(column)]


@cache
def paper_table(name: str) -> PaperTable:
    """Return a table of the paper by name.

    Examples
    --------
    >>> paper_table("cmnist").value("SFB", "0.1").mean
    88.1
    """
    source = files(__name__) / f"{name}.toml"
    found = tomllib.loads(source.read_text(encoding="utf-8"))
    seeds, kinds = found["seeds"], found.get("kinds", {})
    rows = {}
    for row, values in found["rows"].items():
        kind = kinds.get(row, found["kind"])
        rows[row] = tuple(_value(value, kind, seeds) for value in values)
        if len(rows[row]) != len(found["columns"]):
            raise ValueError(f"Row {row!r} of {name}.toml has {len(values)} values; give one per column.")
    return PaperTable(found["title"], found["source"], seeds, found["note"], tuple(found["columns"]), rows)


def _value(given: str, kind: str, seeds: int) -> PaperValue | None:
    """Read "89.2±2.9", "71" or "" (nothing)."""
    if not given:
        return None
    mean, _, spread = given.partition("±")
    return PaperValue(float(mean), float(spread) if spread else math.nan, kind, seeds)
