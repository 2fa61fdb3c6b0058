"""Which predictions adapting changed, with examples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfboost.adaptation.costs import decided
from sfboost.marginal.probabilities import FloatArray

MOST_EXAMPLES = 8
_MOST_CELLS = 8


@dataclass(frozen=True)
class Example:
    """One row whose predicted class changed; probabilities are of the class that is now predicted."""

    row: int
    cells: Mapping[str, str]
    stable_class: str
    adapted_class: str
    stable: float
    adapted: float


@dataclass(frozen=True)
class Changes:
    """How many predictions changed, from which class to which, and some of them.

    Attributes
    ----------
    counts : tuple of tuples, of shape (K, K)
        Rows by stable class and adapted class.
    """

    n_rows: int
    n_changed: int
    counts: tuple[tuple[int, ...], ...]
    examples: tuple[Example, ...]

    @property
    def share(self) -> float:
        """Share of the rows whose predicted class changed."""
        return self.n_changed / self.n_rows


def find_changes(
    classes: Sequence[str],
    stable: FloatArray,
    adapted: FloatArray,
    cells: Sequence[Mapping[str, Any]] | None,
    costs: FloatArray | None = None,
) -> Changes:
    """Compare two predictions of the same rows.

    Parameters
    ----------
    stable, adapted : arrays of shape (n, K)
    cells : the rows as they were given, or None to show none of them
    costs : array of shape (K, K), optional
        Of wrong decisions: predicted classes are then the cheapest ones.
    """
    before, after = decided(stable, costs), decided(adapted, costs)
    counts = np.zeros((len(classes), len(classes)), dtype=int)
    np.add.at(counts, (before, after), 1)
    changed = np.flatnonzero(before != after)
    moved = adapted[changed, after[changed]] - stable[changed, after[changed]]
    # The surest changes first; ties keep the order of the table.
    chosen = changed[np.argsort(-moved, kind="stable")][:MOST_EXAMPLES]
    examples = (
        []
        if cells is None
        else [
            Example(
                row=int(i) + 1,
                cells={name: _shown(value) for name, value in list(cells[i].items())[:_MOST_CELLS]},
                stable_class=classes[before[i]],
                adapted_class=classes[after[i]],
                stable=float(stable[i, after[i]]),
                adapted=float(adapted[i, after[i]]),
            )
            for i in chosen
        ]
    )
    return Changes(len(stable), len(changed), tuple(map(tuple, counts.tolist())), tuple(examples))


def _shown(value: Any) -> str:
    if value is None or value != value:
        return "–"
    if not isinstance(value, float):
        return str(value)[:40]
    # Nobody reads 2e+05.
    return f"{value:.0f}" if 1e4 <= abs(value) < 1e15 else f"{value:.4g}"
