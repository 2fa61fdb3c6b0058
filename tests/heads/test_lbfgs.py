"""The second leg of a likelihood: fewer steps to the same place."""

import numpy as np
import pytest
from scipy.special import softmax

from sfboost.heads.evaluation import Loss
from sfboost.heads.lbfgs import _information, descend, lbfgs, white_rows
from sfboost.heads.objectives import LogLikelihood
from sfboost.heads.whitening import Whitening

N, D, K = 800, 70, 12


@pytest.fixture(scope="module")
def fit():
    """A likelihood of classes that f_S tells apart by two numbers, and where its first leg ends."""
    rng = np.random.default_rng(0)
    y, means = rng.integers(0, K, N), rng.normal(size=(K, 2))
    x = means[y] + rng.normal(size=(N, 2))
    stable = softmax(x @ means.T - 0.5 * (means**2).sum(axis=1), axis=1)
    X = rng.normal(size=(N, D)) + rng.normal(size=(K, D))[y] / 2
    share = np.full(N, 1 / N)
    loss = Loss(X, LogLikelihood(np.log(stable / stable.mean(axis=0)), share), 0.02)
    whitening = Whitening.of(X, share)
    start = descend(loss.at, np.zeros((K, D + 1)), white_rows(whitening, loss.l2, K), 1e-4, 1000).theta
    return loss, whitening, start


def test_the_curvature_between_the_classes_spares_steps(fit):
    loss, whitening, start = fit
    legs = [
        descend(loss.at, start, white_rows(whitening, loss.l2, K, curvature), 1e-8, 1000, again=True)
        for curvature in (None, _information(loss, start))
    ]
    assert legs[1].value == pytest.approx(legs[0].value, abs=1e-10)
    assert legs[1].n_iterations < legs[0].n_iterations


def test_two_legs_end_at_a_gradient_of_zero(fit):
    loss, whitening, _ = fit
    start = np.zeros((K, D + 1))
    found = lbfgs(loss, start, whitening, max_iterations=1000, tolerance=1e-9)
    assert found.converged
    assert np.abs(loss.at(found.theta)[1]).max() <= 1.01e-9
    assert found.value == pytest.approx(loss.at(found.theta)[0], abs=1e-13)


@pytest.mark.parametrize("most", [3, 40])
def test_both_legs_together_take_no_more_steps_than_allowed(fit, most):
    loss, whitening, _ = fit
    found = lbfgs(loss, np.zeros((K, D + 1)), whitening, max_iterations=most, tolerance=1e-12)
    assert found.n_iterations <= most
    assert not found.converged


def test_the_information_is_the_mean_outer_product_of_gradients(fit):
    loss, _, start = fit
    logits = loss.X @ start[:, :-1].T + start[:, -1]
    _, by_logit = loss.objective.value_and_gradient(logits)
    expected = np.mean([np.outer(row, row) for row in N * by_logit], axis=0)
    np.testing.assert_allclose(loss.objective.information(logits), expected, rtol=1e-10, atol=1e-15)
