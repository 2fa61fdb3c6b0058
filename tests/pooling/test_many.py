"""Heads of many domains: better than each alone and than one for all; the formulas are the engine's."""

import numpy as np
import pytest

from sfboost import Settings, adapt
from sfboost.adaptation.likelihood_sums import Point, likelihood_sums
from sfboost.adaptation.standardize import Standardizer
from sfboost.pooling import fit_pooled_heads, many
from sfboost.pooling.batched import climb, curve, log_evidence
from sfboost.pooling.grouping import stacks
from sfboost.pooling.shares import shrunken_shares


def simulate(n_domains, seed=0, smallest=30, largest=120):
    """f_S exact; in each domain X_U = ±β_d + noise, β_d normal about a common mean."""
    rng = np.random.default_rng(seed)
    domain = np.repeat(np.arange(n_domains), rng.integers(smallest, largest + 1, n_domains))
    f = 1.0 / (1.0 + np.exp(-rng.normal(0.0, 1.5, len(domain)) - rng.normal(0.0, 0.5, n_domains)[domain]))
    y = (rng.random(len(domain)) < f).astype(int)
    beta = np.array([0.6, -0.3, 0.0]) + rng.normal(0.0, 0.4, (n_domains, 3))
    X = (2 * y - 1)[:, None] * beta[domain] + rng.normal(size=(len(domain), 3))
    return np.column_stack([1.0 - f, f]), X, domain, y, beta


def log_loss(log_proba, y):
    return -log_proba[np.arange(len(y)), y].mean()


def test_partial_pooling_beats_each_domain_alone_and_one_head_for_all():
    stable, X, domain, y, _ = simulate(60)
    pooled = log_loss(fit_pooled_heads(stable, X, domain).predict_log_proba(stable, X, domain), y)
    one = log_loss(adapt(stable, X, answer="paper").predict_log_proba(stable, X), y)
    alone = np.empty_like(stable)
    for name in range(60):
        rows = domain == name
        adapted = adapt(stable[rows], X[rows], answer="paper", settings=Settings(l2=1.0 / rows.sum()))
        alone[rows] = adapted.predict_log_proba(stable[rows], X[rows])
    assert pooled < min(one, log_loss(alone, y)) - 0.01


def test_the_derivatives_are_those_of_the_engine():
    stable, X, domain, _, _ = simulate(5)
    theta = np.random.default_rng(0).normal(size=(5, 4))
    shares = shrunken_shares(stable, domain, 5)
    as_it_is = Standardizer(np.zeros(3), np.ones(3))
    for part in stacks(stable, X, domain, 5):
        found = curve(part, log_evidence(part, shares[part.domains]), theta[part.domains])
        for i, name in enumerate(part.domains):
            rows = domain == name
            sums = likelihood_sums(stable[rows], X[rows], Point(theta[[name]], shares[name], as_it_is))
            assert found.value[i] == pytest.approx(sums.value)
            np.testing.assert_allclose(found.gradient[i], sums.gradient.ravel(), atol=1e-9)
            np.testing.assert_allclose(found.hessian[i], sums.hessian, atol=1e-9)


def test_a_mode_is_stationary():
    stable, X, domain, _, _ = simulate(8)
    shares = shrunken_shares(stable, domain, 8)
    for part in stacks(stable, X, domain, 8):
        evidence = log_evidence(part, shares[part.domains])
        n = len(part.domains)
        theta, _, _ = climb(part, evidence, np.zeros((n, 4)), np.zeros(4), np.eye(4), most=50)
        np.testing.assert_allclose(curve(part, evidence, theta).gradient + theta, 0.0, atol=1e-3)


def test_every_row_is_in_one_place_of_one_stack():
    stable, X, domain, _, _ = simulate(40, smallest=1, largest=300)
    parts = stacks(stable, X, domain, 40)
    assert sorted(np.concatenate([part.domains for part in parts]).tolist()) == list(range(40))
    assert sum(part.weight.sum() for part in parts) == len(X)
    total = sum(part.design[:, :-1].sum(axis=(0, 2)) for part in parts)
    np.testing.assert_allclose(total, X.sum(axis=0))


def test_a_domain_with_few_rows_leans_on_the_others_and_one_with_many_does_not():
    rng = np.random.default_rng(0)
    stable, X, domain, _, _ = simulate(50, smallest=200, largest=200)
    keep = (domain > 0) | (rng.random(len(domain)) < 0.05)
    heads = fit_pooled_heads(stable[keep], X[keep], domain[keep])
    assert heads.shrinkage[0] > 0.6
    assert np.median(heads.shrinkage[1:]) < 0.4


def test_with_one_new_domain_training_says_what_is_usual():
    stable, X, domain, _, _ = simulate(1, smallest=12, largest=12)
    known = np.tile([[3.0, -2.0, 1.0, 0.0]], (20, 1, 1)) + np.random.default_rng(0).normal(0, 0.1, (20, 1, 4))
    head = fit_pooled_heads(stable, X, domain, training=known).theta[0, 0]
    assert np.abs(head - [3.0, -2.0, 1.0, 0.0]).max() < 1.0


def test_shares_are_shrunk_more_where_rows_are_few():
    rng = np.random.default_rng(0)
    domain = np.concatenate([np.repeat(np.arange(30), 200), np.full(5, 30)])
    f = np.clip(rng.beta(5, 5, 31)[domain] + rng.normal(0, 0.1, len(domain)), 0.01, 0.99)
    f[domain == 30] = 0.95
    shares = shrunken_shares(np.column_stack([1 - f, f]), domain, 31)
    own = np.array([f[domain == i].mean() for i in range(31)])
    moved = np.abs(shares[:, 1] - own) / np.abs(own - f.mean())
    assert moved[30] > 5 * np.median(moved[:30])
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)


def test_three_classes():
    rng = np.random.default_rng(0)
    domain = np.repeat(np.arange(40), 80)
    f = rng.dirichlet([1.0, 1.0, 1.0], len(domain))
    y = (rng.random(len(domain))[:, None] > f.cumsum(axis=1)).sum(axis=1)
    centres = rng.normal(0, 1.0, (3, 2)) + rng.normal(0, 0.5, (40, 3, 2))
    X = centres[domain, y] + rng.normal(size=(len(domain), 2))
    heads = fit_pooled_heads(f, X, domain)
    one = log_loss(adapt(f, X, answer="paper").predict_log_proba(f, X), y)
    assert log_loss(heads.predict_log_proba(f, X, domain), y) < one - 0.02


def test_a_leak_draws_answers_towards_the_stable_ones():
    stable, X, domain, _, _ = simulate(30)
    heads = fit_pooled_heads(stable, X, domain)
    confusion = np.array([[0.7, 0.3], [0.3, 0.7]])
    plain, careful, none = (
        np.exp(heads.predict_log_proba(stable, X, domain, leak, confusion)) for leak in (None, 0.02, 1.0)
    )
    np.testing.assert_allclose(none, stable, atol=1e-9)
    assert np.abs(careful - stable).mean() < np.abs(plain - stable).mean()


def test_heads_of_some_domains_are_those_of_all_and_the_others_get_the_mean(monkeypatch):
    """What is usual is learned from few others: that matters less than the error that a head has anyway."""
    stable, X, domain, _, _ = simulate(80)
    monkeypatch.setattr(many, "_OTHERS", 40)
    needed = np.array([3, 17, 60])
    every, some = fit_pooled_heads(stable, X, domain), fit_pooled_heads(stable, X, domain, needed=needed)
    error = np.sqrt(np.diagonal(every.covariance, axis1=1, axis2=2))[needed]
    assert (np.abs(some.theta - every.theta)[needed, 0] < 0.5 * error).all()
    np.testing.assert_allclose(some.shares, every.shares)
    alike = (some.theta == some.mean).all(axis=(1, 2))
    assert alike.sum() == 80 - 3 - 40
    assert not alike[needed].any()
