"""Changed features are put back without labels and without training rows."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from sfboost.choice.realigning import FeatureModel
from sfboost.shift import DomainData


def drawn(rng, n=4000):
    """A stable feature, two unstable ones that go with it and with the label."""
    y = rng.integers(0, 2, n)
    S = y + rng.normal(size=n)
    U = np.column_stack([2.0 * y + 0.5 * S + rng.normal(size=n), y - 0.3 * S + rng.normal(size=n)])
    return S[:, None], 3.0 * U + 7.0, y


def seen(S, U):
    n = len(S)
    return DomainData(np.log(np.full((n, 2), 0.5)), U, np.log(np.full((n, 2), 0.5)), S, np.full(n, 1 / n))


@pytest.fixture
def feature_model():
    S, U, _ = drawn(np.random.default_rng(0))
    return FeatureModel.learn([seen(S, U)])


@pytest.mark.parametrize("columns", [[0], [0, 1]])
def test_a_mirrored_feature_comes_back(feature_model, columns):
    S, U, _ = drawn(np.random.default_rng(1))
    turned = U.copy()
    turned[:, columns] = 2 * U[:, columns].mean(axis=0) - U[:, columns]
    realigned = feature_model.realign(seen(S, turned), columns, [-1.0] * len(columns)).apply(seen(S, turned))
    for j in range(2):
        assert np.corrcoef(realigned[:, j], U[:, j])[0, 1] > 0.99


def test_another_unit_comes_back(feature_model):
    S, U, _ = drawn(np.random.default_rng(2))
    other = U * [5.0, 1.0] + [40.0, 0.0]
    realigned = feature_model.realign(seen(S, other), [0], [1.0]).apply(seen(S, other))
    np.testing.assert_allclose(realigned.mean(axis=0), U.mean(axis=0), atol=0.5)
    assert np.abs(realigned - U).max() < 2.0


def test_a_feature_of_which_nothing_is_left_is_what_the_others_say(feature_model):
    S, U, y = drawn(np.random.default_rng(3))
    rng = np.random.default_rng(4)
    noise = U.copy()
    noise[:, 0] = rng.permutation(U[:, 0])
    realigned = feature_model.realign(seen(S, noise), [0], [0.0]).apply(seen(S, noise))
    np.testing.assert_array_equal(realigned[:, 1], U[:, 1])
    S0, U0, y0 = drawn(np.random.default_rng(0))
    pooled = LogisticRegression(max_iter=1000).fit(np.hstack([S0, U0]), y0)
    without = LogisticRegression(max_iter=1000).fit(np.hstack([S0, U0[:, 1:]]), y0)
    dropped = pooled.score(np.hstack([S, realigned]), y)
    assert dropped > pooled.score(np.hstack([S, noise]), y) + 0.05
    assert dropped > without.score(np.hstack([S, U[:, 1:]]), y) - 0.03


def test_nothing_is_written_to(feature_model):
    S, U, _ = drawn(np.random.default_rng(5))
    before = U.copy()
    feature_model.realign(seen(S, U), [0, 1], [-1.0, 0.0]).apply(seen(S, U))
    feature_model.expected(seen(S, U), np.array([1]))
    np.testing.assert_array_equal(U, before)
