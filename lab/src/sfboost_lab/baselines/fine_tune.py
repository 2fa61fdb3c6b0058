"""Fine-tuning the last layer on labels of the test domain: ACTIR's test-time step, for any predictor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sfboost_lab.baselines.contract import Floats, HeadAdapter, LinearHead, Positions, TestAccess
from sfboost_lab.baselines.descent import descend


@dataclass(frozen=True)
class FineTune(HeadAdapter):
    """Minimise the cross-entropy of labelled test rows over the weights of the last layer (ORACLE).

    Parameters
    ----------
    n_labels : int, optional
        Labels used, drawn at random; None for all that are handed over. ACTIR reports 1 to 10 on synthetic
        data.
    learning_rate, batch_size, epochs : float, int, int
        As in ACTIR's scripts.
    train_intercept : bool
        ACTIR has no intercepts.

    Examples
    --------
    >>> import numpy as np
    >>> head = LinearHead.of([[1.0]], [0.0])
    >>> tuned = FineTune(epochs=200).adapt_features(head, np.array([[1.0], [-1.0]]), np.array([0, 1]))
    >>> bool(tuned.coef[1, 0] < 0)
    True
    """

    name: ClassVar[str] = "fine-tune"
    title: ClassVar[str] = "fine-tuning (labels)"
    test_access: ClassVar[TestAccess] = "labelled"

    n_labels: int | None = 10
    learning_rate: float = 1e-2
    batch_size: int = 100
    epochs: int = 20
    train_intercept: bool = False

    def adapt_features(
        self, head: LinearHead, features: Floats, y: Positions | None = None, *, seed: int = 0
    ) -> LinearHead:
        """Return the head after training on the labels."""
        if y is None:
            raise ValueError("Fine-tuning needs labels of the test domain: pass y_test.")
        chosen = np.random.default_rng(seed).permutation(len(y))[: self.n_labels]
        targets = np.eye(len(head.coef))[y[chosen]]

        def gradient(log_proba: Floats, rows: Positions) -> Floats:
            return (np.exp(log_proba) - targets[rows]) / len(rows)

        return descend(
            head,
            features[chosen],
            gradient,
            learning_rate=self.learning_rate,
            batch_size=self.batch_size,
            epochs=self.epochs,
            train_intercept=self.train_intercept,
            seed=seed,
        )
