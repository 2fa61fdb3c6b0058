"""One column of a table as numbers, by a recipe that is plain data.

A truth value becomes 0 or 1, a date the number of days since 1970, a bracket such as "[60-70)" or "<18" the
number it begins at, and what is missing of these the median of the training rows. Other text becomes one
column per category, except for the most frequent one, which is all zeros; what is missing, or was never seen,
lies between all of them, at their shares in training. That a cell was missing is a feature of its own, and an
unstable one (`Encoder.gaps`): who measures what is a habit of a domain, and a stable predictor must not learn
it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from sfboost.adaptation.checks import LARGEST
from sfboost.frames.cells import arrow, as_days, as_numbers, as_text, days_of_text, held_by
from sfboost.marginal.probabilities import FloatArray

Kind = Literal["number", "truth", "date", "order", "category", "none"]

#: A column of text has at most so many categories.
MOST_CATEGORIES = 100
_NUMBER = r"^\s*[+-]?(\d+([.,]\d*)?|[.,]\d+)([eE][+-]?\d+)?\s*$"
# How text of dates may be written; 3/4/2024 is the fourth of March unless some cell says otherwise.
_DATES = {
    "%Y-%m-%d": r"\d{4}-\d\d?-\d\d?",
    "%d.%m.%Y": r"\d\d?\.\d\d?\.\d{4}",
    "%m/%d/%Y": r"\d\d?/\d\d?/\d{4}",
    "%d/%m/%Y": r"\d\d?/\d\d?/\d{4}",
}
# "[60-70)", "(60, 70]", "<18", "65+", "$10 to $20", "2 years": a number, maybe a second one, maybe a unit.
_AMOUNT = r"[$€£]?([-+]?\d+(?:\.\d+)?)"
_BRACKET = re.compile(
    rf"\s*([\[(<>≤≥=]*)\s*{_AMOUNT}(\s*(?:-|–|to|,|\.\.)\s*(?:{_AMOUNT}|\+?inf))?\s*[\])+%]*\s*([^\W\d_]*?)s?\s*"
)


@dataclass(frozen=True)
class Column:
    """How one column becomes numbers; `values` are narwhals series.

    Attributes
    ----------
    fill : float or None
        What a missing number becomes; None for a category.
    levels : tuple of str
        Categories, the most frequent one (all zeros) first.
    shares : tuple of float
        How often each of the others was there: what a missing category becomes.
    kind : {"number", "truth", "date", "order", "category", "none"}
        What the column held in training, and is read as everywhere; nothing is made of "none".
    written : str
        How dates are written that are text.
    """

    name: str
    fill: float | None = None
    levels: tuple[str, ...] = ()
    kind: Kind = "number"
    written: str = next(iter(_DATES))
    shares: tuple[float, ...] = ()

    @classmethod
    def fit(cls, name: str, values: Any) -> Column:
        """The recipe of training cells; codes of a categorical column are categories."""
        held = held_by(values)
        if held != "text" and values.null_count() == len(values):
            return cls(name, fill=0.0)
        if held is None:
            return cls(name, kind="none")
        made = _of_text(name, values.to_arrow()) if held == "text" else cls(name, 0.0, kind=held)
        if not made.is_number:
            return made
        numbers = made.numbers(values)
        finite = numbers[np.isfinite(numbers)]
        return replace(made, fill=float(np.median(finite)) if len(finite) else 0.0)

    def __post_init__(self) -> None:
        # A file may say anything.
        is_number = self.kind in ("number", "truth", "date", "order")
        known = (is_number or self.kind in ("category", "none")) and self.written in _DATES
        if not known or is_number != (self.fill is not None) or len(self.shares) != len(self.levels[1:]):
            raise ValueError(
                f"column {self.name!r} is {self.kind!r}, written {self.written!r}, fill {self.fill!r}"
            )

    @property
    def is_number(self) -> bool:
        """Whether the column becomes one column of numbers."""
        return self.fill is not None

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the columns it becomes."""
        return (self.name,) if self.is_number else tuple(f"{self.name}={level}" for level in self.levels[1:])

    def encode(self, values: Any) -> FloatArray:
        """The column as an array of shape (n, outputs)."""
        if not self.is_number:
            from pyarrow import compute as pc

            place = pc.index_in(self._text(values), value_set=arrow().array(self.levels))
            code = np.asarray(pc.fill_null(place, -1))
            made = np.column_stack([code == j for j in range(1, len(self.levels))]).astype(np.float64)
            made[code == -1] = self.shares
            return made
        numbers = self.numbers(values)
        # Both are finite only if every value is: most columns need no copy.
        largest = max(numbers.max(initial=0.0), -numbers.min(initial=0.0))
        if not np.isfinite(largest):
            numbers = np.where(np.isfinite(numbers), numbers, np.float64(self.fill or 0.0))
            largest = max(numbers.max(), -numbers.min())
        if largest > LARGEST:
            worst = numbers[np.abs(numbers).argmax()]
            raise ValueError(
                f"Column {self.name!r} holds {worst:g}: numbers beyond {LARGEST:g} cannot be computed with. "
                "Mend such cells, or express the column in another unit."
            )
        return numbers[:, None]

    def numbers(self, values: Any) -> FloatArray:
        """Numbers of the cells, NaN where there is none; what is a number already stays one."""
        held = held_by(values)
        if self.kind == "date" and held == "date":
            return as_days(values)
        if self.kind not in ("date", "order") or held != "text":
            return as_numbers(values, self.name)
        text = as_text(values.to_arrow())
        if self.kind == "date":
            return days_of_text(text, self.written)
        from pyarrow import compute as pc

        known = text.unique()
        places = pc.index_in(text, value_set=known).to_numpy(zero_copy_only=False)
        return np.array([_beginning(each or "") for each in known.to_pylist()], dtype=np.float64)[places]

    def missing(self, values: Any) -> npt.NDArray[np.bool_]:
        """Cells that hold nothing; infinity is no measurement either."""
        if self.is_number:
            return ~np.isfinite(self.numbers(values))
        return np.asarray(self._text(values).is_null())

    def unseen(self, values: Any) -> tuple[list[str], float]:
        """Categories that training never saw, and their share of the cells that hold one."""
        if self.kind != "category":
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


def _of_text(name: str, cells: Any) -> Column:
    """What text is: dates, brackets in order or, if somebody said so, categories."""
    from pyarrow import compute as pc

    text = as_text(cells, name)
    known = text.drop_null()
    free = not arrow().types.is_dictionary(cells.type)  # nobody said that it holds categories
    if free and len(known):
        for written, pattern in _DATES.items():
            match = pc.match_substring_regex(known, rf"^\s*{pattern}([ T]\d\d?:\d\d.*)?\s*$")
            if pc.all(match).as_py() and np.isfinite(days_of_text(known, written)).all():
                return Column(name, 0.0, kind="date", written=written)
    levels = known.unique().to_pylist() if pc.count_distinct(known).as_py() <= MOST_CATEGORIES else []
    if free and levels and _in_order(levels):
        return Column(name, 0.0, kind="order")
    if free:
        _refuse_spoilt_numbers(name, known)
    if len(known) and not levels:
        return Column(name, kind="none")
    counts = sorted(known.value_counts().to_pylist(), key=lambda each: (-each["counts"], each["values"]))
    shares = tuple(each["counts"] / len(known) for each in counts[1:])
    return Column(name, levels=tuple(each["values"] for each in counts), kind="category", shares=shares)


def _in_order(levels: list[str]) -> bool:
    """Whether texts are brackets of numbers: of one unit, no two alike, and not all of them plain numbers."""
    found = [_BRACKET.fullmatch(level) for level in levels]
    units = {match[5].lower() for match in found if match is not None} - {""}
    plain = all(re.fullmatch(_NUMBER, level) for level in levels)
    one_place_each = len({_beginning(level) for level in levels}) == len(levels)
    return None not in found and len(levels) > 2 and len(units) < 2 and one_place_each and not plain


def _beginning(text: str) -> float:
    """The number that a bracket begins at; what is less than a number lies between it and 0.

    Examples
    --------
    >>> [_beginning(text) for text in ("<18", "18-25", "[60-70)", "65+", "2 years", "many")]
    [9.0, 18.0, 60.0, 65.0, 2.0, nan]
    """
    match = _BRACKET.fullmatch(text)
    if match is None:
        return float("nan")
    number = float(match[2])
    return number - abs(number) / 2 if match[1][:1] in ("<", "≤") and match[1] else number


def _refuse_spoilt_numbers(name: str, known: Any) -> None:
    """Refuse text that is numbers for the most part: a column of numbers with mistakes in it."""
    from pyarrow import compute as pc

    numeric = np.asarray(pc.match_substring_regex(known, _NUMBER))
    if len(numeric) and 0.5 < numeric.mean() < 1.0:
        example = known.filter(arrow().array(~numeric))[0].as_py()
        raise ValueError(
            f"Column {name!r} holds numbers, but also text such as {example!r} ({int((~numeric).sum())} of "
            f"{len(numeric)} cells): mend those cells, or say --categorical {name} (in Python: make it a "
            "categorical column) if it holds codes."
        )
