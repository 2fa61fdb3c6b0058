"""Near a known point the loss in single precision is the exact one, for every purpose of a solver."""

import numpy as np
import pytest
from scipy import sparse

from sfboost.heads.evaluation import Loss, Nearby
from sfboost.heads.linear import fit_linear
from sfboost.heads.objectives import CrossEntropy, LogLikelihood, n_logit_columns

N, D = 300, 80
RNG = np.random.default_rng(0)


def loss_of(kind, k=3, offset=0.0, scale=1.0):
    """A loss of wide rows, and a point."""
    rng = np.random.default_rng(k)
    X = scale * (rng.normal(size=(N, D)) + offset)
    stable, weight = rng.dirichlet(np.ones(k), N), rng.exponential(size=N)
    weight /= weight.sum()
    if kind == "likelihood":
        objective = LogLikelihood(np.log(stable / stable.mean(axis=0)), weight)
    else:
        objective = CrossEntropy(stable, weight)
    theta = rng.normal(size=(n_logit_columns(k), D + 1)) / np.sqrt(D) / scale
    return Loss(X, objective, 0.01), theta


@pytest.mark.parametrize("kind", ["likelihood", "soft"])
@pytest.mark.parametrize("k", [2, 4])
def test_near_a_known_point_value_and_gradient_are_exact(kind, k):
    loss, theta = loss_of(kind, k)
    near = Nearby.of(loss, precise=True)
    assert isinstance(near, Nearby)
    near.at(theta)
    other = theta + 1e-3 * RNG.normal(size=theta.shape)
    value, gradient = near.at(other)
    exact_value, exact = loss.at(other)
    assert value == pytest.approx(exact_value, abs=1e-12)
    np.testing.assert_allclose(gradient, exact, atol=1e-9)


@pytest.mark.parametrize("kind", ["likelihood", "soft"])
@pytest.mark.parametrize("k", [2, 4])
def test_far_from_the_optimum_single_precision_has_six_digits(kind, k):
    loss, theta = loss_of(kind, k)
    near = Nearby.of(loss, precise=False)
    near.at(theta)
    other = 2.0 * theta
    value, gradient = near.at(other)
    exact_value, exact = loss.at(other)
    assert value == pytest.approx(exact_value, abs=1e-7)
    np.testing.assert_allclose(gradient, exact, atol=1e-6 * np.abs(exact).max())


def test_the_point_follows_a_gradient_that_vanishes():
    loss, theta = loss_of("likelihood")
    near = Nearby.of(loss, precise=True)
    near.at(theta)
    fit = fit_linear(loss.X, loss.objective, l2=loss.l2, tolerance=1e-9)
    optimum = np.vstack([fit.coef, fit.intercept]).T
    value, gradient = near.at(optimum)
    exact = loss.at(optimum)
    assert value == pytest.approx(exact[0], rel=1e-12)
    np.testing.assert_allclose(gradient, exact[1], rtol=1e-9)


@pytest.mark.parametrize(
    "rows", [{"scale": 1e-30}, {"scale": 1e-60}, {"scale": 1e30}, {"scale": 1e50}, {"offset": 1e4}]
)
def test_rows_that_single_precision_blurs_are_left_as_they_are(rows):
    loss, _ = loss_of("soft", **rows)
    assert Nearby.of(loss, precise=True) is loss


def test_columns_of_zeros_fit_into_single_precision():
    loss, _ = loss_of("soft")
    loss.X[:, 3] = 0.0
    assert isinstance(Nearby.of(loss, precise=True), Nearby)


@pytest.mark.parametrize("container", [sparse.csr_array, lambda X: X[:, :10]])
def test_sparse_and_narrow_rows_are_left_as_they_are(container):
    loss, _ = loss_of("soft")
    other = Loss(container(loss.X), loss.objective, loss.l2)
    assert Nearby.of(other, precise=True) is other


@pytest.mark.parametrize("kind", ["likelihood", "soft"])
@pytest.mark.parametrize("k", [2, 3])
def test_single_precision_does_not_move_the_optimum(kind, k):
    loss, _ = loss_of(kind, k)
    found = fit_linear(loss.X, loss.objective, l2=0.05, tolerance=1e-8)
    theta = np.vstack([found.coef, found.intercept]).T
    assert np.abs(Loss(loss.X, loss.objective, 0.05).at(theta)[1]).max() < 1.01e-8
