"""Random problems with dials: for measuring size, power and harm on data whose truth is known.

Gaussian family: X_S | Y is normal around a class corner, Y | X_S is one posterior in all domains (also where
X_S itself shifts), and X_U = mean of the class in this domain + violation · (X_S within its class) + noise.
Discrete family (two classes): X_S copies Y with some probability, X_U copies Y with another one, or, with
probability `violation`, copies X_S.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache

import numpy as np
import numpy.typing as npt
from scipy.special import softmax

from sfboost.marginal.probabilities import FloatArray

IntArray = npt.NDArray[np.intp]


@dataclass(frozen=True)
class Dials:
    """What a random problem looks like.

    Attributes
    ----------
    n_classes : int
    informativeness : float
        s of the true P(Y | X_S) for equal class shares.
    n_rows, n_training_rows : int
        Of the new domain, and of each training domain.
    n_domains : int
        Training domains.
    n_unstable : int
        Columns of X_U.
    strength : float
        Scale of the class means of X_U, drawn anew in each domain.
    training_violation, new_violation : float
        Slope of X_U on X_S within a class; zero is complementarity (Definition 4.3).
    covariate_shift : float
        How much the law of X_S differs between domains; P(Y | X_S) stays.
    label_shift : float
        How much the class shares differ between domains while P(X_S | Y) stays: breaks the paper's
        stability.
    family : {"gaussian", "discrete"}
    """

    n_classes: int = 2
    informativeness: float = 0.3
    n_rows: int = 2000
    n_training_rows: int = 2000
    n_domains: int = 2
    n_unstable: int = 1
    strength: float = 1.0
    training_violation: float = 0.0
    new_violation: float = 0.0
    covariate_shift: float = 0.0
    label_shift: float = 0.0
    family: str = "gaussian"


@dataclass(frozen=True, eq=False)
class SimulatedDomain:
    """Rows of one domain: stable columns, unstable columns, labels, and the true P(Y | X_S)."""

    X_stable: FloatArray
    X_unstable: FloatArray
    y: IntArray
    posterior: FloatArray

    @property
    def X(self) -> FloatArray:  # noqa: N802  (scikit-learn's name)
        """Stable columns, then unstable ones."""
        return np.column_stack([self.X_stable, self.X_unstable])


@dataclass(frozen=True, eq=False)
class SimulatedProblem:
    """Labelled training domains and a new one whose labels are for scoring only."""

    dials: Dials
    training: tuple[SimulatedDomain, ...]
    new: SimulatedDomain
    n_stable: int = field(default=1)

    def training_rows(self) -> tuple[FloatArray, IntArray, IntArray]:
        """X, y and domain numbers of all training rows."""
        domain = np.repeat(np.arange(len(self.training)), [len(part.y) for part in self.training])
        return (
            np.vstack([part.X for part in self.training]),
            np.concatenate([part.y for part in self.training]),
            domain,
        )


def simulate(dials: Dials, seed: int) -> SimulatedProblem:
    """Draw a problem; the same seed gives the same rows.

    Examples
    --------
    >>> problem = simulate(Dials(n_classes=3, n_rows=50), seed=0)
    >>> problem.new.X_stable.shape, len(problem.training)
    ((50, 3), 2)
    """
    rng = np.random.default_rng(seed)
    draw = {"gaussian": _gaussian_domain, "discrete": _discrete_domain}[dials.family]
    # The aspect of X_S that X_U follows is one of the problem; its direction in X_U is the domain's.
    aspect = rng.normal(size=dials.n_classes)
    aspect -= aspect.mean()
    aspect /= np.linalg.norm(aspect)
    training = tuple(
        draw(dials, dials.n_training_rows, dials.training_violation, aspect, rng)
        for _ in range(dials.n_domains)
    )
    new = draw(dials, dials.n_rows, dials.new_violation, aspect, rng)
    return SimulatedProblem(dials, training, new, new.X_stable.shape[1])


def _gaussian_domain(
    dials: Dials, n_rows: int, violation: float, aspect: FloatArray, rng: np.random.Generator
) -> SimulatedDomain:
    n_classes = dials.n_classes
    distance = corner_distance(n_classes, round(dials.informativeness, 4))
    shares = softmax(dials.label_shift * rng.normal(size=n_classes))
    if dials.label_shift:
        y = rng.choice(n_classes, n_rows, p=shares)
        X_stable = distance * np.eye(n_classes)[y] + rng.normal(size=(n_rows, n_classes))
        posterior = softmax(distance * X_stable + np.log(shares), axis=1)
    else:
        # Where X_S is drawn from does not touch P(Y | X_S): covariate shift.
        source = rng.choice(n_classes, n_rows, p=softmax(dials.covariate_shift * rng.normal(size=n_classes)))
        X_stable = distance * np.eye(n_classes)[source] + rng.normal(size=(n_rows, n_classes))
        posterior = softmax(distance * X_stable, axis=1)
        y = (rng.random(n_rows)[:, None] > posterior.cumsum(axis=1)).sum(axis=1)
        y = np.minimum(y, n_classes - 1)
    within = (X_stable - distance * np.eye(n_classes)[y]) @ aspect
    direction = rng.normal(size=dials.n_unstable)
    direction /= np.linalg.norm(direction)
    means = dials.strength * rng.normal(size=(n_classes, dials.n_unstable))
    X_unstable = means[y] + violation * np.outer(within, direction)
    X_unstable += rng.normal(size=(n_rows, dials.n_unstable))
    return SimulatedDomain(X_stable, X_unstable, y, posterior)


def _discrete_domain(
    dials: Dials, n_rows: int, violation: float, aspect: FloatArray, rng: np.random.Generator
) -> SimulatedDomain:
    if dials.n_classes != 2:
        raise ValueError(f"The discrete family has two classes, got n_classes={dials.n_classes}.")
    right = 0.5 + 0.5 * np.sqrt(dials.informativeness)  # s = (2a − 1)²
    y = rng.integers(0, 2, n_rows)
    stable = np.where(rng.random(n_rows) < right, y, 1 - y)
    posterior = np.where(stable[:, None] == np.arange(2), right, 1.0 - right)
    agreement = rng.uniform(0.05, 0.95)
    unstable = np.where(rng.random(n_rows) < agreement, y, 1 - y)
    copied = rng.random(n_rows) < min(abs(violation), 1.0)
    unstable = np.where(copied, stable if violation > 0 else 1 - stable, unstable)
    return SimulatedDomain(stable[:, None].astype(float), unstable[:, None].astype(float), y, posterior)


@cache
def corner_distance(n_classes: int, informativeness: float) -> float:
    """How far apart the class corners are for a given s with equal shares, by bisection."""
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(8000, n_classes))
    y = np.arange(8000) % n_classes

    def claimed(distance: float) -> float:
        posterior = softmax(distance * (distance * np.eye(n_classes)[y] + noise), axis=1)
        return float((n_classes * (posterior**2).sum(axis=1).mean() / 1.0 - 1.0) / (n_classes - 1))

    low, high = 0.0, 10.0
    for _ in range(50):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if claimed(middle) < informativeness else (low, middle)
    return 0.5 * (low + high)
