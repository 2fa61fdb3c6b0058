"""SHOT (Liang et al., 2020) from cached features: the classifier stays, the features are moved towards it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import softmax

from sfboost_lab.baselines.contract import Floats, HeadAdapter, LinearHead, Positions
from sfboost_lab.baselines.head_adapters import batches

_EPSILON = 1e-5


@dataclass(frozen=True)
class SHOT(HeadAdapter):
    """Train an affine map of the features, Az + b, with the classifier frozen.

    The loss is 0.3 · cross-entropy with pseudo-labels + mean entropy − entropy of the mean prediction;
    pseudo-labels are the nearest class centroids by cosine, refreshed every epoch. Published SHOT moves the
    backbone too; from cached features its bottleneck can move, here a map that starts as the identity.
    The published label smoothing and normalised weights of the source classifier are not assumed.

    Gradients in A have the form Wᵀ(·) with W the classifier, so A = aI + WᵀM at every step, and keeping a and
    M (K × d) instead of A (d × d) is exact. The result is again a linear head.

    Parameters
    ----------
    pseudo_weight : float
        Of the pseudo-labels.
    learning_rate, momentum, decay : float
        Of SGD with Nesterov's momentum; the rate falls as (1 + 10 t/T)^−0.75.
    batch_size, epochs : int

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> features = rng.normal(size=(200, 2)) + 3 * rng.choice([-1, 1], (200, 1))
    >>> SHOT().adapt_features(LinearHead.of([[1.0, 0.0]], [1.0]), features).coef.shape
    (2, 2)
    """

    name: ClassVar[str] = "shot"
    title: ClassVar[str] = "SHOT (features)"

    pseudo_weight: float = 0.3
    learning_rate: float = 1e-2
    momentum: float = 0.9
    decay: float = 1e-3
    batch_size: int = 64
    epochs: int = 15

    def adapt_features(
        self, head: LinearHead, features: Floats, y: Positions | None = None, *, seed: int = 0
    ) -> LinearHead:
        """Return the classifier of moved features as a head of the features as they were."""
        coef, gram, n_rows = head.coef, head.coef @ head.coef.T, len(features)
        n_classes, d = coef.shape
        base = features @ coef.T
        # One vector of state: M (K × d), m with b = Wᵀm, and the scale a of the identity.
        state = np.concatenate([np.zeros(n_classes * (d + 1)), [1.0]])
        velocity = np.zeros_like(state)
        per_epoch = -(-n_rows // self.batch_size)
        total = self.epochs * per_epoch
        labels = np.zeros((0, n_classes))
        for step, rows in enumerate(batches(n_rows, self.batch_size, self.epochs, seed)):
            moved, shift, scale = _parts(state, n_classes, d)
            if step % per_epoch == 0:
                seen = scale * features + (features @ moved.T + shift) @ coef
                labels = np.eye(n_classes)[nearest_centroids(seen, head.proba(seen))]
            reached = scale * base[rows] + (features[rows] @ moved.T + shift) @ gram + head.intercept
            by_logit = _loss_gradient(softmax(reached, axis=1), labels[rows], self.pseudo_weight)
            # a multiplies the identity, which no gradient has a part in: it only decays.
            slope = np.concatenate([(by_logit.T @ features[rows]).ravel(), by_logit.sum(axis=0), [0.0]])
            slope += self.decay * state
            velocity = self.momentum * velocity + slope
            rate = self.learning_rate * (1 + 10 * (step + 1) / total) ** -0.75
            state = state - rate * (slope + self.momentum * velocity)
        moved, shift, scale = _parts(state, n_classes, d)
        return LinearHead(scale * coef + gram @ moved, head.intercept + gram @ shift)


def _parts(state: Floats, n_classes: int, d: int) -> tuple[Floats, Floats, float]:
    size = n_classes * d
    return state[:size].reshape(n_classes, d), state[size : size + n_classes], float(state[-1])


def _loss_gradient(proba: Floats, labels: Floats, pseudo_weight: float) -> Floats:
    """Gradient of the loss of a batch in its logits."""
    n, mean = len(proba), proba.mean(axis=0)
    entropy = -np.log(proba + _EPSILON) - proba / (proba + _EPSILON)
    diversity = np.log(mean + _EPSILON) + mean / (mean + _EPSILON)
    by_proba = (entropy + diversity) / n
    through = proba * (by_proba - (proba * by_proba).sum(axis=1, keepdims=True))
    return pseudo_weight * (proba - labels) / n + through


def nearest_centroids(features: Floats, proba: Floats) -> Positions:
    """Return SHOT's pseudo-labels: the class with the nearest centroid by cosine, in two passes.

    Only classes that some row is predicted as take part. An empty class in the second pass keeps its centroid
    of the first.

    Examples
    --------
    >>> import numpy as np
    >>> nearest_centroids(np.array([[1.0, 0.0], [0.0, 1.0]]), np.eye(2))
    array([0, 1])
    """
    rows = np.hstack([features, np.ones((len(features), 1))])
    rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    present = np.unique(proba.argmax(axis=1))
    centroids = (proba.T @ rows / (1e-8 + proba.sum(axis=0)[:, None]))[present]
    nearest = _by_cosine(rows, centroids)
    members = np.eye(len(present))[nearest]
    filled = members.any(axis=0)
    centroids[filled] = (members.T @ rows / (1e-8 + members.sum(axis=0)[:, None]))[filled]
    return present[_by_cosine(rows, centroids)]


def _by_cosine(rows: Floats, centroids: Floats) -> Positions:
    """The nearest centroid of each row; rows have length one, so a product does for the distance."""
    return (rows @ (centroids / np.linalg.norm(centroids, axis=1, keepdims=True)).T).argmax(axis=1)
