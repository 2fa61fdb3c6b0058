"""Each loss against a plain formula, and its gradient against differences."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.special import log_softmax, softmax

from sfboost.heads.objectives import (
    CrossEntropy,
    LogLikelihood,
    log_proba_from_logits,
    n_logit_columns,
)

RNG = np.random.default_rng(0)
N = 12


def full(logits):
    return np.column_stack([np.zeros(len(logits)), logits]) if logits.shape[1] == 1 else logits


def cases(k):
    weight = RNG.dirichlet(np.ones(N))
    targets = RNG.dirichlet(np.ones(k), size=N)
    signed = targets * 3 - 2 / k
    above, below = RNG.normal(size=(N, k)), RNG.normal(size=(N, k))

    def entropy(t, z):
        return -(weight * (t * log_softmax(full(z), axis=1)).sum(axis=1)).sum()

    def ratio(a, b, z):
        f = softmax(full(z), axis=1)
        return (weight * np.log((f * np.exp(b)).sum(axis=1) / (f * np.exp(a)).sum(axis=1))).sum()

    return {
        "soft": (CrossEntropy(targets, weight), lambda z: entropy(targets, z)),
        "signed": (CrossEntropy(signed, weight), lambda z: entropy(signed, z)),
        "likelihood": (LogLikelihood(above, weight), lambda z: ratio(above, np.zeros((N, k)), z)),
        "joint": (LogLikelihood(above, weight, below), lambda z: ratio(above, below, z)),
    }


@pytest.mark.parametrize("k", [2, 3, 5])
@pytest.mark.parametrize("name", ["soft", "signed", "likelihood", "joint"])
def test_value_and_gradient(k, name):
    objective, plain = cases(k)[name]
    logits = RNG.normal(size=(N, n_logit_columns(k))) * 2
    value, gradient = objective.value_and_gradient(logits)
    assert objective.n_columns == logits.shape[1]
    assert value == pytest.approx(plain(logits), abs=1e-12)
    numeric = approx_fprime(logits.ravel(), lambda z: plain(z.reshape(logits.shape)), 1e-7)
    np.testing.assert_allclose(gradient.ravel(), numeric, atol=1e-6)


@pytest.mark.parametrize("k", [2, 4])
def test_huge_logits_stay_finite(k):
    logits = np.tile([[1e4], [-1e4]], (N // 2, n_logit_columns(k)))
    if k > 2:
        logits[:, 0] *= -1
    for objective, _ in cases(k).values():
        value, gradient = objective.value_and_gradient(logits)
        assert np.isfinite(value)
        assert np.isfinite(gradient).all()
    assert np.isfinite(log_proba_from_logits(logits)).all()


def test_one_column_of_log_odds_is_the_softmax_of_two():
    z = RNG.normal(size=(N, 1)) * 5
    np.testing.assert_allclose(log_proba_from_logits(z), log_softmax(full(z), axis=1), atol=1e-12)


@pytest.mark.parametrize("k", [2, 4])
@pytest.mark.parametrize("name", ["soft", "signed", "likelihood", "joint"])
def test_blocks_of_rows_add_up(k, name):
    objective, _ = cases(k)[name]
    logits = RNG.normal(size=(N, n_logit_columns(k)))
    whole, by_logit = objective.value_and_gradient(logits)
    parts = [objective.value_and_gradient(logits[rows], rows) for rows in (slice(0, 5), slice(5, N))]
    assert sum(value for value, _ in parts) == pytest.approx(whole, abs=1e-13)
    np.testing.assert_allclose(np.vstack([gradient for _, gradient in parts]), by_logit, atol=1e-15)


@pytest.mark.parametrize("k", [2, 4])
@pytest.mark.parametrize("rule", [-500.0, -1e4])
def test_a_head_that_is_certain_of_what_the_evidence_rules_out(k, rule):
    """Their product underflows; the likelihood is still the difference of the logarithms."""
    above = np.full((1, k), rule)
    above[0, 0] = 0.0
    logits = np.full((1, n_logit_columns(k)), 900.0)
    if k > 2:
        logits[0, 0] = 0.0
    value, gradient = LogLikelihood(above, np.ones(1)).value_and_gradient(logits)
    expected = -np.logaddexp(0.0, 900.0 + rule + np.log(k - 1)) + 900.0 + np.log(k - 1)
    assert value == pytest.approx(expected, rel=1e-12)
    wanted = softmax(full(logits), axis=1) - softmax(full(logits) + above, axis=1)
    np.testing.assert_allclose(gradient, wanted[:, -logits.shape[1] :], atol=1e-12)
