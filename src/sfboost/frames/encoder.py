"""All columns of a frame as numbers: decided once, on training rows, and the same everywhere after."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Self

import narwhals as nw
import numpy as np

from sfboost.frames.cells import as_series, as_text
from sfboost.frames.column import MOST_CATEGORIES, Column
from sfboost.marginal.probabilities import FloatArray
from sfboost.notices import first_names

# A gap is a feature from this many rows on, and from this share of them.
_FEWEST, _LEAST_SHARE = 10, 0.01
# Fewer rows may well hold different amounts.
_MANY_ROWS = 100
# Columns that a sentence names.
_NAMED = 12
# What is said of columns of training rows.
_DATES = "Dates, read as the number of days since 1970: {}."
_ORDER = "Text with numbers in it, read as the first of them (--categorical makes categories of it): {}."
_LEFT_OUT = f"Left out, neither numbers nor dates nor at most {MOST_CATEGORIES} different texts: {{}}."
_ONE_VALUE = "One value or none in all training rows, so nothing is said by {}."
_IDS = (
    "Another whole number in every row, and counted as a feature: {}. If that is an id, leave it out "
    "(--drop, or --id to pass it on)."
)


@dataclass(frozen=True)
class Encoder:
    """The recipes of all features of a table; frames are pandas, polars, pyarrow or what else narwhals knows.

    Examples
    --------
    >>> import pyarrow as pa
    >>> table = pa.table({"age": [40, None, 60], "sex": ["f", "m", "m"]})
    >>> encoder = Encoder.fit(table, ["age", "sex"])
    >>> encoder.names, encoder.encode(table).tolist()
    (('age', 'sex=f'), [[40.0, 1.0], [50.0, 0.0], [60.0, 0.0]])

    Attributes
    ----------
    columns : tuple of Column
    gaps : tuple of str
        Columns of which it is told, too, where they are missing, in a column of 0 and 1 each.
    """

    columns: tuple[Column, ...]
    gaps: tuple[str, ...] = ()

    @classmethod
    def fit(cls, table: Any, names: Iterable[str], gaps: Iterable[str] = ()) -> Self:
        """Recipes from training rows; those of `gaps` that are missing often enough tell where."""
        rows = _frame(table)
        columns = {name: Column.fit(name, as_series(rows[name])) for name in names}
        read = [name for name in gaps if columns[name].kind != "none"]
        missing = {name: columns[name].missing(as_series(rows[name])) for name in read}
        # Who has such a column already has made it.
        found = tuple(n for n, cells in missing.items() if _often(cells) and gap_name(n) not in columns)
        encoder = cls(tuple(columns.values()), found)
        twice = [name for name, count in Counter(encoder.names).items() if count > 1]
        if twice:
            raise ValueError(
                f"Two features would both be called {twice[0]!r}, since a category becomes a feature "
                "COLUMN=CATEGORY: rename one of the columns."
            )
        return encoder

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the encoded columns."""
        return (*(name for column in self.columns for name in column.outputs), *map(gap_name, self.gaps))

    @property
    def sources(self) -> tuple[str, ...]:
        """Columns of a table that something is made of."""
        return tuple(column.name for column in self.columns if column.kind != "none")

    def outputs_of(self, names: Iterable[str]) -> list[str]:
        """Encoded columns that come from the named ones."""
        wanted = set(names)
        made = [output for column in self.columns if column.name in wanted for output in column.outputs]
        return made + [gap_name(name) for name in self.gaps if name in wanted]

    def making(self, outputs: Iterable[str]) -> Self:
        """The part of this encoder that makes the named encoded columns."""
        wanted = set(outputs)
        gaps = tuple(name for name in self.gaps if gap_name(name) in wanted)
        return type(self)(
            tuple(c for c in self.columns if wanted.intersection(c.outputs) or c.name in gaps), gaps
        )

    def lacking(self, names: Iterable[str]) -> list[str]:
        """Columns that a table with these names lacks: neither it nor what it is encoded to is there."""
        there = set(names)
        return [
            column.name
            for column in self.columns
            if column.name not in there and not there.issuperset(column.outputs)
        ]

    def encode(self, rows: Any) -> FloatArray:
        """Numbers of shape (n, len(names)); none is missing. Other columns and the order do not matter.

        A column that is encoded already (`sex=f` is there, and no `sex`) stays as it is.
        """
        frame = _frame(rows)
        # Column by column in memory, as tables are.
        numbers, first = np.empty((len(frame), len(self.names)), order="F"), 0
        for part in self._parts(frame):
            numbers[:, first : first + part.shape[1]] = part
            first += part.shape[1]
        return numbers

    def _parts(self, frame: nw.DataFrame[Any]) -> Iterator[FloatArray]:
        there = set(frame.columns)
        for column in self.columns:
            if column.outputs and column.name in there:
                yield column.encode(as_series(frame[column.name]))
            elif column.outputs:
                yield frame.select(list(column.outputs)).to_numpy()
        by_name = {column.name: column for column in self.columns}
        for name in self.gaps:
            if name in there and gap_name(name) not in there:
                yield by_name[name].missing(as_series(frame[name])).astype(np.float64)[:, None]
            else:
                yield frame.select([gap_name(name)]).to_numpy()

    def missing_shares(self, table: Any) -> dict[str, float]:
        """Share of the cells of each column that are missing, where any is."""
        shares = {c.name: float(np.mean(c.missing(values))) for c, values in self._there(table)}
        return {name: share for name, share in shares.items() if share}

    def cells(self, row: Any) -> dict[str, str]:
        """What a table of one row says that encoded numbers do not: "missing", and text as it stands."""
        told = {}
        for column, values in self._there(row):
            if column.missing(values)[0]:
                told[column.name] = "missing"
            elif column.kind not in ("number", "truth"):
                told[column.name] = str(as_text(values.to_arrow(), column.name)[0])
        return told

    def remarks(self, table: Any, what: str = "new rows") -> list[str]:
        """Sentences about every cell that had to be filled in."""
        remarks, missing = [], []
        for column, values in self._there(table):
            if not column.is_number and not column.levels:
                continue  # there was nothing in training, and nothing is made of it here
            share = float(np.mean(column.missing(values)))
            if share:
                much = "all" if share == 1.0 else f"{100 * share:.2g} %"
                fill = "" if column.fill is None else f" ({column.fill:g})"
                missing.append(f"{column.name!r} in {much}{fill}")
            unseen, share = column.unseen(values)
            if unseen:
                remarks.append(
                    f"Column {column.name!r} has categories that training never saw "
                    f"({', '.join(unseen[:5])}; {100 * share:.1f} % of rows): they count as missing."
                )
        if missing:
            remarks.append(
                f"Missing in {what}; the median or the mean of all categories is put there: "
                f"{first_names(missing, _NAMED)}."
            )
        return remarks

    def doubts(self, table: Any) -> list[str]:
        """Sentences about columns of training rows that are left out, no plain numbers, or look like ids."""
        there, found = list(self._there(table)), {}
        for kind, sentence in (("date", _DATES), ("order", _ORDER), ("none", _LEFT_OUT)):
            found[sentence] = [column.name for column in self.columns if column.kind == kind]
        found[_ONE_VALUE] = [
            column.name
            for column, values in there
            if column.name not in self.gaps and values.drop_nulls().n_unique() <= 1
        ]
        if len(_frame(table)) >= _MANY_ROWS:
            found[_IDS] = [
                column.name
                for column, values in there
                if column.kind == "number" and values.dtype.is_integer() and values.n_unique() == len(values)
            ]
        return [
            sentence.format(first_names(map(repr, names), _NAMED))
            for sentence, names in found.items()
            if names
        ]

    def _there(self, table: Any) -> Iterator[tuple[Column, Any]]:
        """Columns that something is made of with their cells, but for those that are encoded already."""
        rows = _frame(table)
        for column in self.columns:
            if column.kind != "none" and column.name in rows.columns:
                yield column, as_series(rows[column.name])


def gap_name(name: str) -> str:
    """What the column is called that tells where another one is missing.

    Examples
    --------
    >>> gap_name("chol")
    'chol is missing'
    """
    return f"{name} is missing"


def _often(missing: Any) -> bool:
    """Often enough, and not nearly always: a column that is one value says nothing."""
    fewest = max(_FEWEST, _LEAST_SHARE * len(missing))
    return bool(fewest <= missing.sum() <= len(missing) - fewest)


def _frame(rows: Any) -> nw.DataFrame[Any]:
    return nw.from_native(rows, eager_only=True)
