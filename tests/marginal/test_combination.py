import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit, logit

from sfboost.marginal import (
    PseudoLabelStatistics,
    combine,
    floored_log,
    log_weights,
    make_pseudo_labels,
    posterior,
    pseudo_label_confusion,
)

probabilities = st.one_of(st.floats(0, 1), st.sampled_from([0.0, 1.0, 1e-300, 5e-324, 1 - 1e-16]))


def pair(p):
    return np.array([[1 - p, p]])


@given(probabilities, probabilities, probabilities)
def test_never_nan_or_infinite_whatever_the_inputs(stable, unstable, prior):
    joint = combine(pair(stable), pair(unstable), pair(prior)[0])
    assert np.isfinite(joint).all()
    assert joint.sum() == pytest.approx(1)


@given(st.floats(0.01, 0.99), st.floats(0.01, 0.99), st.floats(0.01, 0.99))
def test_two_classes_give_the_sum_of_logits(stable, unstable, prior):
    expected = expit(logit(stable) + logit(unstable) - logit(prior))
    assert combine(pair(stable), pair(unstable), pair(prior)[0])[0, 1] == pytest.approx(expected, rel=1e-12)


def test_contradictory_certainties_go_to_the_stable_predictor():
    np.testing.assert_array_equal(combine(pair(1.0), pair(0.0), np.array([0.5, 0.5])), pair(1.0))
    np.testing.assert_array_equal(combine(pair(0.0), pair(1.0), np.array([0.5, 0.5])), pair(0.0))


def test_a_class_that_the_stable_predictor_rules_out_stays_out():
    stable = np.array([[0.0, 0.5, 0.5]])
    joint = combine(stable, np.array([[1.0, 0.0, 0.0]]), np.full(3, 1 / 3))
    np.testing.assert_allclose(joint, stable)


def test_unstable_equal_to_the_prior_changes_nothing():
    stable, prior = np.array([[0.2, 0.3, 0.5]]), np.array([0.5, 0.25, 0.25])
    np.testing.assert_allclose(combine(stable, prior[None], prior), stable)


def test_a_class_without_mass_is_left_to_the_stable_predictor():
    joint = combine(np.array([[0.5, 0.5, 0.0]]), np.array([[0.5, 0.5, 0.0]]), np.array([0.5, 0.5, 0.0]))
    np.testing.assert_allclose(joint, [[0.5, 0.5, 0.0]])
    other = combine(np.array([[0.4, 0.4, 0.2]]), np.array([[0.5, 0.3, 0.2]]), np.array([0.5, 0.5, 0.0]))
    np.testing.assert_allclose(other, [[0.4 / 0.84, 0.24 / 0.84, 0.2 / 0.84]])


@given(st.integers(0, 2**32 - 1), st.integers(2, 5))
def test_the_e_step_is_the_combination(seed, k):
    rng = np.random.default_rng(seed)
    stable, unstable, prior = (rng.dirichlet(np.ones(k), size=n) for n in (5, 5, 1))
    e_step = posterior(floored_log(unstable), log_weights(stable, prior[0]))
    np.testing.assert_allclose(e_step, combine(stable, unstable, prior[0]), atol=1e-12)


class TestPseudoLabels:
    proba = np.random.default_rng(0).dirichlet([1, 2, 3], size=20000)

    def test_soft_ones_are_the_probabilities_and_hard_ones_the_argmax(self):
        assert make_pseudo_labels(self.proba) is self.proba
        hard = make_pseudo_labels(self.proba, "hard")
        np.testing.assert_array_equal(hard, np.eye(3)[self.proba.argmax(axis=1)])

    def test_their_confusion_has_the_truth_in_columns(self):
        proba = np.array([[0.9, 0.1], [0.6, 0.4], [0.2, 0.8]])
        confusion = pseudo_label_confusion(make_pseudo_labels(proba, "hard"), proba)
        np.testing.assert_allclose(confusion, [[1.5 / 1.7, 0.5 / 1.3], [0.2 / 1.7, 0.8 / 1.3]])

    def test_sampled_ones_have_the_same_mean_and_confusion(self):
        sampled = make_pseudo_labels(self.proba, "sampled", 0)
        np.testing.assert_allclose(sampled.mean(axis=0), self.proba.mean(axis=0), atol=0.012)
        soft = PseudoLabelStatistics.from_proba(self.proba).confusion
        np.testing.assert_allclose(pseudo_label_confusion(sampled, self.proba), soft, atol=0.02)
        np.testing.assert_allclose(pseudo_label_confusion(self.proba, self.proba), soft, atol=1e-12)

    def test_sampling_follows_its_seed_alone(self):
        state = repr(np.random.get_state())
        first, second = (make_pseudo_labels(self.proba, "sampled", 7) for _ in range(2))
        np.testing.assert_array_equal(first, second)
        assert repr(np.random.get_state()) == state

    def test_an_unknown_kind_is_named(self):
        with pytest.raises(ValueError, match="'fuzzy' is not known"):
            make_pseudo_labels(self.proba, "fuzzy")
