"""Several narrow heads at once: the same derivatives and optima as one by one."""

import numpy as np
import pytest

from sfboost.heads.linear import fit_linear
from sfboost.heads.objectives import CrossEntropy, LogLikelihood, n_logit_columns
from sfboost.heads.stacked import Stack, cross_entropy, descend, likelihood, padded


def draw(sizes, n_classes, seed=0):
    rng = np.random.default_rng(seed)
    rows = [rng.normal(size=(n, 3)) for n in sizes]
    weights = [rng.uniform(0.5, 1.5, n) for n in sizes]
    weights = [weight / weight.sum() for weight in weights]
    stable = []
    for X in rows:
        z = np.column_stack([X[:, 0], np.zeros((len(X), n_classes - 1))]) + rng.normal(
            size=(len(X), n_classes)
        )
        stable.append(np.exp(z) / np.exp(z).sum(axis=1, keepdims=True))
    return rows, weights, stable


def evidence_of(stable, weights):
    return [np.log(f / (w @ f)) for f, w in zip(stable, weights, strict=True)]


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("kind", [likelihood, cross_entropy])
def test_derivatives_are_those_of_the_value(n_classes, kind):
    rows, weights, stable = draw([40, 55], n_classes)
    stack = Stack.of(rows, weights)
    given = evidence_of(stable, weights) if kind is likelihood else stable
    loss = kind(padded([part.T for part in given]))
    theta = np.random.default_rng(1).normal(size=(2, 4 * n_logit_columns(n_classes)))
    here = stack.curve(loss, theta, n_classes)
    for place in range(theta.shape[1]):
        step = np.zeros_like(theta)
        step[:, place] = 1e-5
        up, down = stack.curve(loss, theta + step, n_classes), stack.curve(loss, theta - step, n_classes)
        assert np.allclose(here.gradient[:, place], (up.value - down.value) / 2e-5, atol=1e-8)
        assert np.allclose(here.hessian[:, place], (up.gradient - down.gradient) / 2e-5, atol=1e-8)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("kind", [likelihood, cross_entropy])
def test_the_optima_are_those_of_one_head_after_the_other(n_classes, kind):
    rows, weights, stable = draw([400, 333, 401], n_classes)
    given = evidence_of(stable, weights) if kind is likelihood else stable
    start = np.zeros((3, 4 * n_logit_columns(n_classes)))
    stack, loss = Stack.of(rows, weights), kind(padded([part.T for part in given]))
    if kind is likelihood:  # at zero it is flat
        start, _, _ = descend(
            stack, cross_entropy(padded([f.T for f in stable])), start, n_classes, 0.01, 1e-6
        )
    theta, value, found = descend(stack, loss, start, n_classes, 0.01, 1e-10)
    assert found.all()
    objective = LogLikelihood if kind is likelihood else CrossEntropy
    for i, (X, weight, part) in enumerate(zip(rows, weights, given, strict=True)):
        soft = fit_linear(X, CrossEntropy(stable[i], weight), l2=0.01)
        alone = fit_linear(X, objective(part, weight), l2=0.01, start=soft, tolerance=1e-10)
        assert value[i] == pytest.approx(alone.value, abs=1e-10)
        head = theta[i].reshape(-1, 4)
        assert np.allclose(head[:, :-1].T, alone.coef, atol=1e-6)
        level = head[:, -1] - (head[:, -1].mean() if n_classes > 2 else 0.0)
        assert np.allclose(level, alone.intercept, atol=1e-6)


def test_where_the_loss_is_not_convex_nothing_is_found():
    rows, weights, stable = draw([200], 2)
    sharp = [np.log(np.where(f > 0.5, 0.99, 0.01) / 0.5) for f in stable]
    loss = likelihood(padded([part.T for part in sharp]))
    far = np.array([[20.0, -20.0, 20.0, 0.0]])
    theta, _, found = descend(Stack.of(rows, weights), loss, far, 2, 1e-6, 1e-10)
    assert not found.any()
    assert np.array_equal(theta, far)


def test_empty_places_are_nothing():
    rows, weights, stable = draw([30, 60], 2)
    both = Stack.of(rows, weights).curve(
        likelihood(padded([part.T for part in evidence_of(stable, weights)])), np.ones((2, 4)), 2
    )
    alone = Stack.of(rows[:1], weights[:1]).curve(
        likelihood(padded([evidence_of(stable, weights)[0].T])), np.ones((1, 4)), 2
    )
    assert both.value[0] == pytest.approx(alone.value[0], abs=1e-14)
    assert np.allclose(both.hessian[0], alone.hessian[0], atol=1e-14)
