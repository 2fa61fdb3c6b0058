import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import log_softmax

from sfboost.calibration import Temperature, fit_temperature, reliability_curve
from sfboost.calibration.reliability import N_BINS, confidence_bins


def calibrated_rows(n, k=3, seed=0):
    rng = np.random.default_rng(seed)
    log_proba = log_softmax(rng.normal(size=(n, k)) * 1.5, axis=1)
    y = (rng.random(n)[:, None] > np.exp(log_proba).cumsum(axis=1)).sum(axis=1)
    return log_proba, np.minimum(y, k - 1)


@pytest.mark.parametrize("criterion", ["nll", "ece"])
@pytest.mark.parametrize("true", [0.5, 1.0, 3.0])
def test_the_temperature_that_was_applied_is_found(criterion, true):
    log_proba, y = calibrated_rows(40000)
    found = fit_temperature(log_proba * true, y, criterion=criterion).temperature
    assert found == pytest.approx(true, rel=0.05 if criterion == "nll" else 0.15)


def test_a_bias_that_was_added_is_found():
    log_proba, y = calibrated_rows(40000)
    bias = np.array([0.5, -0.5, 0.0])
    for criterion in ("nll", "ece"):
        found = fit_temperature(log_proba * 2 + bias, y, bias=True, criterion=criterion)
        np.testing.assert_allclose(np.exp(found.apply(log_proba * 2 + bias)), np.exp(log_proba), atol=0.02)
        assert found.bias.sum() == pytest.approx(0, abs=1e-9)


def test_two_values_are_solved_exactly():
    """AC: f_S takes two values, so the right temperature puts them at .25 and .75."""
    logits = np.log(np.array([[0.05, 0.95], [0.95, 0.05]]))[np.repeat([0, 1], 400)]
    y = np.concatenate([np.repeat([1, 0], [300, 100]), np.repeat([0, 1], [300, 100])])
    proba = np.exp(fit_temperature(logits, y).apply(logits))
    np.testing.assert_allclose(proba[0], [0.25, 0.75], atol=1e-5)
    assert reliability_curve(proba, y).ece < 1e-5


def test_every_domain_counts_the_same_whatever_its_size():
    sharp, y_sharp = calibrated_rows(20000, seed=1)
    blunt, y_blunt = calibrated_rows(500, seed=2)
    logits, y = np.vstack([sharp * 2, blunt * 0.5]), np.concatenate([y_sharp, y_blunt])
    domain = np.repeat(["large", "small"], [20000, 500])
    pooled = fit_temperature(logits, y).temperature
    balanced = fit_temperature(logits, y, domain=domain).temperature
    assert pooled == pytest.approx(2, rel=0.1)
    assert balanced < 0.8 * pooled
    weight = np.where(domain == "large", 1 / 20000, 1 / 500)
    assert fit_temperature(logits, y, sample_weight=weight).temperature == pytest.approx(balanced, rel=1e-4)


@given(st.floats(0.1, 10), st.integers(0, 1000))
def test_a_temperature_never_changes_the_predicted_class(temperature, seed):
    log_proba, _ = calibrated_rows(50, seed=seed)
    scaled = Temperature(temperature).apply(log_proba)
    np.testing.assert_array_equal(scaled.argmax(axis=1), log_proba.argmax(axis=1))
    np.testing.assert_allclose(np.exp(scaled).sum(axis=1), 1)


def test_nll_never_rises_by_calibrating():
    log_proba, y = calibrated_rows(300)
    before = -log_proba[np.arange(300), y].mean()
    after = -fit_temperature(log_proba, y).apply(log_proba)[np.arange(300), y].mean()
    assert after <= before + 1e-12


def test_an_unknown_criterion_is_named():
    with pytest.raises(ValueError, match='use "nll" or "ece"'):
        fit_temperature(*calibrated_rows(10), criterion="mse")


class TestReliability:
    def test_ece_by_hand(self):
        proba = np.array([[0.1, 0.9]] * 10 + [[0.4, 0.6]] * 10)
        y = np.array([1] * 9 + [0] + [1] * 3 + [0] * 7)
        curve = reliability_curve(proba, y)
        np.testing.assert_allclose(curve.confidence, [0.6, 0.9])
        np.testing.assert_allclose(curve.accuracy, [0.3, 0.9])
        np.testing.assert_allclose(curve.weight, [0.5, 0.5])
        assert reliability_curve(proba, y).ece == pytest.approx(0.15)

    def test_bins_are_open_below_and_closed_above(self):
        edge = 9 / N_BINS
        assert confidence_bins(np.array([edge, np.nextafter(edge, 1.0), 1.0])).tolist() == [8, 9, N_BINS - 1]

    def test_weights_count_like_repetition(self):
        log_proba, y = calibrated_rows(60)
        proba, weight = np.exp(log_proba), np.ones(60)
        weight[:20] = 2
        twice = np.concatenate([np.arange(60), np.arange(20)])
        assert reliability_curve(proba, y, sample_weight=weight).ece == pytest.approx(
            reliability_curve(proba[twice], y[twice]).ece
        )


def test_labels_that_are_wrong_one_time_in_four_are_found_and_a_clean_score_stays():
    rng = np.random.default_rng(0)
    logits = rng.normal(0, 3, size=(4000, 1)) @ np.array([[-0.5, 0.5]])
    clean = (rng.random(4000) < 1 / (1 + np.exp(-2 * logits[:, 1]))).astype(int)
    noisy = np.where(rng.random(4000) < 0.25, 1 - clean, clean)
    found = fit_temperature(logits, noisy, noise=True)
    assert found.noise.sum() == pytest.approx(0.5, abs=0.051)
    assert found.temperature == pytest.approx(1.0, abs=0.2)
    np.testing.assert_allclose(np.exp(found.apply(logits)).sum(axis=1), 1.0)
    assert fit_temperature(logits, clean, noise=True).noise is None


def test_noise_is_believed_only_where_it_makes_labels_clearly_more_likely():
    every = np.arange(60)
    for seed in range(10):
        logits, y = calibrated_rows(60, seed=seed)
        plain, found = (fit_temperature(logits, y, noise=noise) for noise in (False, True))
        gain = (found.apply(logits) - plain.apply(logits))[every, y].sum()
        assert found.noise is None or gain >= 2.0
