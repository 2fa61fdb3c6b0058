"""Columns of a table as numbers, by a recipe that is plain data and says how the column is to be read.

A truth value becomes 0 or 1. A number that is missing becomes the median of the training rows. Text becomes
one column per category, except for the most frequent one: that is all zeros, and so are a missing and an
unseen category. (No column says "was missing": who measures what is a habit of a domain, and a stable
predictor must not learn it.)
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sfboost.adaptation.checks import LARGEST
from sfboost.marginal.probabilities import FloatArray

_MOST_CATEGORIES = 100
# Text with this share of numbers is a column of numbers with mistakes in it.
_MOSTLY_NUMBERS = 0.5
# A larger share of missing cells is told.
_NOTEWORTHY = 0.1
_TYPES = {"number": pa.float64(), "truth": pa.bool_(), "category": pa.string()}
_NUMBER = r"^\s*[+-]?(\d+([.,]\d*)?|[.,]\d+)([eE][+-]?\d+)?\s*$"


@dataclass(frozen=True)
class Column:
    """How one column becomes numbers.

    Attributes
    ----------
    fill : float or None
        What a missing number or truth value becomes; None for a category.
    levels : tuple of str
        Categories, the most frequent one (all zeros) first.
    kind : {"number", "truth", "category"}
        What the column held in training, and is read as everywhere.
    """

    name: str
    fill: float | None = None
    levels: tuple[str, ...] = ()
    kind: Literal["number", "truth", "category"] = "number"

    @property
    def is_number(self) -> bool:
        """Whether the column becomes one column of numbers."""
        return self.kind != "category"

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the columns it becomes."""
        return (self.name,) if self.is_number else tuple(f"{self.name}={level}" for level in self.levels[1:])

    @property
    def arrow_type(self) -> pa.DataType:
        """What a CSV column is to be read as."""
        return _TYPES[self.kind]

    def encode(self, values: Any) -> FloatArray:
        """The column as an array of shape (n, outputs)."""
        if not self.is_number:
            text = self.as_category(values)
            flags = [pc.fill_null(pc.equal(text, level), False) for level in self.levels[1:]]
            columns = [np.asarray(flag, dtype=np.float64) for flag in flags]
            return np.column_stack(columns) if columns else np.empty((len(values), 0))
        numbers = as_numbers(values, self.name)
        assert self.fill is not None
        filled = np.where(np.isfinite(numbers), numbers, self.fill)
        if (np.abs(filled) > LARGEST).any():
            raise ValueError(
                f"Column {self.name!r} holds {filled[np.abs(filled).argmax()]:g}: numbers beyond {LARGEST:g} "
                "cannot be computed with. Mend such cells, or express the column in another unit."
            )
        return filled[:, None]

    def as_category(self, values: Any) -> Any:
        """The cells as text, truth values in the spelling of training."""
        text = as_text(values, self.name)
        if not pa.types.is_boolean(values.type):
            return text
        spelling = {level.lower(): level for level in self.levels}
        return pc.if_else(values, spelling.get("true", "true"), spelling.get("false", "false"))


@dataclass(frozen=True)
class Encoder:
    """The recipes of all features of a table.

    Examples
    --------
    >>> table = pa.table({"age": [40, None, 60], "sex": ["f", "m", "m"]})
    >>> encoder = Encoder.fit(table, ["age", "sex"])
    >>> encoder.names, encoder.encode(table).tolist()
    (('age', 'sex=f'), [[40.0, 1.0], [50.0, 0.0], [60.0, 0.0]])
    """

    columns: tuple[Column, ...]

    @classmethod
    def fit(cls, table: pa.Table, names: Iterable[str], categorical: Iterable[str] = ()) -> Self:
        """Recipes from training rows."""
        chosen = set(categorical)
        encoder = cls(tuple(_recipe(name, table.column(name), name in chosen) for name in names))
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
        return tuple(name for column in self.columns for name in column.outputs)

    @property
    def types(self) -> dict[str, pa.DataType]:
        """Types that CSV columns are to be read as."""
        return {column.name: column.arrow_type for column in self.columns}

    def outputs_of(self, names: Iterable[str]) -> list[str]:
        """Encoded columns that come from the named ones."""
        wanted = set(names)
        return [output for column in self.columns if column.name in wanted for output in column.outputs]

    def encode(self, rows: pa.Table | pa.RecordBatch) -> FloatArray:
        """Numbers of shape (n, len(names)); none is missing."""
        parts = [column.encode(rows.column(column.name)) for column in self.columns]
        return np.concatenate(parts, axis=1)

    def remarks(self, table: pa.Table) -> list[str]:
        """Sentences about cells that had to be filled in."""
        return [remark for column in self.columns for remark in _remarks(column, table.column(column.name))]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {"columns": [asdict(column) for column in self.columns]}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """The inverse of `to_dict`."""
        return cls(tuple(_column(part) for part in values["columns"]))


def _column(values: dict[str, Any]) -> Column:
    # Files of earlier versions tell numbers and categories apart by `fill` alone.
    kind = values.get("kind", "category" if values["fill"] is None else "number")
    if kind not in _TYPES or (kind == "category") != (values["fill"] is None):
        raise ValueError(f"column {values['name']!r} is of kind {kind!r} and filled with {values['fill']!r}")
    return Column(values["name"], values["fill"], tuple(values["levels"]), kind)


def as_text(values: Any, name: str = "") -> Any:
    """Categories as text: 3, 3.0 and "3.0" are the same category; NaN is missing."""
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    if pa.types.is_floating(values.type):
        values = pc.if_else(pc.is_nan(values), None, values)
    try:
        text = values.cast(pa.string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise ValueError(
            f"Column {name!r} holds {values.type}, which is neither number nor text: turn it into one."
        ) from None
    return pc.replace_substring_regex(text, r"^([+-]?\d+)\.0+$", r"\1")


def as_numbers(values: Any, name: str) -> FloatArray:
    """Numbers with NaN for what is missing."""
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    try:
        numbers = values.cast(pa.float64(), safe=False)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise ValueError(
            f"Column {name!r} held numbers in training and is {values.type} here: turn it into numbers."
        ) from None
    # Null becomes NaN; the array may be a view of Arrow's memory and is not written to.
    return np.asarray(
        numbers.to_numpy(**({} if isinstance(values, pa.ChunkedArray) else {"zero_copy_only": False}))
    )


def says_nothing(column: Column, values: Any) -> bool:
    """Whether no cell holds a value."""
    return bool(_missing(column, values).all())


def is_number_type(kind: pa.DataType) -> bool:
    """Integers, floats, decimals and truth values."""
    return bool(
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_decimal(kind)
        or pa.types.is_boolean(kind)
    )


def is_category_type(kind: pa.DataType) -> bool:
    """Strings, and dictionaries of anything that can be told apart."""
    if pa.types.is_dictionary(kind):
        return is_category_type(kind.value_type) or is_number_type(kind.value_type)
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _recipe(name: str, values: pa.ChunkedArray, categorical: bool) -> Column:
    if pa.types.is_null(values.type):
        return Column(name, fill=0.0)
    truth = pa.types.is_boolean(values.type)
    if truth or (is_number_type(values.type) and not categorical):
        numbers = as_numbers(values, name)
        finite = numbers[np.isfinite(numbers)]
        fill = float(np.median(finite)) if len(finite) else 0.0
        return Column(name, fill=fill, kind="truth" if truth else "number")
    if not is_category_type(values.type) and not is_number_type(values.type):
        raise ValueError(
            f"Column {name!r} holds {values.type}, which is neither number nor text: turn it into one, or "
            "leave it out with --drop."
        )
    text = as_text(values, name)
    if not categorical:
        _refuse_spoilt_numbers(name, text)
    counts = text.drop_null().value_counts().to_pylist()
    if len(counts) > _MOST_CATEGORIES:
        raise ValueError(
            f"Column {name!r} holds {len(counts)} different texts, such as {counts[0]['values']!r}: that is "
            f"no category (at most {_MOST_CATEGORIES}). Leave it out with --drop, or pass it on with --id."
        )
    counts.sort(key=lambda entry: (-entry["counts"], entry["values"]))
    return Column(name, levels=tuple(entry["values"] for entry in counts), kind="category")


def _refuse_spoilt_numbers(name: str, text: Any) -> None:
    known = text.drop_null()
    numeric = np.asarray(pc.match_substring_regex(known, _NUMBER))
    if len(numeric) and _MOSTLY_NUMBERS < numeric.mean() < 1.0:
        example = known.filter(pa.array(~numeric))[0].as_py()
        raise ValueError(
            f"Column {name!r} holds numbers, but also text such as {example!r} ({int((~numeric).sum())} of "
            f"{len(numeric)} cells): mend those cells, or say --categorical {name} if it holds codes."
        )


def _missing(column: Column, values: Any) -> npt.NDArray[np.bool_]:
    if column.is_number:
        return ~np.isfinite(as_numbers(values, column.name))  # infinity is no measurement either
    return np.asarray(pc.is_null(column.as_category(values)))


def _remarks(column: Column, values: Any) -> list[str]:
    if not column.is_number and not column.levels:
        return []  # there was nothing in training, and nothing is made of it here
    remarks = []
    missing = float(np.mean(_missing(column, values)))
    if missing > _NOTEWORTHY:
        fill = f"{column.fill:g}" if column.is_number else repr(column.levels[0])
        share = "every new row" if missing == 1.0 else f"{100 * missing:.0f} % of the new rows"
        remarks.append(f"Column {column.name!r} is missing in {share}: {fill} from training is put there.")
    text = None if column.is_number else column.as_category(values).drop_null()
    unseen = [] if text is None else sorted(set(pc.unique(text).to_pylist()) - set(column.levels))
    if unseen:
        share = f"{100 * np.mean(np.asarray(pc.is_in(text, pa.array(unseen)))):.1f} %"
        shown = ", ".join(re.sub(r"\s+", " ", level)[:30] for level in unseen[:5])
        remarks.append(
            f"Column {column.name!r} has categories that training never saw ({shown}; {share} of rows): they "
            f"are taken for the most frequent one, {column.levels[0]!r}."
        )
    return remarks
