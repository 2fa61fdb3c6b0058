"""Moments and what own domains lead to expect of them, against their definitions."""

from dataclasses import fields, replace

import numpy as np
import pytest
from scipy.stats import t as student

from sfboost.shift import DomainData, Reference, change_in
from sfboost.shift.coordinates import CommonUnits, MeaningCoordinates, MeaningSums
from sfboost.shift.moments import Moments, measure_moments
from sfboost.shift.prediction import Expected, combine
from sfboost.shift.reference import measure_domain
from sfboost.shift.testing import compare


def draw(rng, n):
    """Two classes; X_S and both columns of X_U follow them, one of these by little."""
    y = rng.integers(0, 2, n)
    sign = 2.0 * y - 1.0
    X, U = (rng.normal(size=(n, 2)) + sign[:, None] * slopes for slopes in ([0.8, 0.3], [1.0, 0.4]))
    on_stable, on_all = X @ [1.6, 0.6], X @ [1.6, 0.6] + U @ [2.0, 0.8]
    stable, pooled = (1.0 / (1.0 + np.exp(-odds)) for odds in (on_stable, on_all))
    return DomainData.of(stable, U, pooled, X), y


def coordinates_of(view, y):
    units = CommonUnits.of(view)
    return MeaningCoordinates.learn(MeaningSums.of(view, y, units, 1.0), units, units.evidence(view))


def test_twice_the_unit_is_twice_the_scale_of_features_and_evidence():
    view, y = draw(np.random.default_rng(0), 2000)
    double = replace(view, unstable=2.0 * view.unstable)
    coordinates = coordinates_of(view, y)
    one, other = (measure_moments(coordinates, each, (view.weight,))[0] for each in (view, double))
    np.testing.assert_allclose(other.scale[0] - one.scale[0], np.log(2.0), atol=0.01)
    np.testing.assert_allclose(other.evidence_scale[0] - one.evidence_scale[0], np.log(2.0), atol=1e-9)


def test_moments_scatter_by_their_standard_errors():
    rng = np.random.default_rng(0)
    view, y = draw(rng, 50_000)
    coordinates = coordinates_of(view, y)
    views = [draw(rng, 400)[0] for _ in range(300)]
    measured = [measure_moments(coordinates, view, (view.weight,))[0] for view in views]
    for moment in fields(Moments):
        values, errors = (np.array([getattr(one, moment.name)[i] for one in measured]) for i in (0, 1))
        np.testing.assert_allclose(values.std(axis=0), errors.mean(axis=0), rtol=0.25, err_msg=moment.name)


def test_what_is_expected_is_the_random_effects_prediction():
    """Three domains of equal error: every number by hand."""
    values, error = np.array([1.0, 2.0, 4.5]), 0.5
    expected = Expected.of([(np.array([v]), np.array([error])) for v in values], relative=0.2, absolute=0.3)
    mean = values.mean()
    between = values.var(ddof=1) - error**2
    tau2 = (2.0 * between + 6.0 * ((0.2 * mean) ** 2 + 0.3**2)) / 8.0
    assert expected.value[0] == pytest.approx(mean)
    assert expected.variance[0] == pytest.approx(tau2 + (error**2 + tau2) / 3.0)
    assert expected.freedom == 8.0
    found = expected.compare((np.array([-1.0]), np.array([0.7])))
    spread = np.sqrt(expected.variance[0] + 0.49)
    assert found.power[0] == pytest.approx(mean / spread)
    assert found.ratio[0] == pytest.approx(-1.0 / mean)
    assert found.p_value[0] == pytest.approx(student.cdf((-1.0 - mean) / spread, 8.0))


@pytest.mark.parametrize(
    ("sides", "low", "high"), [("nearer to zero", False, True), ("below", True, False), ("both", True, True)]
)
def test_the_side_on_which_a_value_is_remarkable(sides, low, high):
    """Of values that are negative in own domains: lower ones say more of the same meaning."""
    expected = Expected.of([(np.array([-1.0]), np.array([0.05]))] * 4, sides=sides)
    for new, remarkable in ((-3.0, low), (1.0, high)):
        assert (expected.compare((np.array([new]), np.array([0.05]))).p_value[0] < 0.05) == remarkable


def test_a_moment_that_says_more_than_expected_does_not_outweigh_one_that_says_less():
    assert combine(np.array([0.999, 0.01])) == pytest.approx(combine(np.array([0.5, 0.01])))


@pytest.fixture(scope="module")
def own():
    rng = np.random.default_rng(3)
    return [draw(rng, 500) for _ in range(4)]


def learned(own, groups):
    return Reference.learn([view for view, _ in own], [y for _, y in own], list("abcd"), groups=groups)


def test_the_least_of_two_columns_counts_twice(own):
    view, _ = draw(np.random.default_rng(4), 40)
    apart, together = (change_in(learned(own, groups), view).features for groups in ([0, 1], [0, 0]))
    least = min(feature.p_value for feature in apart)
    assert together[0].p_value == pytest.approx(min(1.0, 2.0 * least))


def test_the_reading_of_stability_under_which_less_changed_is_the_one_that_is_told(own):
    """Class shares moved: under P(Y | X_S) all else is more remarkable than under P(X_S | Y)."""
    reference, rng = learned(own, [0, 1]), np.random.default_rng(5)
    chosen = set()
    for _ in range(10):
        view, y = draw(rng, 800)
        view = view.take(np.flatnonzero((y == 1) | (rng.random(800) < 0.3)))
        here = measure_domain("new", reference.coordinates, view, reference.prior)
        readings = compare(reference, here)
        p_values = [float(reading.p_value(reference.importance)) for reading in readings]
        found = change_in(reference, view)
        assert found.p_value == pytest.approx(max(p_values))
        assert found.ratio == pytest.approx(readings[int(np.argmax(p_values))].evidence.ratio[0])
        chosen.add(int(np.argmax(p_values)))
    assert 1 in chosen
