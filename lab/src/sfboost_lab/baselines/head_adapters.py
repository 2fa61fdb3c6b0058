"""Adapters of the last layer alone: pseudo-labels, T3A, Tent, fine-tuning, or none."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import entr, log_softmax

from sfboost_lab.baselines.contract import (
    Floats,
    HeadAdapter,
    LinearHead,
    Method,
    Positions,
    Predictor,
    TestAccess,
)


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


@dataclass(frozen=True)
class T3A(HeadAdapter):
    """Replace each row of the head by the mean direction of the rows predicted as that class.

    Supports begin with the rows of the head itself. Every test row joins the class that the source predicts;
    per class the `filter_size` supports of least entropy stay. The new head is the direction of the sum of
    their directions, without intercept. Which rows stay does not depend on their order, so the published
    online form ends with the same head.

    Unlike the published code, a class that has no support keeps the direction of its own row, and no filter
    means all supports (there, all but one).

    Parameters
    ----------
    filter_size : int, optional
        Supports kept per class; None for all. The published grid is 1, 5, 20, 50, 100, all.

    Examples
    --------
    >>> import numpy as np
    >>> head = LinearHead.of([[1.0, 0.0]], [0.0])
    >>> T3A().adapt_features(head, np.array([[1.0, 1.0], [-1.0, -1.0]])).coef.round(2)
    array([[-0.92, -0.38],
           [ 0.92,  0.38]])
    """

    name: ClassVar[str] = "t3a"
    title: ClassVar[str] = "T3A"

    filter_size: int | None = 100

    def adapt_features(
        self, head: LinearHead, features: Floats, y: Positions | None = None, *, seed: int = 0
    ) -> LinearHead:
        """Return the templates as a head."""
        supports = np.vstack([head.coef, features])
        proba = head.proba(supports)
        label, entropy = proba.argmax(axis=1), entr(proba).sum(axis=1)
        directions = _directions(supports)
        templates = _directions(head.coef)
        for k in range(len(head.coef)):
            members = np.flatnonzero(label == k)
            if len(members):
                kept = members[np.argsort(entropy[members], kind="stable")[: self.filter_size]]
                templates[k] = directions[kept].sum(axis=0)
        return LinearHead(_directions(templates), np.zeros(len(templates)))


def _directions(rows: Floats) -> Floats:
    """Rows of length one; a zero row stays zero."""
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.divide(rows, length, out=np.zeros_like(rows, dtype=np.float64), where=length > 0)
