"""Bayes ceilings: the best accuracy anyone can reach in a domain with given features.

Three ways, by what the family allows: a sum over cells (exact), quadrature (one or two dimensions), or draws
with their standard error. All compute E[max_y Pr(y | x)].
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import trapezoid
from scipy.stats import multivariate_normal

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Ceiling:
    """A Bayes accuracy and how well it is known.

    Parameters
    ----------
    accuracy : float
        Best reachable accuracy.
    error : float
        0 where exact; for quadrature the change when the grid is halved; for draws the standard error.
    how : {"exact", "quadrature", "draws"}
        The way it was computed.

    Examples
    --------
    >>> from sfboost_lab.datasets.synthetic import anti_causal
    >>> anti_causal().ceiling("test-0.1")
    Ceiling(accuracy=0.9, error=0.0, how='exact')
    """

    accuracy: float
    error: float
    how: str


def finite_ceiling(cells: Floats, masses: Floats, features: list[int]) -> Ceiling:
    """Return the exact ceiling of a finite joint distribution.

    Parameters
    ----------
    cells : ndarray of shape (n_cells, n_features)
        The values X can take.
    masses : ndarray of shape (n_cells, n_classes)
        Pr[X = cell, Y = class].
    features : list of int
        The columns the classifier may see.

    Examples
    --------
    >>> import numpy as np
    >>> from sfboost_lab.datasets.synthetic.ceilings import finite_ceiling
    >>> finite_ceiling(np.array([[0.0], [1.0]]), np.array([[0.4, 0.1], [0.2, 0.3]]), [0]).accuracy
    0.7
    """
    _, cell = np.unique(cells[:, features], axis=0, return_inverse=True)
    seen = np.zeros((cell.max() + 1, masses.shape[1]))
    np.add.at(seen, cell.ravel(), masses)
    # Rounding of the last digits: sums of decimal probabilities should print as such.
    return Ceiling(round(float(seen.max(axis=1).sum()), 14), 0.0, "exact")


def gaussian_ceiling(
    means: Floats, covariance: Floats, priors: Floats, *, n_draws: int = 200_000, random_state: int = 0
) -> Ceiling:
    """Return the ceiling of Gaussian classes: quadrature up to two dimensions, draws beyond.

    Parameters
    ----------
    means : ndarray of shape (n_classes, n_features)
        Class means.
    covariance : ndarray of shape (n_features, n_features)
        Covariance within every class.
    priors : ndarray of shape (n_classes,)
        Class probabilities.
    n_draws, random_state : int
        Size and seed of the draws.

    Examples
    --------
    >>> import numpy as np
    >>> from sfboost_lab.datasets.synthetic.ceilings import gaussian_ceiling
    >>> made = gaussian_ceiling(np.array([[-1.0], [1.0]]), np.eye(1), np.array([0.5, 0.5]))
    >>> round(made.accuracy, 4), made.how
    (0.8413, 'quadrature')
    """
    if means.shape[1] == 0:
        return Ceiling(float(priors.max()), 0.0, "exact")
    if means.shape[1] <= 2:
        return _by_quadrature(means, covariance, priors)
    return _by_draws(means, covariance, priors, n_draws, random_state)


def _weighted_densities(x: Floats, means: Floats, covariance: Floats, priors: Floats) -> Floats:
    classes = [p * multivariate_normal(m, covariance).pdf(x) for m, p in zip(means, priors, strict=True)]
    return np.stack(classes)


def _by_quadrature(means: Floats, covariance: Floats, priors: Floats) -> Ceiling:
    n_points = 20_001 if means.shape[1] == 1 else 1201
    spread = 9 * np.sqrt(np.diag(covariance))
    axes = [
        np.linspace(low, high, n_points)
        for low, high in zip(means.min(axis=0) - spread, means.max(axis=0) + spread, strict=True)
    ]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
    best: Any = (
        _weighted_densities(grid, means, covariance, priors).max(axis=0).reshape((n_points,) * len(axes))
    )

    def integral(step: int) -> float:
        value = best[(slice(None, None, step),) * len(axes)]
        for axis in reversed(axes):
            value = trapezoid(value, axis[::step], axis=-1)
        return float(value)

    fine = integral(1)
    return Ceiling(min(fine, 1.0), abs(fine - integral(2)), "quadrature")


def _by_draws(means: Floats, covariance: Floats, priors: Floats, n_draws: int, random_state: int) -> Ceiling:
    rng = np.random.default_rng(random_state)
    y = rng.choice(len(priors), size=n_draws, p=priors)
    x = means[y] + rng.multivariate_normal(np.zeros(means.shape[1]), covariance, size=n_draws)
    weighted = _weighted_densities(x, means, covariance, priors)
    # max_y Pr(y | x) varies less than the event "the best guess is right", and has the same mean.
    confidence = weighted.max(axis=0) / weighted.sum(axis=0)
    return Ceiling(float(confidence.mean()), float(confidence.std(ddof=1) / np.sqrt(n_draws)), "draws")
