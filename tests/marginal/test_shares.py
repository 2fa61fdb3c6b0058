"""Label shift: the class shares are found, and nothing else is touched."""

import numpy as np
import pytest

from sfboost.marginal.shares import shifted

# P(X | Y) of three classes and four cells: what does not change.
CELLS = np.array([[0.6, 0.2, 0.1, 0.1], [0.1, 0.6, 0.2, 0.1], [0.1, 0.1, 0.2, 0.6]])
OLD, NEW = np.array([0.5, 0.3, 0.2]), np.array([0.1, 0.3, 0.6])


def posterior(prior):
    joint = prior[:, None] * CELLS
    return (joint / joint.sum(axis=0)).T


@pytest.mark.parametrize("prior", [NEW, OLD], ids=["moved", "as it was"])
def test_with_the_exact_law_of_the_target_rows_probabilities_are_exact(prior):
    given, weight = posterior(OLD), prior @ CELLS
    before = given.copy()
    found = shifted(given, OLD, weight)
    np.testing.assert_allclose(found, posterior(prior), atol=1e-5)
    np.testing.assert_allclose(weight @ found, prior, atol=1e-5)
    np.testing.assert_array_equal(given, before)


def test_shares_are_never_less_likely_than_those_of_em_alone():
    """Also where classes overlap so much that EM has hardly moved after hundreds of steps."""
    rng = np.random.default_rng(0)
    for n_classes, apart in ((2, 0.3), (2, 3.0), (5, 0.3), (5, 1.0)):
        source, at = rng.dirichlet(np.full(n_classes, 3.0)), rng.normal(0.0, apart, n_classes)
        x = at[rng.choice(n_classes, 300)] + rng.normal(size=300)
        joint = source * np.exp(-0.5 * (x[:, None] - at) ** 2)
        proba, weight = joint / joint.sum(axis=1, keepdims=True), np.full(300, 1 / 300)
        slow = source
        for _ in range(500):
            ratio = proba * (slow / source)
            slow = weight @ (ratio / ratio.sum(axis=1, keepdims=True))
        fast = weight @ shifted(proba, source, weight)
        assert fast.sum() == pytest.approx(1.0)
        assert weight @ np.log(proba / source @ fast) >= weight @ np.log(proba / source @ slow) - 1e-9
