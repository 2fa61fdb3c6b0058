"""Lots of rows that arrive over time: p-values that are valid given the past."""

import numpy as np
import pytest

from sfboost.adaptation.standardize import Standardizer
from sfboost.adaptation.watching import Watch

UNITS = Standardizer(np.zeros(2), np.ones(2))


def draw(n_rows, slope, rng, noise="normal"):
    """f_S that is sure of itself and sometimes wrong: what makes scores skewed."""
    sign = 2 * rng.integers(0, 2, n_rows) - 1
    f = 1.0 / (1.0 + np.exp(-2.5 * (rng.normal(size=n_rows) + 1.25 * sign)))
    error = rng.standard_t(3, size=(n_rows, 2)) if noise == "heavy" else rng.normal(size=(n_rows, 2))
    return np.column_stack([1.0 - f, f]), slope * sign[:, None] + error


def p_values(rng, looks, rows, half_life=None, noise="normal"):
    watch, found = Watch(UNITS, half_life), []
    for _ in range(looks):
        p, watch = watch.look(*draw(rows, 1.0, rng, noise))
        found.append(p)
    return np.array(found[1:])


@pytest.mark.parametrize(("half_life", "noise"), [(None, "normal"), (500.0, "normal"), (None, "heavy")])
def test_while_nothing_changes_p_values_are_uniform_and_tell_nothing_of_the_next(half_life, noise):
    rng = np.random.default_rng(0)
    streams = np.array([p_values(rng, 41, 80, half_life, noise) for _ in range(60)])
    for level in (0.05, 0.01, 0.001):
        error = np.sqrt(level / streams.size)
        assert abs((streams < level).mean() - level) < 4.0 * error
    surprise = -np.log(streams)
    for lag in (1, 5):
        together = np.corrcoef(surprise[:, lag:].ravel(), surprise[:, :-lag].ravel())[0, 1]
        assert abs(together) < 3.0 / np.sqrt(streams.size)
    # What the first rows happened to be is not held against all that follow.
    assert surprise.mean(axis=1).std() < 1.3 / np.sqrt(streams.shape[1])


@pytest.mark.parametrize("slope", [-1.0, 0.0])
def test_a_meaning_that_is_mirrored_or_gone_is_seen_in_the_next_lot(slope):
    rng = np.random.default_rng(1)
    watch = Watch(UNITS)
    for _ in range(5):
        _, watch = watch.look(*draw(200, 1.0, rng))
    assert watch.look(*draw(200, slope, rng))[0] < 1e-6


def test_small_batches_are_judged_together():
    rng = np.random.default_rng(2)
    stable, X = draw(120, 1.0, rng)
    whole, parts = Watch(UNITS), Watch(UNITS)
    first, whole = whole.look(stable[:60], X[:60])
    second, whole = whole.look(stable[60:], X[60:])
    found = []
    for at in range(0, 120, 20):
        p, parts = parts.look(stable[at : at + 20], X[at : at + 20])
        found.append(p)
    assert np.isnan([first, *found[:5]]).all()
    assert found[5] == pytest.approx(second, rel=1e-12)


def test_rows_wait_for_some_of_a_rare_class_but_not_forever():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(100, 2))
    for share, batches in ((0.05, 4), (0.0, 20)):
        watch = Watch(UNITS)
        for _ in range(batches):
            assert watch.mean is None
            _, watch = watch.look(np.tile([1.0 - share, share], (100, 1)), X)
        assert watch.mean is not None
        assert watch.waiting == ()
