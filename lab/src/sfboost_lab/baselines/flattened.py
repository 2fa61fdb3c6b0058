"""Our adapter on an f_S without its leak, as measured on held-out training rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from sfboost_lab.baselines.contract import Predictor
from sfboost_lab.baselines.sfb import OtherStable, SFBOurs


@dataclass(frozen=True)
class FlattenedSFB(SFBOurs):
    """The adapter "sfb" after the leak is taken out of f_S, as measured on held-out training rows.

    Examples
    --------
    >>> FlattenedSFB(rounds=5).title
    'SFB (ours)'
    """

    name: ClassVar[str] = "sfb-flat"

    def adapt(self, predictor: Predictor, X_test: Any, y_test: Any = None, *, seed: int = 0) -> Predictor:
        """Adapt to unlabelled rows."""
        flat: Any = Flattened(predictor)
        return super().adapt(flat, X_test, y_test, seed=seed)


class Flattened(OtherStable):
    """A predictor whose f_S says nothing of Φ_U beyond the label.

    Examples
    --------
    >>> class Model:
    ...     def flatten(self, proba, unstable):
    ...         return 1 - proba
    >>> class Leaky:
    ...     def leak_model(self):
    ...         return Model()
    ...     def stable_and_unstable(self, X):
    ...         return np.log([[0.25, 0.75]]), np.zeros((1, 1))
    >>> Flattened(Leaky()).predict_proba(None)
    array([[0.75, 0.25]])
    """

    def stable_and_unstable(self, X: Any) -> tuple[Any, Any]:
        """Log f_S without its leak, and Φ_U."""
        stable, unstable = super().stable_and_unstable(X)
        return np.log(self._predictor.leak_model().flatten(np.exp(stable), unstable)), unstable
