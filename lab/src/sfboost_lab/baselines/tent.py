"""Tent (Wang et al., 2021) on the classifier: lower the entropy of the predictions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sfboost_lab.baselines.contract import Floats
from sfboost_lab.baselines.descent import UnlabelledDescent


@dataclass(frozen=True)
class Tent(UnlabelledDescent):
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
    >>> from sfboost_lab.baselines.contract import LinearHead
    >>> head = LinearHead.of([[1.0]], [0.0])
    >>> bool(Tent().adapt_features(head, np.array([[1.0], [-1.0]])).coef[1, 0] > 0.5)  # surer than before
    True
    """

    name: ClassVar[str] = "tent"
    title: ClassVar[str] = "Tent (classifier)"

    def gradient(self, log_proba: Floats) -> Floats:
        """Of the mean entropy."""
        proba = np.exp(log_proba)
        entropy = -(proba * log_proba).sum(axis=1, keepdims=True)
        return -proba * (log_proba + entropy) / len(proba)
