"""Newton's method, L-BFGS, white coordinates and single precision: other ways to the same optimum."""

import numpy as np
import pytest
from scipy import sparse
from scipy.special import softmax

from sfboost.heads import linear
from sfboost.heads.linear import LinearFit, Loss, Nearby, _newton, fit_linear
from sfboost.heads.objectives import CrossEntropy, LogLikelihood, n_logit_columns
from sfboost.heads.whitening import Whitening

KINDS = pytest.mark.parametrize("kind", ["likelihood", "soft"])
CLASSES = pytest.mark.parametrize("k", [2, 3])


def loss_of(kind, k=3, *, n=300, d=80, offset=0.0, scale=1.0):
    """A loss of rows whose features tell the classes as f_S does, and a point."""
    rng = np.random.default_rng(k)
    X = rng.normal(size=(n, d))
    z = np.column_stack([X[:, 0], np.zeros((n, k - 1))]) + rng.normal(size=(n, k))
    stable, weight = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True), rng.uniform(0.5, 1.5, n)
    weight /= weight.sum()
    if kind == "likelihood":
        objective = LogLikelihood(np.log(stable / (weight @ stable)), weight)
    else:
        objective = CrossEntropy(stable, weight)
    theta = rng.normal(size=(n_logit_columns(k), d + 1)) / np.sqrt(d) / scale
    return Loss(scale * (X + offset), objective, 0.01), theta


def parameters(fit):
    return np.vstack([fit.coef, fit.intercept]).T


@KINDS
@CLASSES
def test_the_hessian_is_the_derivative_of_the_gradient(kind, k):
    loss, theta = loss_of(kind, k, n=50, d=3)
    hessian = loss.hessian(theta)
    for place in range(theta.size):
        step = np.zeros(theta.size)
        step[place] = 1e-5
        step = step.reshape(theta.shape)
        slope = (loss.at(theta + step)[1] - loss.at(theta - step)[1]) / 2e-5
        np.testing.assert_allclose(hessian[place], slope.ravel(), atol=1e-8)


@KINDS
@CLASSES
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_newton_and_lbfgs_end_in_the_same_place(kind, k, container):
    loss, _ = loss_of(kind, k, n=400, d=4)
    start = None  # a likelihood is flat at zero
    if kind == "likelihood":
        start = fit_linear(loss.X, loss_of("soft", k, n=400, d=4)[0].objective, l2=0.01)
    rest = {"l2": 0.01, "start": start, "tolerance": 1e-10}
    fits = [
        fit_linear(container(loss.X), loss.objective, solver=solver, **rest) for solver in ("newton", "lbfgs")
    ]
    assert all(fit.converged for fit in fits)
    assert fits[0].n_iterations < fits[1].n_iterations
    assert fits[0].value == pytest.approx(fits[1].value, abs=1e-10)
    assert k == 2 or all(abs(fit.intercept.mean()) < 1e-12 for fit in fits)  # one of many equal fits
    np.testing.assert_allclose(parameters(fits[0]), parameters(fits[1]), atol=1e-6)


def test_where_the_loss_is_not_convex_lbfgs_takes_over_from_the_start():
    loss, _ = loss_of("likelihood", 2, n=200, d=2)
    far = LinearFit(np.array([[20.0], [-20.0]]), np.zeros(1), np.inf, 0, False)
    assert _newton(Loss(loss.X, loss.objective, 1e-4), parameters(far), 1e-9) is None
    fits = [
        fit_linear(loss.X, loss.objective, l2=1e-4, start=far, solver=solver)
        for solver in ("newton", "lbfgs")
    ]
    np.testing.assert_array_equal(parameters(fits[0]), parameters(fits[1]))


@KINDS
@pytest.mark.parametrize("k", [2, 4])
def test_near_a_known_point_value_and_gradient_are_exact(kind, k):
    loss, theta = loss_of(kind, k)
    near = Nearby.of(loss, precise=True)
    assert isinstance(near, Nearby)
    near.at(theta)
    other = theta + 1e-3 * np.random.default_rng(0).normal(size=theta.shape)
    value, gradient = near.at(other)
    exact_value, exact = loss.at(other)
    assert value == pytest.approx(exact_value, abs=1e-12)
    np.testing.assert_allclose(gradient, exact, atol=1e-9)


@KINDS
@pytest.mark.parametrize("k", [2, 4])
def test_far_from_the_optimum_single_precision_has_six_digits(kind, k):
    loss, theta = loss_of(kind, k)
    near = Nearby.of(loss, precise=False)
    near.at(theta)
    value, gradient = near.at(2.0 * theta)
    exact_value, exact = loss.at(2.0 * theta)
    assert value == pytest.approx(exact_value, abs=1e-7)
    np.testing.assert_allclose(gradient, exact, atol=1e-6 * np.abs(exact).max())


def test_the_point_follows_a_gradient_that_vanishes():
    loss, theta = loss_of("likelihood")
    near = Nearby.of(loss, precise=True)
    near.at(theta)
    optimum = parameters(fit_linear(loss.X, loss.objective, l2=loss.l2, tolerance=1e-9))
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


def test_sparse_and_narrow_rows_are_left_as_they_are_and_columns_of_zeros_fit():
    loss, _ = loss_of("soft")
    loss.X[:, 3] = 0.0
    assert isinstance(Nearby.of(loss, precise=True), Nearby)
    for rows in (sparse.csr_array(loss.X), loss.X[:, :10]):
        other = Loss(rows, loss.objective, loss.l2)
        assert Nearby.of(other, precise=True) is other


def test_the_curvature_between_the_classes_spares_steps(monkeypatch):
    """Of twelve classes, which f_S tells apart by two numbers."""
    rng = np.random.default_rng(0)
    y, means = rng.integers(0, 12, 800), rng.normal(size=(12, 2))
    stable = softmax((means[y] + rng.normal(size=(800, 2))) @ means.T - 0.5 * (means**2).sum(axis=1), axis=1)
    X, share = rng.normal(size=(800, 70)) + rng.normal(size=(12, 70))[y] / 2, np.full(800, 1 / 800)
    loss = LogLikelihood(np.log(stable / stable.mean(axis=0)), share)
    start = fit_linear(X, CrossEntropy(stable, share), l2=0.02, tolerance=1e-4)
    two = fit_linear(X, loss, l2=0.02, start=start, tolerance=1e-8)
    monkeypatch.setattr(linear, "_NEAR", 0.0)
    one = fit_linear(X, loss, l2=0.02, start=start, tolerance=1e-8)
    assert two.value == pytest.approx(one.value, abs=1e-10)
    assert two.n_iterations < one.n_iterations


@KINDS
@CLASSES
def test_single_precision_does_not_move_the_optimum(kind, k):
    loss, _ = loss_of(kind, k)
    found = fit_linear(loss.X, loss.objective, l2=0.05, tolerance=1e-8)
    assert np.abs(Loss(loss.X, loss.objective, 0.05).at(parameters(found))[1]).max() < 1.01e-8


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
def test_to_white_coordinates_and_back(ridge, by_class):
    X, _ = embeddings()
    theta = np.random.default_rng(1).normal(size=(3, 41))
    white = Whitening.of(X, np.ones(len(X))).at(ridge, by_class)
    np.testing.assert_allclose(white.to_plain(white.to_white(theta)), theta, atol=1e-10)


@pytest.mark.parametrize("by_class", [None, BY_CLASS])
def test_the_white_gradient_follows_the_chain_rule(by_class):
    X, _ = embeddings()
    rng = np.random.default_rng(1)
    slope, point, step = (rng.normal(size=(3, 41)) for _ in range(3))
    white = Whitening.of(X, np.ones(len(X))).at(0.1, by_class)
    change = white.to_plain(point + step) - white.to_plain(point)
    assert np.vdot(white.gradient(slope), step) == pytest.approx(np.vdot(slope, change), rel=1e-9)


def test_with_every_direction_the_rows_become_white():
    X, _ = embeddings(d=10)
    weight = np.random.default_rng(0).exponential(size=len(X))
    basis = Whitening.of(X, weight).at(0.0).to_plain(np.column_stack([np.eye(10), np.zeros(10)]))
    rows = X @ basis[:, :-1].T + basis[:, -1]
    np.testing.assert_allclose(np.cov(rows.T, aweights=weight, ddof=0), np.eye(10), atol=1e-8)
    np.testing.assert_allclose(np.average(rows, axis=0, weights=weight), 0.0, atol=1e-10)


def test_a_whitening_of_other_rows_ends_in_the_same_place_later():
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
