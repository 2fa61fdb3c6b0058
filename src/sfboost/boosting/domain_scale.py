"""Each domain's numeric columns by that domain's own means and standard deviations: no labels are asked."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import narwhals as nw
import numpy as np
from sklearn.preprocessing import StandardScaler

from sfboost.diagnostics.rows import rows_by_domain
from sfboost.frames import is_frame
from sfboost.frames.cells import as_numbers, as_series, held_by, names_of
from sfboost.marginal.probabilities import FloatArray


@dataclass(frozen=True, eq=False)
class DomainScale:
    """What is standardised by domain.

    Attributes
    ----------
    names : tuple of str
        Columns of a frame that hold numbers; of an array it is every column.
    here : StandardScaler or None
        Of the target domain that was adapted to. None is of the rows that are given, as one domain.
    """

    names: tuple[str, ...]
    here: StandardScaler | None = None

    @classmethod
    def of(cls, X: Any) -> DomainScale:
        """The columns of training rows that hold numbers, before any are chosen."""
        names = names_of(X) if is_frame(X) else []
        return cls(tuple(name for name in names if held_by(as_series(_frame(X)[name])) == "number"))

    def among(self, read: tuple[str, ...]) -> DomainScale:
        """Only the columns that are read: new rows need no others."""
        return replace(self, names=tuple(name for name in self.names if name in set(read)))

    def in_domain(self, X: Any, weight: FloatArray) -> DomainScale:
        """The same with means and standard deviations of these rows, for all that come from their domain."""
        return replace(self, here=_own(self._numbers(X), weight))

    def apply(self, X: Any, domain: Any = None, weight: FloatArray | None = None) -> Any:
        """A copy of X, standardised: as `here` says, or by the domains that its rows are of."""
        numbers = self._numbers(X)
        made = np.empty_like(numbers)
        for _, rows in rows_by_domain(np.zeros(len(made)) if domain is None else domain):
            scaler = self.here or _own(numbers[rows], None if weight is None else weight[rows])
            made[rows] = scaler.transform(numbers[rows])
        if not is_frame(X):
            return made
        back = _frame(X).implementation
        parts = zip(self.names, made.T.copy(), strict=True)
        return _frame(X).with_columns(*(nw.new_series(*part, backend=back) for part in parts)).to_native()

    def _numbers(self, X: Any) -> FloatArray:
        if is_frame(X):
            columns = [as_numbers(as_series(_frame(X)[name]), name) for name in self.names]
            return np.column_stack(columns) if columns else np.empty((X.shape[0], 0))
        try:
            return np.asarray(X, dtype=np.float64)
        except (TypeError, ValueError):
            raise ValueError(
                "standardize='domain' wants dense numbers, or a frame, whose other columns stay as they are."
            ) from None


def _own(numbers: FloatArray, weight: FloatArray | None) -> StandardScaler:
    with np.errstate(invalid="ignore"):  # a column may be missing in a whole domain, and stays so
        return StandardScaler().fit(numbers, sample_weight=weight)


def _frame(X: Any) -> Any:
    return nw.from_native(X, eager_only=True)
