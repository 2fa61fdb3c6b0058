"""Stress domains where classes are rare: Û follows the unstable features, not the class shares."""

import numpy as np
import pytest
from unbalanced import PRIORS, Family, columns

from sfboost.diagnostics.unstable_guess import unstable_guess
from sfboost_lab.stress import stress_domains, stress_test

every_prior = pytest.mark.parametrize("prior", PRIORS.values(), ids=PRIORS)


def labelled(prior, agreements=(0.9, 0.7), n=6000):
    return Family(prior).training(n, np.random.default_rng(1), agreements)


@every_prior
def test_the_guess_is_what_the_unstable_features_name(prior):
    _, unstable, y, domain = labelled(prior)
    np.testing.assert_array_equal(unstable_guess(columns(unstable, len(prior)), y, domain), unstable)


def test_the_guess_follows_the_feature_and_not_the_domain_with_the_fewest_positives():
    """A domain of 1 % positives is right 99 times in 100 by saying nothing."""
    rng = np.random.default_rng(0)
    parts = [Family((0.99, 0.01)).draw(6000, 0.3, rng), Family((0.8, 0.2)).draw(6000, 0.9, rng)]
    _, unstable, y = (np.concatenate(part) for part in zip(*parts, strict=True))
    guess = unstable_guess(columns(unstable, 2), y, np.repeat([0, 1], 6000))
    np.testing.assert_array_equal(guess, unstable)


@every_prior
@pytest.mark.parametrize("agreement", [0.1, 0.5, 0.9])
def test_a_stress_domain_keeps_the_class_shares_at_every_agreement(prior, agreement):
    _, unstable, y, domain = labelled(prior)
    guess = unstable_guess(columns(unstable, len(prior)), y, domain)
    (stress,) = stress_domains(y, guess, agreements=[agreement])
    rows = stress.rows
    assert len(rows) > 500
    np.testing.assert_allclose(np.bincount(y[rows]) / len(rows), np.bincount(y) / len(y), atol=0.01)
    for label in range(len(prior)):  # within each class, not only on average
        right = guess[rows][y[rows] == label] == label
        assert right.mean() == pytest.approx(agreement, abs=0.03)


@every_prior
def test_the_exact_posterior_wins_the_stress_test(prior):
    family = Family(prior)
    named, unstable, y, domain = labelled(prior)
    stable, X = family.stable(named), columns(unstable, len(prior))
    domains = stress_domains(y, unstable_guess(X, y, domain), agreements=[0.1, 0.9])
    candidates = {
        "as it is": lambda p, X: p,
        "equal shares": lambda p, X: (p / prior) / (p / prior).sum(axis=1, keepdims=True),
    }
    table = stress_test(candidates, stable, X, y, domains)
    accuracy, loss = table.accuracy.mean(axis=1), table.log_loss.mean(axis=1)
    assert accuracy[0] >= accuracy[1] - 1e-3
    assert loss[0] < loss[1]
    assert table.accuracy[0].mean() == pytest.approx(family.stable_ceiling(), abs=0.02)
