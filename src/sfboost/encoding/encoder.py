"""All columns of a frame as numbers: decided once, on training rows, and the same everywhere after."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Self

import narwhals as nw
import numpy as np

from sfboost.encoding.cells import as_series, as_text, whole_numbers
from sfboost.encoding.column import Column, NoFeatureError, told
from sfboost.marginal.probabilities import FloatArray

# A gap is a feature from this many rows on, and from this share of them.
_FEWEST, _LEAST_SHARE = 10, 0.01
# Columns that lack fewer of their cells are counted, not named.
_HARDLY = 0.01
# Fewer rows may well hold different amounts.
_MANY_ROWS = 100


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
        rows, columns, refused = _frame(table), {}, []
        for name in names:
            try:
                columns[name] = Column.fit(name, as_series(rows[name]))
            except NoFeatureError as error:
                refused.append(error)  # all of them are told at once
        if refused:
            raise ValueError(told(refused))
        missing = {name: columns[name].missing(as_series(rows[name])) for name in gaps}
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
        there = set(frame.columns)
        # Column by column in memory, as tables are.
        numbers, first = np.empty((len(frame), len(self.names)), order="F"), 0

        def put(part: FloatArray) -> None:
            nonlocal first
            numbers[:, first : first + part.shape[1]] = part
            first += part.shape[1]

        for column in self.columns:
            if not column.outputs:
                continue
            whole = whole_numbers(rows, column.name) if column.is_number and column.name in there else None
            put(self._encode(column, frame) if whole is None else column.filled(whole))
        for column in self._with_gaps:
            put(self._gap(column, frame))
        return numbers

    @property
    def _with_gaps(self) -> list[Column]:
        by_name = {column.name: column for column in self.columns}
        return [by_name[name] for name in self.gaps]

    def _gap(self, column: Column, frame: nw.DataFrame[Any]) -> FloatArray:
        if column.name in frame.columns and gap_name(column.name) not in frame.columns:
            return column.missing(as_series(frame[column.name])).astype(np.float64)[:, None]
        return np.asarray(frame.select([gap_name(column.name)]).to_numpy(), dtype=np.float64)

    def missing_shares(self, table: Any) -> dict[str, float]:
        """Share of the cells of each column that are missing, where any is."""
        rows = _frame(table)
        there = [column for column in self.columns if column.name in rows.columns]
        shares = {c.name: float(np.mean(c.missing(as_series(rows[c.name])))) for c in there}
        return {name: share for name, share in shares.items() if share}

    def _encode(self, column: Column, frame: nw.DataFrame[Any]) -> FloatArray:
        if column.name in frame.columns:
            return column.encode(as_series(frame[column.name]))
        return np.asarray(frame.select(list(column.outputs)).to_numpy(), dtype=np.float64)

    def cells(self, row: Any) -> dict[str, str]:
        """What a table of one row says that encoded numbers do not: "missing", and a category by its name."""
        frame, said = _frame(row), {}
        for column in self.columns:
            if column.name not in frame.columns:
                continue  # encoded already
            values = as_series(frame[column.name])
            if column.missing(values)[0]:
                said[column.name] = "missing"
            elif not column.is_number:
                said[column.name] = str(as_text(values.to_arrow(), column.name)[0])
        return said

    def remarks(self, table: Any, what: str = "new rows") -> list[str]:
        """Sentences about every cell that had to be filled in."""
        rows, remarks, missing, hardly = _frame(table), [], [], 0
        for column in self.columns:
            if column.name not in rows.columns:
                continue  # encoded already
            if not column.is_number and not column.levels:
                continue  # there was nothing in training, and nothing is made of it here
            values = as_series(rows[column.name])
            share = float(np.mean(column.missing(values)))
            hardly += 0.0 < share < _HARDLY
            if share >= _HARDLY:
                fill = f"{column.fill:g}" if column.is_number else repr(column.levels[0])
                much = "all" if share == 1.0 else f"{100 * share:.2g} %"
                missing.append(f"{column.name!r} in {much} ({fill})")
            unseen, share = column.unseen(values)
            if unseen:
                remarks.append(
                    f"Column {column.name!r} has categories that training never saw "
                    f"({', '.join(unseen[:5])}; {100 * share:.1f} % of rows): they are taken for the "
                    f"most frequent one, {column.levels[0]!r}."
                )
        if hardly:
            others = " other" if missing else ""
            missing.append(f"{hardly}{others} column{'s' if hardly > 1 else ''} in less than 1 %")
        if missing:
            remarks.append(
                f"Missing in {what}; the median or most frequent category of training is put there: "
                f"{', '.join(missing)}."
            )
        return remarks

    def doubts(self, table: Any) -> list[str]:
        """A sentence about columns of training rows that look like ids: a classifier would learn by heart."""
        rows = _frame(table)
        if len(rows) < _MANY_ROWS:
            return []
        names = [
            column.name
            for column in self.columns
            if column.kind == "number"
            and rows[column.name].dtype.is_integer()
            and rows[column.name].n_unique() == len(rows)
        ]
        if not names:
            return []
        many = len(names) > 1
        has, features, ids = (
            ("have", "count as features", "they are ids, leave them out")
            if many
            else ("has", "counts as a feature", "it is an id, leave it out")
        )
        return [
            f"{', '.join(map(repr, names))} {has} another whole number in every row and {features}: if {ids} "
            "(--drop, or --id to pass it on)."
        ]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {"columns": [asdict(column) for column in self.columns], "gaps": list(self.gaps)}


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
