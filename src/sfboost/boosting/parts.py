"""The two parts of rows that an adaptation is made of: f_S and the unstable features as numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sfboost.boosting.columns import require_finite_numbers
from sfboost.marginal.probabilities import FloatArray

if TYPE_CHECKING:
    from sfboost.boosting.estimator import StableFeatureBoosting


def as_fitted(model: StableFeatureBoosting, table: Any) -> Any:
    """An Arrow table as an array, if that is what the model was fitted to."""
    if not hasattr(table, "column_names") or hasattr(model, "feature_names_in_"):
        return table
    return np.column_stack([np.asarray(table[name], dtype=np.float64) for name in table.column_names])


def both_parts(model: StableFeatureBoosting, X: Any) -> tuple[FloatArray, FloatArray]:
    """Calibrated f_S of shape (n, K) and raw unstable features of shape (n, d) of a frame or an array."""
    if not hasattr(model, "unstable_columns_"):  # a network
        log_stable, learned = model.stable_and_unstable(X)
        return np.exp(log_stable), np.asarray(learned, dtype=np.float64)
    # What is filled in is not told here: that would be once for every block of a long table.
    log_stable, _, unstable_X = model._parts(model._check_input(as_fitted(model, X), reset=False))
    unstable = np.asarray(unstable_X, dtype=np.float64)
    # What was encoded is finite.
    if model.unstable_columns_.encoder is None and not np.isfinite(unstable.sum()):
        require_finite_numbers(unstable, model.unstable_columns_.names, "unstable", "impute it first.")
    return np.exp(log_stable), unstable


def is_summable(model: StableFeatureBoosting) -> bool:
    """Whether the head is the default one, which sums over rows can fit."""
    if model.components_ is not None:
        return False
    choices = model._choices(model.settings)
    return choices.head is None and choices.direct and choices.standardize is not False


def require_unstable(model: StableFeatureBoosting) -> None:
    """Refuse a model that has no unstable features."""
    if not len(model.unstable_columns_):
        raise ValueError(
            "There is nothing to adapt: every column is stable. Name stable_features or "
            "unstable_features before `fit`."
        )


def require_summable(model: StableFeatureBoosting) -> None:
    """Refuse a model whose unstable features no sum can stand for."""
    require_unstable(model)
    if not is_summable(model):
        raise ValueError(
            "Components, and a head or settings of your own (but l2), need all rows at once: leave them out "
            "for tables that do not fit into memory, or adapt to fewer rows."
        )
