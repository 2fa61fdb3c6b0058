"""False discoveries over many domains."""

import numpy as np
import pytest
from scipy.stats import false_discovery_control

from sfboost.change.many import _judged, benjamini_hochberg
from sfboost.change.result import Change


def test_adjusted_p_values_are_those_of_scipy():
    p = np.random.default_rng(0).random(50) ** 3
    np.testing.assert_allclose(benjamini_hochberg(p), false_discovery_control(p))


def test_of_the_discoveries_at_most_the_level_is_false():
    rng = np.random.default_rng(0)
    shares = []
    for _ in range(300):
        null = rng.random(80) < 0.8
        p = np.where(null, rng.random(80), rng.beta(0.1, 5.0, 80))
        found = benjamini_hochberg(p) < 0.1
        shares.append((found & null).sum() / max(found.sum(), 1))
    assert np.mean(shares) < 0.1


@pytest.mark.parametrize(("power", "verdict"), [(3.0, "unchanged"), (1.0, "cannot tell")])
def test_a_change_that_is_none_among_many_loses_its_verdict(power, verdict):
    change = Change("changed", 0.04, power, 0.05, 0.2, 0.1, {}, (), ("heart rate",), (), (0.0,) * 4)
    assert _judged(change, 0.5).verdict == verdict
    assert _judged(change, 0.5).changed == ()
    assert _judged(change, 0.01) is change
