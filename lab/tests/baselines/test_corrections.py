"""Backward and forward: their loss, and that they reach what can be reached."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from joints import draw_anticausal
from scipy.optimize import approx_fprime
from scipy.special import softmax
from unbalanced import PRIORS, Family, columns

from sfboost import Settings
from sfboost.adaptation import adapt
from sfboost.heads.objectives import n_logit_columns
from sfboost.marginal import PseudoLabelStatistics
from sfboost_lab.baselines.corrections import HEADS, ForwardCrossEntropy, adapt_corrected, invert_confusion
from sfboost_lab.theory import anticausal


@given(st.integers(0, 2**32 - 1), st.integers(2, 5))
def test_inverting_the_confusion_undoes_it(seed, k):
    rng = np.random.default_rng(seed)
    proba = rng.dirichlet(np.full(k, 0.3), size=200)
    confusion = PseudoLabelStatistics.from_proba(proba).confusion
    truth = rng.dirichlet(np.ones(k), size=5)
    signed = invert_confusion(truth @ confusion.T, confusion)
    np.testing.assert_allclose(signed, truth, atol=1e-6)
    np.testing.assert_allclose(invert_confusion(proba, np.full((k, k), 1 / k)).sum(axis=1), 1)


@pytest.mark.parametrize("k", [2, 3, 5])
def test_the_forward_loss_and_its_gradient(k):
    rng, n = np.random.default_rng(0), 9
    weight, targets = rng.dirichlet(np.ones(n)), rng.dirichlet(np.ones(k), size=n)
    confusion = rng.dirichlet(np.ones(k), size=k).T
    objective = ForwardCrossEntropy(targets, confusion, weight)
    logits = rng.normal(size=(n, n_logit_columns(k)))

    def plain(flat):
        z = flat.reshape(logits.shape)
        z = np.column_stack([np.zeros(n), z]) if k == 2 else z
        return -(weight * (targets * np.log(softmax(z, axis=1) @ confusion.T)).sum(axis=1)).sum()

    value, gradient = objective.value_and_gradient(logits)
    assert value == pytest.approx(plain(logits), abs=1e-12)
    np.testing.assert_allclose(gradient.ravel(), approx_fprime(logits.ravel(), plain, 1e-7), atol=1e-6)
    parts = [objective.value_and_gradient(logits[rows], rows)[0] for rows in (slice(0, 4), slice(4, n))]
    assert sum(parts) == pytest.approx(value, abs=1e-13)


@pytest.mark.parametrize("correction", HEADS)
@pytest.mark.parametrize("agreement", [0.1, 0.9])
def test_anticausal_rows_go_from_75_to_90_percent(correction, agreement):
    X, y = draw_anticausal(100_000, agreement, seed=0)
    stable = np.where(X[:, 0] > 0, 0.75, 0.25)
    adapted = adapt_corrected(stable, X[:, 1:], correction)
    assert (adapted.predict(stable, X[:, 1:]) == y).mean() == pytest.approx(0.90, abs=0.005)
    truth = anticausal(agreement).unstable_posterior
    np.testing.assert_allclose(adapted.unstable_proba(np.array([[-1.0], [1.0]])), truth, atol=0.02)


@pytest.mark.long
@pytest.mark.parametrize("prior", PRIORS.values(), ids=PRIORS)
@pytest.mark.parametrize("agreement", [0.1, 0.9])
@pytest.mark.parametrize("correction", HEADS)
def test_each_reaches_the_ceiling_where_classes_are_rare(prior, agreement, correction):
    family = Family(prior)
    named, unstable, y = family.draw(6000, agreement, np.random.default_rng(0))
    stable, X = family.stable(named), columns(unstable, len(prior))
    adapted = adapt_corrected(stable, X, correction)
    assert (adapted.predict(stable, X) == y).mean() > family.ceiling(agreement) - 0.015


def test_behind_a_weak_stable_predictor_a_head_that_is_fitted_forward_is_no_line():
    """Pr[Ŷ | U] moves by a few points alone, where a logistic curve is a line, and then it is corrected."""
    rng, rare, right = np.random.default_rng(0), 0.1, np.array([0.25, 0.75])
    y = (rng.random(20_000) < rare).astype(int)
    x = (rng.random(20_000) < right[y]).astype(int)
    low = rng.random(20_000) < np.where(y == 1, 0.9, 0.1)
    U = np.where(low, -3.5, rng.choice([-2.5, 2.5], 20_000))[:, None]
    stable = rare * right[x] / (rare * right[x] + (1 - rare) * right[1 - x])
    here, at = low & (x == 1), (np.full(2, stable.max()), [[-3.5], [-3.5]])
    forward = adapt_corrected(stable, U, "forward").predict_proba(*at)[0, 1]
    posthoc = adapt(stable, U, settings=Settings(correction="posthoc")).predict_proba(*at)[0, 1]
    assert forward == pytest.approx(y[here].mean(), abs=0.1)
    assert posthoc < 0.5 < y[here].mean() - 0.2  # the frequent class is named
