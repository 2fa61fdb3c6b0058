"""How likely a change is in each of many domains: known truth, z-values and features drawn from the model."""

import numpy as np
import pytest
from scipy.stats import norm

from sfboost.change.attribution import LEFT
from sfboost.change.chances import Chances

N_FEATURES = 4


def draw(rng, n, share, power=3.0):
    """P-values, fits and truth of domains; where something changed every feature says the opposite."""
    changed = rng.random(n) < share
    each = power / np.sqrt(N_FEATURES)
    seen = rng.normal(np.where(changed, -each, each)[:, None], 1.0, (n, N_FEATURES))
    fit = -0.5 * (seen[:, :, None] - each * LEFT) ** 2
    # All features together, against what is expected of them; the test looks at one side.
    z = (N_FEATURES * each - seen.sum(axis=1)) / np.sqrt(N_FEATURES)
    return np.minimum(norm.sf(z), 0.5), np.full(n, power), fit, changed


def log_loss(chance, changed):
    chance = np.clip(chance, 1e-9, 1.0 - 1e-9)
    return -np.where(changed, np.log(chance), np.log1p(-chance)).mean()


@pytest.mark.parametrize("share", [0.02, 0.1, 0.5, 0.95])
def test_chances_are_calibrated_and_about_as_good_as_those_of_who_knows_the_model(share):
    p_value, power, fit, changed = draw(np.random.default_rng(0), 4000, share)
    found = Chances.estimate(p_value, power, fit, np.full(4000, 2.0))
    assert found.share == pytest.approx(changed.mean(), abs=0.02)
    assert found.chance.sum() == pytest.approx(changed.sum(), rel=0.1, abs=20)
    factor = (fit[:, :, 2] - fit[:, :, 0]).sum(axis=1)
    odds = np.log(share / (1.0 - share)) + factor
    known = log_loss(1.0 / (1.0 + np.exp(-odds)), changed)
    assert log_loss(found.chance, changed) < known + 0.015
    sure = found.chance > 0.8
    assert changed[sure].mean() > 0.75


def test_where_nothing_changed_hardly_any_domain_is_thought_to_have():
    p_value, power, fit, _ = draw(np.random.default_rng(1), 2000, 0.0)
    found = Chances.estimate(p_value, power, fit, np.full(2000, 2.0))
    assert found.share < 0.02
    assert (found.chance > 0.5).mean() < 0.002


def test_the_fewer_the_rows_the_nearer_a_chance_is_to_the_share_of_all():
    p_value, power, fit, changed = draw(np.random.default_rng(2), 1000, 0.3, power=3.0)
    few = np.arange(1000) >= 900
    p_value[few], power[few] = 1.0, 0.0
    away = []
    for rows in (0.0, 0.5, 1.0):
        found = Chances.estimate(p_value, power, fit, np.where(few, rows, 2.0))
        away.append(np.abs(found.chance[few] - found.share).mean())
    assert away[0] < 1e-6 < away[1] < away[2]
    # They could not tell by themselves, and the others have told them.
    assert log_loss(found.chance[few], changed[few]) < 0.5 * log_loss(np.full(100, 0.3), changed[few])


def test_a_feature_that_is_there_three_times_counts_about_once():
    rng = np.random.default_rng(3)
    p_value, power, fit, changed = draw(rng, 2000, 0.1)
    enough = np.full(2000, 2.0)
    once = Chances.estimate(p_value, power, fit, enough).chance
    copied = Chances.estimate(p_value, power, np.tile(fit, (1, 3, 1)), enough).chance
    assert np.abs(once - copied).mean() < 0.01
    assert log_loss(copied, changed) == pytest.approx(log_loss(once, changed), rel=0.1)


def test_what_happened_elsewhere_is_told_by_feature():
    """The first feature is lost, the second turned, the others are as they were."""
    rng = np.random.default_rng(4)
    changed, left = rng.random(1000) < 0.2, np.array([0.0, -1.0, 1.0, 1.0])
    seen = rng.normal(2.0 * np.where(changed[:, None], left, 1.0), 1.0)
    fit = -0.5 * (seen[:, :, None] - 2.0 * LEFT) ** 2
    p_value = np.where(changed, 1e-4, 0.5)
    found = Chances.estimate(p_value, np.full(1000, 3.0), fit, np.full(1000, 2.0))
    assert found.elsewhere.argmax(axis=1).tolist() == [1, 2, 0, 0]
    np.testing.assert_allclose(found.elsewhere.sum(axis=1), (found.chance > 0.5).sum())
