"""Û follows the domain where the unstable features say most."""

import numpy as np
import pytest

from sfboost.diagnostics.unstable_guess import unstable_guess


def test_the_guess_follows_the_domain_where_the_feature_says_most():
    rng = np.random.default_rng(0)
    y, d = rng.integers(0, 2, 4000), np.repeat([0, 1], 2000)
    agrees = rng.random(4000) < np.where(d == 0, 0.9, 0.3)
    u = np.where(agrees, y, 1 - y)
    guess = unstable_guess(u[:, None].astype(float), y, d)
    assert (guess == u).all()


def test_a_domain_of_one_class_is_refused():
    with pytest.raises(ValueError, match="one class only"):
        unstable_guess(np.ones((4, 1)), np.array([0, 1, 0, 0]), np.array([0, 0, 1, 1]))
