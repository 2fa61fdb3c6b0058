"""One column of a table as numbers, by a recipe that is plain data.

A truth value becomes 0 or 1. A number that is missing becomes the median of the training rows. Text becomes
one column per category, except for the most frequent one: that is all zeros, and so are a missing and an
unseen category. That a cell was missing is a feature of its own, and an unstable one (`Encoder.gaps`): who
measures what is a habit of a domain, and a stable predictor must not learn it.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt

from sfboost.adaptation.checks import LARGEST
from sfboost.encoding.cells import Kind, arrow, as_numbers, as_text, kind_of, refuse_spoilt_numbers
from sfboost.marginal.probabilities import FloatArray

_MOST_CATEGORIES = 100
# A text that begins like this is a day, or a moment of one.
_DATE = re.compile(r"\d{4}-\d\d?-\d\d?|\d\d?[./]\d\d?[./]\d{2,4}")
# And one that is nothing else.
_WHOLE_DATE = re.compile(rf"({_DATE.pattern})([ T]\d\d?:\d\d.*)?")


class NoFeatureError(ValueError):
    """A column that is neither number nor category. A table may have several: `told` names them all."""

    def __init__(self, name: str, holds: str, *, date: bool = False) -> None:
        self.name, self.holds, self.date = name, holds, date
        super().__init__(told([self]))


def told(refused: Sequence[NoFeatureError]) -> str:
    """What the columns hold that cannot be features, and what to do."""
    names = shlex.quote(",".join(error.name for error in refused))
    if len(refused) == 1:
        what, one = f"Column {refused[0].name!r} holds {refused[0].holds}: leave it out", "it"
    else:
        held = "; ".join(f"{error.name!r} holds {error.holds}" for error in refused)
        what, one = f"{len(refused)} columns cannot be features: {held}. Leave them out", "one"
    dates = " Of a date, make a number that matters, such as an age." * any(error.date for error in refused)
    return f"{what} (--drop {names}), or pass {one} on (--id).{dates}"


@dataclass(frozen=True)
class Column:
    """How one column becomes numbers; `values` are narwhals series.

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
    kind: Kind = "number"

    @classmethod
    def fit(cls, name: str, values: Any) -> Column:
        """The recipe of training cells; codes of a categorical column are categories."""
        kind = kind_of(values)
        if values.null_count() == len(values) and kind != "category":
            return cls(name, fill=0.0)
        if kind is None:
            date = isinstance(values.dtype, nw.Date | nw.Datetime)
            held = "dates" if date else str(values.dtype)
            raise NoFeatureError(name, f"{held}, which is neither number nor text", date=date)
        if kind in ("truth", "number"):
            numbers = as_numbers(values, name)
            finite = numbers[np.isfinite(numbers)]
            return cls(name, fill=float(np.median(finite)) if len(finite) else 0.0, kind=kind)
        cells = values.to_arrow()
        text = as_text(cells, name)
        # Nobody said that it holds categories.
        free = not arrow().types.is_dictionary(cells.type)
        if free:
            refuse_spoilt_numbers(name, text)
        counts = text.drop_null().value_counts().to_pylist()
        if len(counts) > _MOST_CATEGORIES:
            example = counts[0]["values"]
            raise NoFeatureError(
                name,
                f"{len(counts)} different texts, such as {example!r} (a category has at most "
                f"{_MOST_CATEGORIES})",
                date=bool(_DATE.match(example)),
            )
        if free and counts and all(_WHOLE_DATE.fullmatch(entry["values"]) for entry in counts):
            held = f"dates, such as {counts[0]['values']!r}"
            raise NoFeatureError(name, f"{held} (--categorical {name} takes each for a kind)", date=True)
        counts.sort(key=lambda entry: (-entry["counts"], entry["values"]))
        return cls(name, levels=tuple(entry["values"] for entry in counts), kind="category")

    def __post_init__(self) -> None:
        # A file may say anything.
        if self.kind not in ("number", "truth", "category") or (self.kind == "category") != (
            self.fill is None
        ):
            raise ValueError(f"column {self.name!r} is of kind {self.kind!r} and filled with {self.fill!r}")

    @property
    def is_number(self) -> bool:
        """Whether the column becomes one column of numbers."""
        return self.kind != "category"

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the columns it becomes."""
        return (self.name,) if self.is_number else tuple(f"{self.name}={level}" for level in self.levels[1:])

    def encode(self, values: Any) -> FloatArray:
        """The column as an array of shape (n, outputs)."""
        if not self.is_number:
            from pyarrow import compute as pc

            place = pc.index_in(self._text(values), value_set=arrow().array(self.levels))
            # What is missing, or was never seen, is none of the levels.
            code = np.asarray(pc.fill_null(place, -1))
            return np.column_stack([code == j for j in range(1, len(self.levels))]).astype(np.float64)
        return self.filled(as_numbers(values, self.name))

    def filled(self, numbers: FloatArray) -> FloatArray:
        """Numbers, NaN among them, as `encode` gives them."""
        assert self.fill is not None
        if not len(numbers):
            return numbers[:, None]
        # Both are finite only if every value is: most columns need no copy.
        largest = max(numbers.max(), -numbers.min())
        filled = numbers
        if not np.isfinite(largest):
            filled = np.where(np.isfinite(numbers), numbers, self.fill)
            largest = max(filled.max(), -filled.min())
        if largest > LARGEST:
            raise ValueError(
                f"Column {self.name!r} holds {filled[np.abs(filled).argmax()]:g}: numbers beyond {LARGEST:g} "
                "cannot be computed with. Mend such cells, or express the column in another unit."
            )
        return filled[:, None]

    def missing(self, values: Any) -> npt.NDArray[np.bool_]:
        """Cells that `encode` fills in; infinity is no measurement either."""
        if self.is_number:
            return ~np.isfinite(as_numbers(values, self.name))
        return np.asarray(self._text(values).is_null())

    def unseen(self, values: Any) -> tuple[list[str], float]:
        """Categories that training never saw, and their share of the cells that hold one."""
        if self.is_number:
            return [], 0.0
        counts = {entry["values"]: entry["counts"] for entry in self._text(values).value_counts().to_pylist()}
        counts.pop(None, None)
        strange = sorted(set(counts) - set(self.levels))
        shown = [re.sub(r"\s+", " ", level)[:30] for level in strange]
        return shown, sum(counts[level] for level in strange) / max(sum(counts.values()), 1)

    def _text(self, values: Any) -> Any:
        """The cells as text, truth values in the spelling of training."""
        cells = values.to_arrow()
        text = as_text(cells, self.name)
        if not arrow().types.is_boolean(cells.type):
            return text
        from pyarrow import compute as pc

        spelling = {level.lower(): level for level in self.levels}
        return pc.if_else(cells, spelling.get("true", "true"), spelling.get("false", "false"))
