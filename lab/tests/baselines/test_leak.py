"""Leak correction: exact where its assumption holds, at every prior and number of classes."""

from functools import cache

import numpy as np
import pytest
from joints import normalise
from unbalanced import PRIORS, Family, columns, naming

from sfboost_lab.baselines import ADAPTERS
from sfboost_lab.baselines.columns import ColumnSFB
from sfboost_lab.baselines.contract import LabelledRows
from sfboost_lab.baselines.leak import LeakModel, choose_cells, fit_leak_model, mixture_shares
from sfboost_lab.datasets import load


def _draw(rng, agreement, *, n=8000, leak=2.0, noise=0.0):
    """A score of log-odds shape + leak·colour + Gaussian noise: as leaky as plain ERM."""
    y = rng.integers(0, 2, n)
    colour = np.where(rng.random(n) < agreement, y, 1 - y)
    shape = (2 * y - 1) + rng.normal(0, 1.5, n)
    odds = 0.9 * shape + leak * (2 * colour - 1) + rng.normal(0, noise, n)
    return 1 / (1 + np.exp(-odds)), colour[:, None] + rng.normal(0, 0.05, (n, 1)), y


def _training(rng, **options):
    (p1, u1, y1), (p2, u2, y2) = _draw(rng, 0.9, **options), _draw(rng, 0.8, **options)
    return np.r_[p1, p2], np.r_[u1, u2], np.r_[y1, y2], np.repeat(["a", "b"], len(y1))


def _bayes(agreement):
    """Accuracy of the best rule from (shape, colour): numeric integral over the shape."""
    grid = np.linspace(-12, 12, 40001)
    density = [np.exp(-((grid - m) ** 2) / 4.5) for m in (-1, 1)]
    density = [d / d.sum() for d in density]
    total = 0.0
    for colour in (0, 1):
        total += np.maximum(
            *(0.5 * (agreement if y == colour else 1 - agreement) * density[y] for y in (0, 1))
        ).sum()
    return total


@pytest.mark.parametrize("agreement", [0.02, 0.5, 0.98])
def test_a_leaky_score_reaches_the_bayes_rule_in_every_domain(agreement):
    rng = np.random.default_rng(1)
    model = fit_leak_model(*_training(rng), n_cells=2)
    proba, unstable, y = _draw(rng, agreement)
    accuracy = (model.adapt(proba, unstable).predict(proba, unstable) == y).mean()
    assert accuracy > _bayes(agreement) - 0.015


def test_the_number_of_cells_is_chosen_on_stress_domains():
    # The unstable feature carries the shape beside the colour: fine cells then see the shape twice.
    rng = np.random.default_rng(0)
    parts = []
    for agreement in (0.9, 0.8):
        y = rng.integers(0, 2, 8000)
        colour = np.where(rng.random(8000) < agreement, y, 1 - y)
        shape = (2 * y - 1) + rng.normal(0, 1.5, 8000)
        parts.append((1 / (1 + np.exp(-0.9 * shape)), (4 * colour + shape)[:, None], y))
    p, u, y = (np.concatenate(part) for part in zip(*parts, strict=True))
    d = np.repeat([0, 1], 8000)
    assert choose_cells(np.c_[1 - p, p], u, y, d, candidates=(2, 16)) == 2


def test_the_chosen_cells_leave_rows_of_every_class_without_any_one_domain():
    """More cells, and the first domain alone would leave fewer than ten rows of a class in one of them."""
    data = load("gaussian", n_rows=4096)
    train = LabelledRows(*data.pooled(list(data.train)))
    model = ColumnSFB(stable=data.stable_features, unstable=data.unstable_features).fit(train)
    X, y = data.xy(data.test[0])
    adapted = ADAPTERS["sfb-leak"]().adapt(model, X)
    assert np.mean(adapted.predict(X) == y) > np.mean(model.predict(X) == y) + 0.05


def test_mixture_shares_find_the_maximum_of_the_likelihood():
    rng = np.random.default_rng(0)
    weights = rng.gamma(1.0, size=(500, 3))
    q = mixture_shares(weights)

    def value(p):
        return np.log(weights @ p).sum() + 0.5 * np.log(p).sum()

    for _ in range(50):
        other = np.clip(q + rng.normal(0, 0.02, 3), 1e-3, None)
        assert value(other / other.sum()) <= value(q) + 1e-6


def test_inputs_are_not_written_to_and_bad_ones_are_explained():
    rng = np.random.default_rng(0)
    p, u, y, d = _training(rng, n=1000)
    for array in (p, u, y, d):
        array.setflags(write=False)
    model = fit_leak_model(p, u, y, d, n_cells=2)
    model.adapt(p, u)
    with pytest.raises(ValueError, match="at least two"):
        fit_leak_model(p, u, y, np.zeros(len(y)), n_cells=2)
    with pytest.raises(ValueError, match="same rows"):
        fit_leak_model(p, u[:-1], y, d)
    with pytest.raises(ValueError, match="columns"):
        fit_leak_model(np.full((len(y), 3), 1 / 3), u, y, d)
    with pytest.raises(ValueError, match="shape"):
        model.adapt(p, u[:-1])
    with pytest.raises(ValueError, match="fewer cells"):
        fit_leak_model(p[::10], u[::10], y[::10], d[::10], n_cells=8)


# -- at every prior: exact on finite distributions, and as fitted ------------------------------------------

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
    law = KnownLaw(scores, naming(family.accuracy, k))
    return LeakModel(np.arange(k), KnownCells(), law, np.array(family.prior))


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
@pytest.mark.parametrize("agreement", [0.1, 0.5, 0.9])
def test_a_leaky_score_reaches_the_ceiling_by_leak_correction(prior, agreement):
    family, (model, _) = Family(prior), fitted(prior, 1.0)
    named, unstable, y = family.draw(6000, agreement, np.random.default_rng(1))
    score, X = family.leaky(named, unstable, 1.0), columns(unstable, family.n_classes)
    accuracy = (model.adapt(score, X).predict(score, X) == y).mean()
    assert accuracy > family.ceiling(agreement) - 0.02


def test_domains_of_unequal_size_and_prior_count_once_each():
    rng = np.random.default_rng(0)
    parts = [Family(PRIORS["20 %"]).draw(8000, 0.9, rng), Family(PRIORS["10 %"]).draw(2000, 0.7, rng)]
    named, unstable, y = (np.concatenate(part) for part in zip(*parts, strict=True))
    domain = np.repeat([0, 1], [8000, 2000])
    model = fit_leak_model(Family((0.85, 0.15)).stable(named), columns(unstable, 2), y, domain, n_cells=2)
    expected = np.mean([np.bincount(y[domain == d]) / (domain == d).sum() for d in (0, 1)], axis=0)
    np.testing.assert_allclose(model.prior, expected, atol=1e-12)
