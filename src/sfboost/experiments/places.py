"""Places made of labelled rows: where candidates are adapted blind and scored, so that a rule can choose."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sfboost.adaptation.stress import stress_domains, unstable_guess
from sfboost.boosting.metrics import score_predictions

IntArray = npt.NDArray[np.intp]
FloatArray = npt.NDArray[np.float64]
Predict = Callable[["Place"], FloatArray]


@dataclass(frozen=True, eq=False)
class Place:
    """Rows of one domain as a trained model sees them; `y` is for scoring alone.

    Attributes
    ----------
    name : str
        "test-0.1", "validate-0.6", "held/train-0.9", "stress/0.3", "oracle/test-0.1" or "left-out/photo".
    X : array of shape (n, d)
        What is adapted on: unstable features, or those of the last layer.
    stable : array of shape (n, K)
        The model's probabilities.
    y : integer array of shape (n,)
    """

    name: str
    X: Any
    stable: FloatArray
    y: IntArray

    def take(self, name: str, rows: IntArray) -> Place:
        """Some of the rows under another name."""
        return Place(name, self.X[rows], self.stable[rows], self.y[rows])


def stress_places(pool: Place, domain: npt.NDArray[Any], *, n_rows: int | None = None) -> Iterator[Place]:
    """Yield labelled rows resampled to other meanings of the unstable features; none if that cannot be done.

    Parameters
    ----------
    pool : Place
        Labelled rows of several domains that were not trained on.
    domain : array of shape (n,)
        The domain of each row.
    n_rows : int, optional
        Rows per stress domain.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 400)
    >>> X = np.where(rng.random(400) < 0.8, y, 1 - y)[:, None].astype(float)
    >>> pool = Place("pool", X, np.full((400, 2), 0.5), y)
    >>> [place.name for place in stress_places(pool, np.arange(400) % 2)][:2]
    ['stress/0.1', 'stress/0.3']
    """
    try:
        guess = unstable_guess(pool.X, pool.y, domain)
        made = stress_domains(pool.y, guess, n_rows=n_rows)
    except ValueError:  # features that say nothing guess one class: there is nothing to resample by
        return
    for stress in made:
        yield pool.take(f"stress/{stress.agreement:g}", stress.rows)


def measure_places(places: list[Place], predict: Predict) -> dict[str, dict[str, float]]:
    """Return every metric of every place, for predictions made without its labels.

    Examples
    --------
    >>> place = Place("test", np.zeros((2, 1)), np.array([[0.9, 0.1], [0.2, 0.8]]), np.array([0, 1]))
    >>> measure_places([place], lambda p: p.stable)["test"]["accuracy"]
    1.0
    """
    return {place.name: score_predictions(place.y, predict(place)) for place in places}
