"""Leak correction: exact where its assumption holds, refused where the training domains disagree."""

import numpy as np
import pytest

from sfboost import Settings, adapt
from sfboost_lab.baselines import ADAPTERS
from sfboost_lab.baselines.columns import ColumnSFB
from sfboost_lab.baselines.contract import LabelledRows
from sfboost_lab.datasets import load
from sfboost_lab.leak_cells import mixture_shares
from sfboost_lab.leakage import LeakRefusedError, choose_cells, fit_leak_model


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


@pytest.mark.parametrize("agreement", [0.02, 0.1, 0.3, 0.5, 0.7, 0.98])
def test_a_leaky_score_reaches_the_bayes_rule_in_every_domain(agreement):
    rng = np.random.default_rng(1)
    model = fit_leak_model(*_training(rng), n_cells=2)
    proba, unstable, y = _draw(rng, agreement)
    accuracy = (model.adapt(proba, unstable).predict(proba, unstable) == y).mean()
    assert accuracy > _bayes(agreement) - 0.015


def test_the_papers_correction_fails_there():
    rng = np.random.default_rng(1)
    proba, unstable, y = _draw(rng, 0.1)
    adapted = adapt(proba, unstable, settings=Settings(correction="posthoc"), answer="paper")
    assert (adapted.predict(proba, unstable) == y).mean() < 0.5


def test_shares_and_prior_of_the_new_domain_are_recovered():
    rng = np.random.default_rng(2)
    model = fit_leak_model(*_training(rng, n=20_000), n_cells=2)
    proba, unstable, _ = _draw(rng, 0.2, n=20_000)
    adapted = model.adapt(proba, unstable)
    red = adapted.shares[model._cells.assign(np.array([[1.0]]))[0]]
    np.testing.assert_allclose(red, [0.8, 0.2], atol=0.03)
    np.testing.assert_allclose(adapted.prior, [0.5, 0.5], atol=0.03)


def test_three_classes_and_names_of_classes():
    rng = np.random.default_rng(0)

    def draw(agreement, n=9000):
        y = rng.integers(0, 3, n)
        colour = np.where(rng.random(n) < agreement, y, (y + rng.integers(1, 3, n)) % 3)
        logits = 1.2 * np.eye(3)[y] + rng.normal(0, 0.8, (n, 3)) + 2.0 * np.eye(3)[colour]
        proba = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
        return proba, np.eye(3)[colour], np.array(["x", "y", "z"])[y]

    (p1, u1, y1), (p2, u2, y2), (p3, u3, y3) = draw(0.9), draw(0.75), draw(0.1)
    model = fit_leak_model(np.r_[p1, p2], np.r_[u1, u2], np.r_[y1, y2], np.repeat([0, 1], 9000), n_cells=3)
    adapted = model.adapt(p3, u3)
    assert set(model.classes) == {"x", "y", "z"}
    before = (model.classes[p3.argmax(1)] == y3).mean()
    assert (adapted.predict(p3, u3) == y3).mean() > before + 0.2
    np.testing.assert_allclose(adapted.predict_proba(p3, u3).sum(1), 1.0)


def test_domains_that_disagree_about_the_score_are_refused():
    rng = np.random.default_rng(0)
    p1, u1, y1 = _draw(rng, 0.9, leak=2.0)
    p2, u2, y2 = _draw(rng, 0.8, leak=0.5)  # the score leaks less in the second domain
    data = (np.r_[p1, p2], np.r_[u1, u2], np.r_[y1, y2], np.repeat(["a", "b"], len(y1)))
    with pytest.raises(LeakRefusedError, match="disagree"):
        fit_leak_model(*data, n_cells=2)


def test_domains_that_agree_are_rarely_refused():
    refused = 0
    for seed in range(10):
        try:
            fit_leak_model(*_training(np.random.default_rng(seed), n=1000), n_cells=2)
        except LeakRefusedError:
            refused += 1
    assert refused <= 1


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
