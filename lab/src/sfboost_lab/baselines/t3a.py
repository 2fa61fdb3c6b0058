"""T3A (Iwasawa & Matsuo, 2021): class templates from the test rows that the classifier is sure of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import entr

from sfboost_lab.baselines.contract import Floats, HeadAdapter, LinearHead, Positions


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
