"""Many domains at once are answered as each of them alone."""

import numpy as np
import pytest

import sfboost


def rows(rng, n):
    """U follows X_S within a class; two columns that say much and little."""
    y = rng.integers(0, 2, n)
    noise = rng.normal(size=(n, 2))
    S = (2 * y - 1)[:, None] * 0.7 + noise
    U = np.outer(2 * y - 1, (0.8, 0.3)) + 0.5 * noise[:, :1] + rng.normal(size=(n, 2))
    return np.hstack([S, U]), y


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(3)
    parts = [rows(rng, 400) for _ in range(4)]
    X, y = (np.concatenate([part[k] for part in parts]) for k in (0, 1))
    return sfboost.StableFeatureBoosting([0, 1]).fit(X, y, sample_domain=np.repeat(list("abcd"), 400))


@pytest.mark.filterwarnings("ignore::sfboost.AdaptationWarning")
@pytest.mark.parametrize("offset", [0.0, 2.0, 3.0])
def test_one_domain_among_many_has_the_weights_that_it_has_alone(model, offset):
    """Where the zero of a column moves, what is at stake on these very rows counts as well."""
    X, _ = rows(np.random.default_rng(4), 400)
    X[:, 2] += offset
    alone, many = model.adapt(X), model.adapt(X, sample_domain=np.full(len(X), "new"))
    assert (alone.decision_ == "pooled") == (offset == 0.0)
    assert many.weights_["new"] == pytest.approx(alone.weights_)
