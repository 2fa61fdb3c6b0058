"""White coordinates change the way to the optimum, not the optimum."""

import numpy as np
import pytest
from scipy import sparse

from sfboost.heads.linear import fit_linear
from sfboost.heads.objectives import CrossEntropy, LogLikelihood
from sfboost.heads.whitening import Whitening


def embeddings(n=400, d=40, k=3, seed=0):
    """Correlated features far from the origin, as embeddings are, and soft labels."""
    rng = np.random.default_rng(seed)
    turn, _ = np.linalg.qr(rng.normal(size=(d, d)))
    X = (rng.normal(size=(n, d)) * 10.0 / np.arange(1, d + 1)) @ turn + rng.normal(size=d)
    targets = np.exp(X @ rng.normal(size=(d, k)) / 5 + rng.gumbel(size=(n, k)))
    return X, targets / targets.sum(axis=1, keepdims=True)


# The curvature between three classes, two of which are hardly told apart; none is told from all three.
BY_CLASS = np.array([[1.0, -0.5, -0.5], [-0.5, 0.26, 0.24], [-0.5, 0.24, 0.26]])


@pytest.mark.parametrize("by_class", [None, BY_CLASS])
@pytest.mark.parametrize("ridge", [0.0, 1e-3, 10.0])
def test_there_and_back(ridge, by_class):
    X, _ = embeddings()
    theta = np.random.default_rng(1).normal(size=(3, 41))
    coordinates = Whitening.of(X, np.ones(len(X))).at(ridge, by_class)
    np.testing.assert_allclose(coordinates.to_plain(coordinates.to_white(theta)), theta, atol=1e-10)


@pytest.mark.parametrize("by_class", [None, BY_CLASS])
def test_the_gradient_follows_the_chain_rule(by_class):
    X, _ = embeddings()
    rng = np.random.default_rng(1)
    slope, white, step = (rng.normal(size=(3, 41)) for _ in range(3))
    coordinates = Whitening.of(X, np.ones(len(X))).at(0.1, by_class)
    change = coordinates.to_plain(white + step) - coordinates.to_plain(white)
    assert np.vdot(coordinates.gradient(slope), step) == pytest.approx(np.vdot(slope, change), rel=1e-9)


def test_with_every_direction_the_rows_become_white():
    X, _ = embeddings(d=10)
    weight = np.random.default_rng(0).exponential(size=len(X))
    coordinates = Whitening.of(X, weight).at(0.0)
    basis = coordinates.to_plain(np.column_stack([np.eye(10), np.zeros(10)]))
    rows = X @ basis[:, :-1].T + basis[:, -1]
    np.testing.assert_allclose(np.cov(rows.T, aweights=weight, ddof=0), np.eye(10), atol=1e-8)
    np.testing.assert_allclose(np.average(rows, axis=0, weights=weight), 0.0, atol=1e-10)


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("k", [2, 3])
def test_the_optimum_is_newtons(container, k):
    X, targets = embeddings(k=k)
    loss = CrossEntropy(targets, np.full(len(X), 1 / len(X)))
    exact = fit_linear(X, loss, l2=1e-3, solver="newton", tolerance=1e-11)
    found = fit_linear(container(X), loss, l2=1e-3, solver="lbfgs", tolerance=1e-10)
    np.testing.assert_allclose(found.logits(X), exact.logits(X), atol=1e-6)


def test_a_whitening_of_other_rows_ends_in_the_same_place():
    X, targets = embeddings()
    share = np.full(len(X), 1 / len(X))
    loss = LogLikelihood(np.log(targets / targets.mean(axis=0)), share)
    start = fit_linear(X, CrossEntropy(targets, share), l2=0.03)
    other = Whitening.of(np.random.default_rng(2).normal(size=X.shape), share)
    fits = [fit_linear(X, loss, l2=0.03, start=start, tolerance=1e-10, whitening=w) for w in (None, other)]
    np.testing.assert_allclose(fits[0].logits(X), fits[1].logits(X), atol=1e-6)
    assert fits[0].n_iterations < fits[1].n_iterations


def test_a_constant_column_and_a_single_row_are_no_hindrance():
    X = np.zeros((1, 3))
    fit = fit_linear(X, CrossEntropy(np.array([[0.3, 0.7]]), np.ones(1)), l2=0.1, solver="lbfgs")
    assert fit.logits(X)[0, 0] == pytest.approx(np.log(7 / 3), abs=1e-6)
