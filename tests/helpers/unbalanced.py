"""Families whose classes are not equally frequent, with everything about them known exactly.

X_S and X_U each name a class. X_S names the label with probability `accuracy` and every other class equally
often; X_U does so with probability `agreement`, which is the domain's own. They are independent given the
label.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from joints import normalise

from sfboost_lab.theory import FiniteJoint

#: Class shares by name: 5, 10 and 20 % positives, and a skewed K = 3 and K = 5.
PRIORS = {
    "5 %": (0.95, 0.05),
    "10 %": (0.9, 0.1),
    "20 %": (0.8, 0.2),
    "K = 3": (0.7, 0.2, 0.1),
    "K = 5": (0.5, 0.2, 0.15, 0.1, 0.05),
}
BINARY = tuple(name for name, prior in PRIORS.items() if len(prior) == 2)


def naming(right, n_classes):
    """P(named | label) of shape (K, K): rows are labels."""
    table = np.full((n_classes, n_classes), (1 - right) / (n_classes - 1))
    np.fill_diagonal(table, right)
    return table


@dataclass(frozen=True)
class Family:
    """Class shares and the accuracy of X_S; a domain adds its agreement."""

    prior: tuple[float, ...]
    accuracy: float = 0.75

    @property
    def n_classes(self):
        return len(self.prior)

    def joint(self, agreement, prior=None):
        """P(X_S, X_U, Y) of a domain."""
        k = self.n_classes
        shares = np.array(self.prior if prior is None else prior)
        return FiniteJoint.from_conditionals(shares, naming(self.accuracy, k), naming(agreement, k))

    def stable(self, named, prior=None):
        """f_S = Pr[Y | X_S], exact."""
        return self.joint(0.5, prior).stable_posterior[named]

    def leaky(self, named, unstable, strength=2.0):
        """f_S with a leak: its log-odds are raised by `strength` for the class that X_U names."""
        raised = np.log(self.stable(named)) + strength * np.eye(self.n_classes)[unstable]
        return normalise(np.exp(raised))

    def draw(self, n, agreement, rng, prior=None):
        """X_S, X_U and labels of n rows."""
        cells = self.joint(agreement, prior).table
        chosen = rng.choice(cells.size, size=n, p=cells.ravel())
        return np.unravel_index(chosen, cells.shape)

    def ceiling(self, agreement, prior=None):
        """Accuracy of the best rule from X_S and X_U."""
        return float(self.joint(agreement, prior).table.max(axis=2).sum())

    def stable_ceiling(self, prior=None):
        """Accuracy of the best rule from X_S alone."""
        return float(self.joint(0.5, prior).table.sum(axis=1).max(axis=1).sum())

    def training(self, n, rng, agreements=(0.9, 0.7)):
        """X_S, X_U, labels and domains of several training domains of n rows each."""
        parts = [self.draw(n, agreement, rng) for agreement in agreements]
        named, unstable, y = (np.concatenate(part) for part in zip(*parts, strict=True))
        return named, unstable, y, np.repeat(np.arange(len(agreements)), n)


def columns(unstable, n_classes):
    """X_U as numeric columns: one for two classes, else one per class."""
    return unstable[:, None].astype(float) if n_classes == 2 else np.eye(n_classes)[unstable]
