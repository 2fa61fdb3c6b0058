import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from sfboost.marginal import correct_posthoc, simplex_least_squares


def by_slsqp(matrix, target):
    """An independent solver, good to about 1e-6."""
    k = matrix.shape[1]
    found = minimize(
        lambda p: 0.5 * np.sum((matrix @ p - target) ** 2),
        np.full(k, 1 / k),
        jac=lambda p: matrix.T @ (matrix @ p - target),
        bounds=[(0, 1)] * k,
        constraints={"type": "eq", "fun": lambda p: p.sum() - 1, "jac": lambda p: np.ones(k)},
        method="SLSQP",
        options={"ftol": 1e-15, "maxiter": 1000},
    )
    return found.x


def kkt_residual(matrix, target, point):
    """Zero if and only if the point minimises ‖matrix p − target‖² over the simplex."""
    gradient = matrix.T @ (matrix @ point - target)
    # At the optimum the gradient equals its smallest entry wherever p > 0.
    return max(abs(point.sum() - 1), -point.min(), float(point @ (gradient - gradient.min())))


def random_confusion(rng, k, strength):
    matrix = rng.dirichlet(np.ones(k), size=k).T + strength * np.eye(k)
    return matrix / matrix.sum(axis=0)


@given(st.integers(0, 2**32 - 1), st.integers(2, 8), st.sampled_from([0.05, 0.5, 5.0]))
def test_it_is_optimal_and_agrees_with_an_independent_solver(seed, k, strength):
    rng = np.random.default_rng(seed)
    matrix, targets = random_confusion(rng, k, strength), rng.dirichlet(np.full(k, 0.4), size=12)
    points = simplex_least_squares(matrix, targets)
    for target, point in zip(targets, points, strict=True):
        assert kkt_residual(matrix, target, point) < 1e-10
        other = by_slsqp(matrix, target)
        mine, theirs = (np.sum((matrix @ p - target) ** 2) for p in (point, other))
        assert mine <= theirs + 1e-10


@given(st.integers(0, 2**32 - 1), st.integers(3, 6), st.sampled_from([0.0, 1e-13, 1e-9, 1e-5]))
def test_singular_and_ill_conditioned_matrices_are_solved_too(seed, k, gap):
    rng = np.random.default_rng(seed)
    matrix = random_confusion(rng, k, 0.5)
    matrix[:, 1] = (1 - gap) * matrix[:, 0] + gap * matrix[:, 1]
    targets = rng.dirichlet(np.full(k, 0.4), size=8)
    for target, point in zip(targets, simplex_least_squares(matrix, targets), strict=True):
        assert kkt_residual(matrix, target, point) < 1e-10


@given(st.integers(0, 2**32 - 1), st.floats(0.01, 0.99), st.floats(0.01, 0.99))
def test_two_classes_give_the_clipped_formula(seed, first, second):
    if abs(first + second - 1) < 1e-3:
        return
    e0, e1 = max(first, 1 - second), max(second, 1 - first)
    if e0 + e1 - 1 < 1e-3:
        return
    confusion = np.array([[e0, 1 - e1], [1 - e0, e1]])
    pseudo = np.random.default_rng(seed).dirichlet([1, 1], size=20)
    formula = np.clip((pseudo[:, 1] + e0 - 1) / (e0 + e1 - 1), 0, 1)
    np.testing.assert_allclose(simplex_least_squares(confusion, pseudo)[:, 1], formula, atol=1e-9)
    np.testing.assert_allclose(correct_posthoc(pseudo, confusion)[:, 1], formula, atol=1e-12)


@given(st.integers(0, 2**32 - 1), st.integers(3, 6))
def test_renaming_classes_renames_the_solution(seed, k):
    rng = np.random.default_rng(seed)
    matrix, targets = random_confusion(rng, k, 0.5), rng.dirichlet(np.full(k, 0.4), size=6)
    order = rng.permutation(k)
    renamed = simplex_least_squares(matrix[np.ix_(order, order)], targets[:, order])
    np.testing.assert_allclose(renamed, simplex_least_squares(matrix, targets)[:, order], atol=1e-9)


def test_a_hundred_classes_work():
    rng = np.random.default_rng(0)
    matrix, targets = random_confusion(rng, 100, 30.0), rng.dirichlet(np.full(100, 0.2), size=20)
    for target, point in zip(targets, simplex_least_squares(matrix, targets), strict=True):
        assert kkt_residual(matrix, target, point) < 1e-10


def test_rows_that_do_not_settle_are_solved_one_by_one(monkeypatch):
    """The batched exchange of supports is not proven to end: what it leaves open is still solved."""
    from sfboost.marginal import simplex

    def give_up(gram, projected):
        return np.zeros_like(projected), np.ones(len(projected), dtype=bool)

    rng = np.random.default_rng(0)
    matrix, targets = random_confusion(rng, 4, 0.5), rng.dirichlet(np.full(4, 0.4), size=6)
    expected = simplex_least_squares(matrix, targets)
    monkeypatch.setattr(simplex, "_pivot", give_up)
    np.testing.assert_allclose(simplex_least_squares(matrix, targets), expected, atol=1e-10)


def test_an_uninformative_confusion_keeps_the_average():
    pseudo = np.array([[0.4, 0.6]])
    np.testing.assert_array_equal(correct_posthoc(pseudo, np.full((2, 2), 0.5)), pseudo)
    with pytest.raises(AssertionError):
        np.testing.assert_array_equal(correct_posthoc(pseudo, np.array([[0.9, 0.2], [0.1, 0.8]])), pseudo)
