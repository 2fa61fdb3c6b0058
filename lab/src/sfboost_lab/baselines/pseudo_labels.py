"""Pseudo-labelling (Lee, 2013) of the last layer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sfboost_lab.baselines.contract import Floats
from sfboost_lab.baselines.descent import UnlabelledDescent


@dataclass(frozen=True)
class PseudoLabelLast(UnlabelledDescent):
    """Train the last layer on its own predictions, where it is sure of them.

    A batch in which no row is sure makes no step (the published code divides by zero there).

    Parameters
    ----------
    threshold : float
        Rows whose largest probability is above this count.
    learning_rate : float
        Of Adam. Published: the rate of training times 0.1, 1 or 10; the default is ColoredMNIST's rate. Ten
        times that already drives its predictor to one class.
    batch_size, epochs, updates : int
        Rows per batch, passes, steps per batch (published: 32, one pass online, 1 or 3).

    Examples
    --------
    >>> import numpy as np
    >>> from sfboost_lab.baselines.contract import LinearHead
    >>> unsure = LinearHead.of([[1.0]], [0.0])
    >>> PseudoLabelLast().adapt_features(unsure, np.array([[0.5]])).coef.ravel().tolist()
    [-0.5, 0.5]
    """

    name: ClassVar[str] = "pl-last"
    title: ClassVar[str] = "PL (last)"

    threshold: float = 0.9
    learning_rate: float = 1e-4
    batch_size: int = 32

    def gradient(self, log_proba: Floats) -> Floats | None:
        """Of the cross-entropy with the predicted class, over the rows that are sure of it."""
        proba = np.exp(log_proba)
        sure = proba.max(axis=1) > self.threshold
        if not sure.any():
            return None
        labels = np.eye(proba.shape[1])[proba.argmax(axis=1)]
        return (proba - labels) * sure[:, None] / sure.sum()
