"""Random finite distributions and samplers that tests share."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from sfboost_lab.testing import SimulatedDomain
from sfboost_lab.theory import EXAMPLES, FiniteJoint


def mutual_information(joint):
    """I(X_S; X_U) in nats."""
    cells = joint.pair_mass
    independent = np.outer(joint.stable_mass, joint.unstable_mass)
    used = cells > 0
    return float((cells[used] * np.log(cells[used] / independent[used])).sum())


def drawn(name, n_rows, seed):
    """Rows of one of the paper's examples, with the exact f_S."""
    joint = EXAMPLES[name]()
    stable, unstable, y = joint.sample(n_rows, seed)
    columns = (part[:, None].astype(float) for part in (stable, unstable))
    return SimulatedDomain(*columns, y, joint.stable_posterior[stable])


def normalise(table):
    return table / table.sum(axis=-1, keepdims=True)


_TWO_TO_FOUR = st.integers(2, 4)


@st.composite
def joints(draw, classes=_TWO_TO_FOUR, least=0.02):
    """Random complementary joints whose f_S has full rank."""
    k = draw(classes)
    a, b = draw(st.integers(k, k + 2)), draw(st.integers(2, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    prior = rng.dirichlet(np.full(k, 5.0)) * (1 - k * least) + least
    # A strong diagonal keeps E[f_S f_Sᵀ] far from singular, so that 1e-12 is a fair demand.
    stable = rng.dirichlet(np.ones(a), size=k) * 0.5
    stable[:, :k] += 0.5 * np.eye(k)
    unstable = rng.dirichlet(np.ones(b), size=k) * (1 - b * 1e-3) + 1e-3
    return FiniteJoint.from_conditionals(prior, normalise(stable), normalise(unstable))


def draw_anticausal(n, agreement, seed, stable_accuracy=0.75):
    """Rows of AC: X with columns ±1 (stable, unstable), labels 0/1."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    sign = 2 * y - 1
    stable = np.where(rng.random(n) < stable_accuracy, sign, -sign)
    unstable = np.where(rng.random(n) < agreement, sign, -sign)
    return np.column_stack([stable, unstable]).astype(float), y


def anticausal_hospitals(n=600, agreements=(0.95, 0.7), seed=0):
    """Training rows of several AC domains: X, y, domain."""
    parts = [draw_anticausal(n, agreement, seed + i) for i, agreement in enumerate(agreements)]
    X, y = (np.concatenate([part[i] for part in parts]) for i in (0, 1))
    return X, y, np.repeat([f"hospital {i}" for i in range(len(agreements))], n)


class GaussianFamily:
    """K Gaussian classes: X_S ~ N(m_S, 1), X_U ~ N(m_U, 1), uniform prior; f_S is exact."""

    def __init__(self, seed, n_classes=4, stable_dim=2, unstable_dim=4, unstable_scale=1.5):
        self.rng = np.random.default_rng(seed)
        self.stable_means = self.rng.normal(size=(n_classes, stable_dim))
        self.unstable_means = unstable_scale * self.rng.normal(size=(n_classes, unstable_dim))

    def draw(self, n):
        """y, f_S, X_U."""
        y = self.rng.integers(0, len(self.stable_means), n)
        stable = self.stable_means[y] + self.rng.normal(size=(n, self.stable_means.shape[1]))
        unstable = self.unstable_means[y] + self.rng.normal(size=(n, self.unstable_means.shape[1]))
        log = -0.5 * ((stable[:, None] - self.stable_means) ** 2).sum(axis=2)
        return y, normalise(np.exp(log - log.max(axis=1, keepdims=True))), unstable
