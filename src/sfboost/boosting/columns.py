"""Which columns are stable and which are unstable: selectors as in ColumnTransformer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.utils import _safe_indexing
from sklearn.utils._indexing import _get_column_indices

from sfboost.adaptation.checks import LARGEST, SMALLEST, in_range
from sfboost.columns import StableFeatureSelector
from sfboost.frames import Encoder, EncodingWarning, is_frame
from sfboost.frames.cells import names_of
from sfboost.heads import SoftLabelClassifier, SoftLabelMixin
from sfboost.notices import first_names, warn

if TYPE_CHECKING:
    from sfboost.boosting.estimator import StableFeatureBoosting


@dataclass(frozen=True)
class Columns:
    """Positions and names of a feature set.

    Attributes
    ----------
    names : tuple of str
        With an encoder, of the encoded columns.
    encoder : Encoder or None
        What turns columns of a frame into numbers, where no pipeline of the user does.
    """

    positions: tuple[int, ...]
    names: tuple[str, ...]
    encoder: Encoder | None = None

    def take(self, X: Any) -> Any:
        """The columns of X: numbers if they are encoded, else what X is. Of a frame, by name."""
        if not is_frame(X):
            if self.encoder is not None and not all(column.is_number for column in self.encoder.columns):
                raise ValueError(
                    "The model was fitted to a frame with text in it: pass a frame, not an array."
                )
            numbers = _safe_indexing(X, list(self.positions), axis=1)
            n_gaps = 0 if self.encoder is None else len(self.encoder.gaps)
            # An array has no gaps.
            return np.column_stack([numbers, np.zeros((numbers.shape[0], n_gaps))]) if n_gaps else numbers
        if self.encoder is None:
            known = not self.lacking(X)  # else fitted to an array, whose columns have no names
            return _safe_indexing(X, list(self.names if known else self.positions), axis=1)
        numbers = self.encoder.encode(X)
        made = self.encoder.names
        return numbers if made == self.names else numbers[:, [made.index(name) for name in self.names]]

    @property
    def sources(self) -> tuple[str, ...]:
        """Columns of the table that these are made of."""
        return self.names if self.encoder is None else self.encoder.sources

    def lacking(self, X: Any) -> list[str]:
        """Columns that the frame X lacks."""
        there = names_of(X)
        if self.encoder is not None:
            return self.encoder.lacking(there)
        return [name for name in self.names if name not in there]

    def encoded_by(self, encoder: Encoder) -> Columns:
        """The same columns, made of those that `encoder` reads."""
        return Columns(self.positions, self.names, encoder.making(self.names))

    def __len__(self) -> int:
        return len(self.names)


def choose_columns(
    X: Any, labels: Any, domain: Any, stable: Any, unstable: Any, encoded: tuple[bool, bool]
) -> tuple[Columns, Columns, StableFeatureSelector | None]:
    """The stable and the unstable columns, and what was found if they were searched for.

    `encoded` says of each set whether columns of a frame are to be encoded, or left to a user's pipeline.
    """
    if not is_frame(X):
        found = find_stable(X, labels, domain, stable, unstable)
        chosen, selector = (stable, None) if found is None else found
        return *resolve_columns(X, chosen, unstable), selector
    if is_search(stable) and all(encoded):
        encoder = Encoder.fit(X, names_of(X))
        # The codes of a category are stable together, or not at all.
        whole = [column.name for column in encoder.columns for _ in column.outputs]
        named = encoder.outputs_of(_names(X, _positions(X, unstable, "unstable_features") or []))
        numbers = encoder.encode(X)
        rows = type(X)(numbers, columns=list(encoder.names)) if hasattr(X, "iloc") else numbers
        places = [encoder.names.index(name) for name in named] or None
        found = find_stable(rows, labels, domain, stable, places, whole)
        assert found is not None
        sets = resolve_columns(rows, found[0], places)
        full = [Columns(c.positions, tuple(encoder.names[j] for j in c.positions)) for c in sets]
        return full[0].encoded_by(encoder), full[1].encoded_by(encoder), found[1]
    found = find_stable(X, labels, domain, stable, unstable)
    chosen, selector = (stable, None) if found is None else found
    first, second = resolve_columns(X, chosen, unstable)
    first = _encoded(first, X) if encoded[0] else first
    # Where an unstable feature is missing is an unstable feature, too.
    second = _encoded(second, X, gaps=second.names) if encoded[1] else second
    if not len(first):
        raise ValueError("Nothing is learned of the stable columns, of one value or no feature: name others.")
    return first, second, selector


def encoded_columns(columns: Columns, X: Any) -> Columns:
    """The same columns as numbers, also where a pipeline of the user reads them as they are."""
    if columns.encoder is not None or not is_frame(X):
        return columns
    made = _encoded(columns, X)
    if len(columns) and not len(made):
        raise ValueError(f"Columns {first_names(map(repr, columns.names))} are no features.")
    return made


def _encoded(columns: Columns, X: Any, gaps: tuple[str, ...] = ()) -> Columns:
    encoder = Encoder.fit(X, columns.names, gaps=gaps)
    return Columns(columns.positions, encoder.names, encoder)


def is_search(stable: Any) -> bool:
    """Whether stable features are to be searched for."""
    return isinstance(stable, StableFeatureSelector) or (isinstance(stable, str) and stable == "auto")


def resolve_columns(X: Any, stable: Any, unstable: Any) -> tuple[Columns, Columns]:
    """The stable and the unstable columns; None is every column that the other set does not name."""
    chosen = _positions(X, stable, "stable_features")
    other = _positions(X, unstable, "unstable_features")
    shared = sorted(set(chosen or ()) & set(other or ()))
    if shared:
        raise ValueError(
            f"Columns {first_names(map(repr, _names(X, shared)))} are "
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
    X: Any, labels: Any, domain: Any, stable: Any, unstable: Any, groups: list[str] | None = None
) -> tuple[list[int], StableFeatureSelector] | None:
    """Search for stable columns among those not named unstable; None if the user has named them.

    Refused where the training domains cannot show any column to be stable: a guess would undo what the
    stable predictor is for. `groups` names what each column belongs to and is chosen with.
    """
    if not is_search(stable):
        return None
    selector = StableFeatureSelector() if isinstance(stable, str) else clone(stable)
    named = set(_positions(X, unstable, "unstable_features") or ())
    free = [j for j in range(X.shape[1]) if j not in named]
    if not free:
        raise ValueError("Every column is named unstable: none is left to search for stable features.")
    candidates = _safe_indexing(X, free, axis=1)
    remedy = "encode or impute it first, put it in unstable_features, or name the stable_features."
    require_finite_numbers(candidates, _names(X, free), "possibly stable", remedy)
    values = candidates.toarray() if sparse.issparse(candidates) else candidates
    if groups is not None and selector.groups is None:
        selector.set_params(groups=[groups[j] for j in free])
    selector.fit(values, labels, sample_domain=domain)
    if not selector.support_.any():
        least = [f"{c.name} up to {c.drift_upper:.2f}" for c in selector.selection_.in_order[:5]]
        raise ValueError(
            f"No stable feature was found. {selector.selection_.sentence} Drift of a column by itself, the "
            f"least first ({selector.tolerance:g} is tolerated): {', '.join(least)}."
        )
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
            f"the columns are {names_of(X)}" if hasattr(X, "columns") else f"X has {X.shape[1]} columns"
        )
        raise ValueError(f"{name}={selector!r} does not fit the data ({error}): {available}.") from None


def _names(X: Any, positions: list[int]) -> tuple[str, ...]:
    if hasattr(X, "columns"):
        names = names_of(X)
        return tuple(names[j] for j in positions)
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


def require_numbers(model: StableFeatureBoosting, stable_X: Any, unstable_X: Any) -> None:
    """Text and NaN are refused by name where a default estimator would meet them."""
    for part, columns, estimator, what in (
        (stable_X, model.stable_columns_, model.stable, "stable"),
        (unstable_X, model.unstable_columns_, model.unstable, "unstable"),
    ):
        if reads_numbers(estimator) and len(columns):
            remedy = f"impute or encode it first, or pass a pipeline that does as `{what}`."
            require_finite_numbers(part, columns.names, what, remedy)


def reads_numbers(estimator: Any) -> bool:
    """Whether an estimator is one of ours, which wants numbers; a user's own may read anything."""
    ours = isinstance(estimator, SoftLabelMixin) and not isinstance(estimator, SoftLabelClassifier)
    return estimator is None or ours


def require_columns(model: StableFeatureBoosting, X: Any) -> None:
    """Refuse a frame without the columns of `fit`; others, and their order, do not matter."""
    lacking = [*model.stable_columns_.lacking(X), *model.unstable_columns_.lacking(X)]
    if lacking:
        raise ValueError(
            f"The feature names should match those that were passed during fit: X lacks {lacking}; it has "
            f"{names_of(X)[:30]}."
        )


def tell_training(encoder: Encoder | None, X: Any) -> None:
    """Warn of the cells of training rows that are filled in, and of columns that look like ids."""
    if is_frame(X) and encoder is not None:
        _tell(encoder.remarks(X, "training rows") + encoder.doubts(X))


def tell_before_many_fits(model: StableFeatureBoosting, X: Any) -> None:
    """The same of all rows at once, before many fits to parts of them that keep silent about it."""
    if not is_frame(X) or hasattr(model, "stable_columns_"):  # `fit` has told of it
        return
    read = (reads_numbers(model.stable), reads_numbers(model.unstable))
    if is_search(model.stable_features) or model._along_components():
        names = names_of(X) if all(read) else []
    else:
        sets = resolve_columns(X, model.stable_features, model.unstable_features)
        names = [name for columns, ours in zip(sets, read, strict=True) if ours for name in columns.names]
    tell_training(Encoder.fit(X, names), X)


def tell_filled(model: StableFeatureBoosting, X: Any, *, stable_only: bool = False) -> None:
    """Warn of the cells of new rows that are filled in."""
    encoder = model.stable_columns_.encoder if stable_only else model.encoder_
    if is_frame(X) and encoder is not None:
        _tell(encoder.remarks(X))


def _tell(remarks: list[str]) -> None:
    if remarks:
        warn(" ".join(remarks), EncodingWarning)
