"""Tent (Wang et al., 2021) on the classifier: lower the entropy of the predictions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from sfboost.lab.baselines.contract import Floats, HeadAdapter, LinearHead
from sfboost.lab.baselines.descent import descend


@dataclass(frozen=True)
class Tent(HeadAdapter):
    """Minimise the mean entropy of the predictions over the last layer.

    This is the variant for networks without batch normalisation (Tent-C of the T3A authors), because the
    networks of these experiments have none; `TentNorm` is the published form for those that have.

    Parameters
    ----------
    learning_rate : float
        Of Adam (published: 1e-3).
    batch_size, epochs, updates : int
        Rows per batch, passes, steps per batch (published: 200, one pass online, 1).

    Examples
    --------
    >>> import numpy as np
    >>> head = LinearHead.of([[1.0]], [0.0])
    >>> bool(Tent().adapt_features(head, np.array([[1.0], [-1.0]])).coef[1, 0] > 0.5)  # surer than before
    True
    """

    name: ClassVar[str] = "tent"
    title: ClassVar[str] = "Tent (classifier)"

    learning_rate: float = 1e-3
    batch_size: int = 200
    epochs: int = 1
    updates: int = 1

    def adapt_features(
        self,
        head: LinearHead,
        features: Floats,
        y: npt.NDArray[np.intp] | None = None,
        *,
        seed: int = 0,
    ) -> LinearHead:
        """Return the head after one pass or more."""

        def gradient(log_proba: Floats, rows: npt.NDArray[np.intp]) -> Floats:
            proba = np.exp(log_proba)
            entropy = -(proba * log_proba).sum(axis=1, keepdims=True)
            return -proba * (log_proba + entropy) / len(proba)

        return descend(
            head,
            features,
            gradient,
            learning_rate=self.learning_rate,
            batch_size=self.batch_size,
            epochs=self.epochs,
            updates=self.updates,
            seed=seed,
        )
