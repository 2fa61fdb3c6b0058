"""What must be there before a model can adapt."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sfboost.boosting.estimator import StableFeatureBoosting


def require_unstable(model: StableFeatureBoosting) -> None:
    """Refuse a model that has no unstable features."""
    if not len(model.unstable_columns_):
        raise ValueError(
            "There is nothing to adapt: every column is stable. Name stable_features or "
            "unstable_features before `fit`."
        )
