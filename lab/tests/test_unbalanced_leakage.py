"""Flattening keeps the class prior: exact on finite distributions, and as fitted, at every prior and K."""

from functools import cache

import numpy as np
import pytest
from joints import normalise
from unbalanced import BINARY, PRIORS, Family, columns, naming

from sfboost import Settings
from sfboost.adaptation import adapt
from sfboost_lab.leakage import Disagreement, LeakModel, choose_cells, fit_leak_model

EVERY_PRIOR = {**PRIORS, "50 %": (0.5, 0.5)}
every_prior = pytest.mark.parametrize("prior", EVERY_PRIOR.values(), ids=EVERY_PRIOR)


class KnownCells:
    """Cells that are X_U itself."""

    def assign(self, X):
        return X.argmax(axis=1)


class KnownLaw:
    """The exact w_y(t, u), looked up by the score of each (x_S, x_U)."""

    def __init__(self, scores, law):
        odds = np.log(scores[..., 1:]) - np.log(scores[..., :1])
        self._table = {(u, *odds[s, u].round(9)): law[s] for s in range(len(law)) for u in range(len(law))}

    def weights(self, odds, cell):
        return np.array([self._table[(u, *row)] for u, row in zip(cell, odds.round(9), strict=True)])


def exact_model(family, scores):
    """The leak model of an infinite sample: `scores` of shape (K, K, K) are T at each (x_S, x_U)."""
    k = family.n_classes
    untested = Disagreement((), np.empty(0), np.empty(0), 0.0)
    law = KnownLaw(scores, naming(family.accuracy, k))
    return LeakModel(np.arange(k), k, untested, KnownCells(), law, np.array(family.prior))


def every_pair(k):
    named, unstable = (part.ravel() for part in np.indices((k, k)))
    return named, unstable


def exactly(family, leak):
    """The exact model, its score at every (x_S, x_U), and X_S, X_U there."""
    k = family.n_classes
    named, unstable = every_pair(k)
    score = family.leaky(named, unstable, leak)
    return exact_model(family, score.reshape(k, k, k)), score, named, np.eye(k)[unstable]


@every_prior
def test_flattening_without_a_leak_is_the_identity(prior):
    model, score, _, X = exactly(Family(prior), leak=0.0)
    np.testing.assert_allclose(model.flatten(score, X), score, atol=1e-12)


@every_prior
@pytest.mark.parametrize("leak", [-1.0, 0.7, 3.0])
def test_flattening_a_known_leak_recovers_the_posterior_of_the_stable_feature(prior, leak):
    family = Family(prior)
    model, score, named, X = exactly(family, leak)
    assert np.abs(score - family.stable(named)).max() > 0.01
    np.testing.assert_allclose(model.flatten(score, X), family.stable(named), atol=1e-12)


@every_prior
def test_where_the_posterior_is_stable_the_mean_of_the_flattened_score_is_the_new_domains_prior(prior):
    # P(X_S) moves and P(Y | X_S) stays: the paper's assumption, and a shift of the class shares.
    family = Family(prior)
    model, score, _, X = exactly(family, leak=1.0)
    k = family.n_classes
    share = normalise(np.arange(1.0, k + 1))
    table = share[:, None, None] * family.stable(np.arange(k))[:, None] * naming(0.3, k)  # x_S, x_U, y
    mean = table.sum(axis=2).ravel() @ model.flatten(score, X)
    np.testing.assert_allclose(mean, table.sum(axis=(0, 1)), atol=1e-12)
    assert np.abs(mean - family.prior).max() > 0.02


@every_prior
def test_with_a_prior_given_it_is_the_posterior_at_that_prior(prior):
    # P(X_S | Y) stays and the class shares move: label shift.
    family, there = Family(prior), EVERY_PRIOR["50 %"] if len(prior) == 2 else prior[::-1]
    model, score, named, X = exactly(family, leak=1.0)
    flat = model.flatten(score, X, prior=there)
    np.testing.assert_allclose(flat, family.stable(named, there), atol=1e-12)


@cache
def fitted(prior, leak, n=12_000):
    family, k = Family(prior), len(prior)
    named, unstable, y, domain = family.training(n, np.random.default_rng(0))
    score = family.leaky(named, unstable, leak)
    shares = np.bincount(y, minlength=k) / len(y)
    return fit_leak_model(score, columns(unstable, k), y, domain, n_cells=k), shares


@pytest.mark.long
@every_prior
@pytest.mark.parametrize("leak", [0.0, 1.0])
def test_a_fitted_model_flattens_to_the_posterior_too(prior, leak):
    family, (model, shares) = Family(prior), fitted(prior, leak)
    np.testing.assert_allclose(model.prior, shares, atol=1e-12)
    named, unstable, _ = family.draw(4000, 0.3, np.random.default_rng(1))
    flat = model.flatten(family.leaky(named, unstable, leak), columns(unstable, family.n_classes))
    assert np.abs(flat - family.stable(named)).sum(axis=1).mean() / 2 < 0.03


@every_prior
def test_the_new_domains_prior_is_found_without_labels_under_label_shift(prior):
    family, there = Family(prior), np.roll(prior, 1) * 0.5 + 0.5 * np.array(prior)
    model, _ = fitted(prior, 1.0, 20_000)
    named, unstable, _ = family.draw(20_000, 0.3, np.random.default_rng(1), prior=there)
    score, X = family.leaky(named, unstable, 1.0), columns(unstable, family.n_classes)
    found = model.adapt(score, X).prior
    np.testing.assert_allclose(found, there, atol=0.03)
    flat = model.flatten(score, X, prior=found)
    assert np.abs(flat - family.stable(named, there)).sum(axis=1).mean() / 2 < 0.04


@every_prior
@pytest.mark.parametrize("correction", ["posthoc", "likelihood"])
def test_adapting_on_a_flattened_score_without_a_leak_costs_nothing(prior, correction):
    family, (model, _) = Family(prior), fitted(prior, 0.0)
    named, unstable, y = family.draw(6000, 0.1, np.random.default_rng(1))
    stable, X = family.stable(named), columns(unstable, family.n_classes)
    accuracy = {}
    for name, score in {"as it is": stable, "flattened": model.flatten(stable, X)}.items():
        adapted = adapt(score, X, settings=Settings(correction=correction))
        accuracy[name] = (adapted.predict(score, X) == y).mean()
    assert accuracy["flattened"] == pytest.approx(accuracy["as it is"], abs=0.01)
    assert accuracy["flattened"] > family.ceiling(0.1) - 0.015


@every_prior
@pytest.mark.parametrize("agreement", [0.1, 0.5, 0.9])
def test_a_leaky_score_reaches_the_ceiling_by_leak_correction(prior, agreement):
    family, (model, _) = Family(prior), fitted(prior, 1.0)
    named, unstable, y = family.draw(6000, agreement, np.random.default_rng(1))
    score, X = family.leaky(named, unstable, 1.0), columns(unstable, family.n_classes)
    accuracy = (model.adapt(score, X).predict(score, X) == y).mean()
    assert accuracy > family.ceiling(agreement) - 0.02


@pytest.mark.parametrize("name", BINARY)
def test_the_number_of_cells_is_chosen_at_every_prior(name):
    family, rng = Family(PRIORS[name]), np.random.default_rng(5)
    named, unstable, y, domain = family.training(6000, rng)
    jittered = unstable[:, None] + rng.normal(0, 0.01, (len(y), 1))
    assert choose_cells(family.stable(named), jittered, y, domain, candidates=(2, 4)) == 2


def test_domains_of_unequal_size_and_prior_count_once_each():
    rng = np.random.default_rng(0)
    parts = [Family(PRIORS["20 %"]).draw(8000, 0.9, rng), Family(PRIORS["10 %"]).draw(2000, 0.7, rng)]
    named, unstable, y = (np.concatenate(part) for part in zip(*parts, strict=True))
    domain = np.repeat([0, 1], [8000, 2000])
    model = fit_leak_model(Family((0.85, 0.15)).stable(named), columns(unstable, 2), y, domain, n_cells=2)
    expected = np.mean([np.bincount(y[domain == d]) / (domain == d).sum() for d in (0, 1)], axis=0)
    np.testing.assert_allclose(model.prior, expected, atol=1e-12)


@pytest.mark.parametrize("prior", [(0.5, 0.6), (1.0, 0.0), (0.2, 0.3, 0.5), 0.1])
def test_a_prior_that_is_none_is_refused(prior):
    model, score, _, X = exactly(Family((0.9, 0.1)), leak=0.0)
    with pytest.raises(ValueError, match="2 positive shares"):
        model.flatten(score, X, prior=prior)
