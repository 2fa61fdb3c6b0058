"""Mixtures of classifiers: what the weights are, and what they do not depend on."""

import numpy as np
import pytest
from scipy.special import log_softmax

from sfboost.calibration import Temperature
from sfboost.choice.mixture import Mixture, fit_mixture


def members(rng, n, n_classes=2):
    """A member that says the truth of one column, a second one that says that of another, and labels."""
    logits = [rng.normal(size=(n, n_classes)) for _ in range(2)]
    proba = np.exp(log_softmax(logits[0] + logits[1], axis=1))
    y = (rng.random(n)[:, None] > proba.cumsum(axis=1)).sum(axis=1)
    return [log_softmax(part, axis=1) for part in logits], np.minimum(y, n_classes - 1)


def test_one_member_alone_is_its_temperature():
    said, _ = members(np.random.default_rng(0), 20, 3)
    hot = Temperature(2.5, np.array([0.3, -0.1, -0.2]))
    np.testing.assert_allclose(Mixture.of(hot).apply(said[:1]), hot.apply(said[0]), atol=1e-12)


def test_few_domains_hardly_change_what_the_first_member_says():
    said, y = members(np.random.default_rng(1), 3000)
    few, many = (fit_mixture(said, y, np.arange(3000) % n, np.ones(3000)).weights[1] for n in (2, 300))
    assert few < 0.4
    assert many == pytest.approx(1.0, abs=0.15)


def test_a_domain_counts_the_same_whatever_its_size():
    rng = np.random.default_rng(2)
    said, y = members(rng, 900)
    domain = np.repeat([0, 1, 2], 300)
    y[domain == 1] = rng.integers(0, 2, 300)
    again = np.concatenate([np.arange(900), *[np.flatnonzero(domain == 1)] * 9])
    plain = fit_mixture(said, y, domain, np.ones(900))
    larger = fit_mixture([part[again] for part in said], y[again], domain[again], np.ones(len(again)))
    heavier = fit_mixture(said, y, domain, np.where(domain == 1, 10.0, 1.0))
    for other in (larger, heavier):
        np.testing.assert_allclose(other.weights, plain.weights, atol=1e-4)
