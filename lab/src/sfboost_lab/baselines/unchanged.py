"""The adapter that does nothing: the row every other adapter is compared with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from sfboost_lab.baselines.contract import Method, Predictor


@dataclass(frozen=True)
class Unchanged(Method):
    """Leave the predictor as it is.

    Examples
    --------
    >>> Unchanged().adapt("any predictor", None)
    'any predictor'
    """

    name: ClassVar[str] = "none"
    title: ClassVar[str] = "no adaptation"
    head_only: ClassVar[bool] = False

    def adapt(self, predictor: Predictor, X_test: Any, y_test: Any = None, *, seed: int = 0) -> Predictor:
        """Return the predictor."""
        return predictor
