"""Which columns are stable and which are unstable: selectors as in ColumnTransformer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.utils import _safe_indexing
from sklearn.utils._indexing import _get_column_indices

from sfboost.adaptation.checks import LARGEST, SMALLEST, in_range
from sfboost.selection import StableFeatureSelector


@dataclass(frozen=True)
class Columns:
    """Positions and names of a feature set."""

    positions: tuple[int, ...]
    names: tuple[str, ...]

    def take(self, X: Any) -> Any:
        """The columns of X, as a DataFrame if X is one."""
        return _safe_indexing(X, list(self.positions), axis=1)

    def __len__(self) -> int:
        return len(self.positions)


def resolve_columns(X: Any, stable: Any, unstable: Any) -> tuple[Columns, Columns]:
    """The stable and the unstable columns; None is every column that the other set does not name."""
    chosen = _positions(X, stable, "stable_features")
    other = _positions(X, unstable, "unstable_features")
    shared = sorted(set(chosen or ()) & set(other or ()))
    if shared:
        raise ValueError(
            f"Columns {list(_names(X, shared[:5]))}{f' and {len(shared) - 5} more' * (len(shared) > 5)} are "
            "named both stable and unstable: put each column in one set."
        )
    if chosen is None:
        chosen = [j for j in range(X.shape[1]) if j not in set(other or ())]
    if other is None:
        other = [j for j in range(X.shape[1]) if j not in set(chosen)]
    if not chosen:
        raise ValueError("No stable feature is left: name at least one column in stable_features.")
    return Columns(tuple(chosen), _names(X, chosen)), Columns(tuple(other), _names(X, other))


def find_stable(
    X: Any, labels: Any, domain: Any, stable: Any, unstable: Any
) -> tuple[list[int], StableFeatureSelector] | None:
    """Search for stable columns among those not named unstable; None if the user has named them.

    Refused where the training domains cannot show any column to be stable: a guess would undo what the
    stable predictor is for.
    """
    if isinstance(stable, StableFeatureSelector):
        selector = clone(stable)
    elif isinstance(stable, str) and stable == "auto":
        selector = StableFeatureSelector()
    else:
        return None
    named = set(_positions(X, unstable, "unstable_features") or ())
    free = [j for j in range(X.shape[1]) if j not in named]
    if not free:
        raise ValueError("Every column is named unstable: none is left to search for stable features.")
    candidates = _safe_indexing(X, free, axis=1)
    remedy = "encode or impute it first, put it in unstable_features, or name the stable_features."
    require_finite_numbers(candidates, _names(X, free), "possibly stable", remedy)
    values = candidates.toarray() if sparse.issparse(candidates) else candidates
    selector.fit(values, labels, sample_domain=domain)
    if not selector.support_.any():
        raise ValueError(f"No stable feature was found. {selector.selection_.sentence}")
    return [free[j] for j in np.flatnonzero(selector.support_)], selector


def _positions(X: Any, selector: Any, name: str) -> list[int] | None:
    if selector is None:
        return None
    if callable(selector):
        selector = selector(X)
    if isinstance(selector, tuple):
        selector = list(selector)
    try:
        return [int(j) for j in _get_column_indices(X, selector)]
    except (ValueError, KeyError, IndexError) as error:
        available = (
            f"the columns are {list(X.columns)}" if hasattr(X, "columns") else f"X has {X.shape[1]} columns"
        )
        raise ValueError(f"{name}={selector!r} does not fit the data ({error}): {available}.") from None


def _names(X: Any, positions: list[int]) -> tuple[str, ...]:
    if hasattr(X, "columns"):
        return tuple(str(X.columns[j]) for j in positions)
    return tuple(f"x{j}" for j in positions)


def require_finite_numbers(X: Any, names: tuple[str, ...], what: str, remedy: str) -> None:
    """Refuse text, NaN, infinity and numbers next to it in columns that go to a default estimator."""
    if sparse.issparse(X):
        bad = [] if np.isfinite(X.data).all() else list(names)
        strange = [] if bad else [name for name, fits in zip(names, in_range(X), strict=True) if not fits]
    else:
        bad, strange = [], []
        for j, name in enumerate(names):
            column = np.asarray(X.iloc[:, j] if hasattr(X, "iloc") else X[:, j])
            try:
                column = column.astype(np.float64, copy=False)
            except (TypeError, ValueError):
                raise ValueError(f"The {what} feature {name!r} is not numeric: {remedy}") from None
            if not np.isfinite(column).all():
                bad.append(name)
            elif not in_range(column).all():
                strange.append(name)
    if bad:
        raise ValueError(f"The {what} features {bad} contain NaN or infinity: {remedy}")
    if strange:
        raise ValueError(
            f"The {what} features {strange} hold numbers beyond {LARGEST:g}, or none that reaches "
            f"{SMALLEST:g}: express them in another unit."
        )
