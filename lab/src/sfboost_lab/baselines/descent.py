"""Small steps of a linear head on cached features: what pseudo-labels, Tent and fine-tuning share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from scipy.special import log_softmax

from sfboost_lab.baselines.contract import Floats, HeadAdapter, LinearHead, Positions

_BETA1, _BETA2, _EPSILON = 0.9, 0.999, 1e-8

Gradient = Callable[[Floats, Positions], Floats | None]
"""From log-probabilities of a batch and its rows to the gradient in the logits, or None for no step."""


def batches(n_rows: int, size: int, epochs: int, seed: int) -> Iterator[Positions]:
    """Yield row numbers, `size` at a time, each row once per epoch, in an order that the seed decides.

    Examples
    --------
    >>> sorted(np.concatenate(list(batches(5, 2, 1, 0))).tolist())
    [0, 1, 2, 3, 4]
    """
    rng = np.random.default_rng(seed)
    for _ in range(epochs):
        order = rng.permutation(n_rows)
        for first in range(0, n_rows, size):
            yield order[first : first + size]


def descend(
    head: LinearHead,
    features: Floats,
    gradient: Gradient,
    *,
    learning_rate: float,
    batch_size: int,
    epochs: int = 1,
    updates: int = 1,
    train_intercept: bool = True,
    seed: int = 0,
) -> LinearHead:
    """Return the head after Adam steps (torch's defaults) over batches of rows.

    Parameters
    ----------
    head : LinearHead
        The start; not changed.
    features : ndarray of shape (n, d)
    gradient : callable
        Of the loss of a batch in its logits, given log-probabilities and row numbers; None skips the batch.
    learning_rate : float
    batch_size, epochs, updates : int
        Rows per batch, passes over the rows, steps per batch.
    train_intercept : bool
    seed : int
        Of the order of the rows.

    Examples
    --------
    >>> head = LinearHead.of([[0.0]], [0.0])
    >>> towards_first = lambda log_proba, rows: np.exp(log_proba) - [1.0, 0.0]
    >>> descend(head, np.ones((1, 1)), towards_first, learning_rate=0.1, batch_size=1).coef.round(3)
    array([[ 0.1],
           [-0.1]])
    """
    theta = np.hstack([head.coef, head.intercept[:, None]])
    first, second, step = np.zeros_like(theta), np.zeros_like(theta), 0
    for rows in batches(len(features), batch_size, epochs, seed):
        batch = np.hstack([features[rows], np.full((len(rows), 1), float(train_intercept))])
        for _ in range(updates):
            logits = batch[:, :-1] @ theta[:, :-1].T + theta[:, -1]
            by_logit = gradient(log_softmax(logits, axis=1), rows)
            if by_logit is None:
                continue
            step += 1
            slope = by_logit.T @ batch
            first = _BETA1 * first + (1 - _BETA1) * slope
            second = _BETA2 * second + (1 - _BETA2) * slope**2
            size = np.sqrt(second / (1 - _BETA2**step)) + _EPSILON
            theta = theta - learning_rate * first / (1 - _BETA1**step) / size
    return LinearHead(theta[:, :-1].copy(), theta[:, -1].copy())


@dataclass(frozen=True)
class UnlabelledDescent(HeadAdapter):
    """Base of adapters that descend a loss of the predictions themselves: `gradient` is all they define.

    Parameters
    ----------
    learning_rate : float
        Of Adam.
    batch_size, epochs, updates : int
        Rows per batch, passes, steps per batch.
    """

    learning_rate: float = 1e-3
    batch_size: int = 200
    epochs: int = 1
    updates: int = 1

    def gradient(self, log_proba: Floats) -> Floats | None:
        """Return the gradient of the loss of a batch in its logits, or None for no step."""
        raise NotImplementedError

    def adapt_features(
        self, head: LinearHead, features: Floats, y: Positions | None = None, *, seed: int = 0
    ) -> LinearHead:
        """Return the head after one pass or more."""
        return descend(
            head,
            features,
            lambda log_proba, rows: self.gradient(log_proba),
            learning_rate=self.learning_rate,
            batch_size=self.batch_size,
            epochs=self.epochs,
            updates=self.updates,
            seed=seed,
        )
