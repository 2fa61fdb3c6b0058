"""Exact finite distributions and samplers that tests share."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st


@dataclass(frozen=True)
class Joint:
    """P(X_S, X_U, Y) as a table of shape (a, b, K)."""

    table: np.ndarray

    @classmethod
    def complementary(cls, prior, stable_given_y, unstable_given_y):
        """P(y) P(x_S|y) P(x_U|y); the conditionals have shape (cells, K), columns sum to one."""
        return cls(np.einsum("k,ak,bk->abk", prior, stable_given_y, unstable_given_y))

    @property
    def prior(self):
        return self.table.sum(axis=(0, 1))

    @property
    def by_stable(self):
        """Pr[Y | X_S], shape (a, K)."""
        return normalise(self.table.sum(axis=1))

    @property
    def by_unstable(self):
        """Pr[Y | X_U], shape (b, K)."""
        return normalise(self.table.sum(axis=0))

    @property
    def by_both(self):
        """Pr[Y | X_S, X_U], shape (a, b, K)."""
        return normalise(self.table)

    @property
    def cells(self):
        """P(X_S, X_U), shape (a, b)."""
        return self.table.sum(axis=2)

    def pseudo_given_unstable(self):
        """Pr[Ŷ | X_U] = E[f_S | X_U], shape (b, K)."""
        given = self.cells / self.cells.sum(axis=0)
        return given.T @ self.by_stable

    def mutual_information(self):
        """I(X_S; X_U) in nats."""
        cells = self.cells
        independent = np.outer(cells.sum(axis=1), cells.sum(axis=0))
        used = cells > 0
        return float((cells[used] * np.log(cells[used] / independent[used])).sum())


def normalise(table):
    return table / table.sum(axis=-1, keepdims=True)


def anticausal(agreement, stable_accuracy=0.75):
    """The paper's AC family at one domain; cells are (wrong sign, right sign)."""

    def given(p):
        return np.array([[p, 1 - p], [1 - p, p]])

    return Joint.complementary(np.array([0.5, 0.5]), given(stable_accuracy), given(agreement))


_TWO_TO_FOUR = st.integers(2, 4)


@st.composite
def joints(draw, classes=_TWO_TO_FOUR, least=0.02):
    """Random complementary joints whose f_S has full rank."""
    k = draw(classes)
    a, b = draw(st.integers(k, k + 2)), draw(st.integers(2, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    prior = rng.dirichlet(np.full(k, 5.0)) * (1 - k * least) + least
    # A strong diagonal keeps E[f_S f_Sᵀ] far from singular, so that 1e-12 is a fair demand.
    stable = rng.dirichlet(np.ones(a), size=k).T * 0.5
    stable[:k] += 0.5 * np.eye(k)
    unstable = rng.dirichlet(np.ones(b), size=k).T * (1 - b * 1e-3) + 1e-3
    return Joint.complementary(prior, normalise(stable.T).T, normalise(unstable.T).T)


def draw_anticausal(n, agreement, seed, stable_accuracy=0.75):
    """Rows of AC: X with columns ±1 (stable, unstable), labels 0/1."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    sign = 2 * y - 1
    stable = np.where(rng.random(n) < stable_accuracy, sign, -sign)
    unstable = np.where(rng.random(n) < agreement, sign, -sign)
    return np.column_stack([stable, unstable]).astype(float), y


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
