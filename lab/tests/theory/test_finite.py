"""Theorem 4.4 and Lemma 4.5 on exact finite distributions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfboost_lab.theory import FiniteJoint, recover

seeds = st.integers(0, 2**32 - 1)


def complementary_joint(seed, n_classes=2, n_stable=4, n_unstable=3):
    rng = np.random.default_rng(seed)
    return FiniteJoint.from_conditionals(
        rng.dirichlet(np.full(n_classes, 2.0)),
        rng.dirichlet(np.ones(n_stable), n_classes),
        rng.dirichlet(np.ones(n_unstable), n_classes),
    )


def any_joint(seed, shape=(3, 4, 2)):
    return FiniteJoint(np.random.default_rng(seed).dirichlet(np.ones(np.prod(shape))).reshape(shape))


@given(seeds, st.integers(2, 4))
@settings(max_examples=60, deadline=None)
def test_theorem_4_4_recovers_the_joint_law_from_f_s_and_unlabelled_rows(seed, n_classes):
    joint = complementary_joint(seed, n_classes, n_stable=n_classes + 2)
    smallest = joint.statistics.spectrum[-1]
    if smallest < 1e-3:
        return  # badly conditioned draws lose the digits that are compared below
    recovered = recover(joint.stable_posterior, joint.pair_mass)
    np.testing.assert_allclose(recovered.prior, joint.prior, atol=1e-12)
    np.testing.assert_allclose(recovered.confusion, joint.confusion, atol=1e-12)
    np.testing.assert_allclose(recovered.unstable, joint.unstable_posterior, atol=1e-9 / smallest)
    np.testing.assert_allclose(recovered.joint, joint.joint_posterior, atol=1e-8 / smallest)


@given(seeds)
@settings(max_examples=60, deadline=None)
def test_lemma_4_5_informativeness_is_the_share_of_variance_that_f_s_explains(seed):
    joint = any_joint(seed)
    f, mass, p = joint.stable_posterior[:, 1], joint.stable_mass, joint.prior[1]
    from_labels = joint.confusion[0, 0] + joint.confusion[1, 1] - 1.0
    variance = mass @ (f - p) ** 2
    assert from_labels == pytest.approx(variance / (p * (1 - p)), abs=1e-12)
    assert joint.informativeness == pytest.approx(from_labels, abs=1e-12)
    assert from_labels > 0.0


def test_lemma_4_5_an_independent_x_s_has_epsilons_that_sum_to_one():
    joint = FiniteJoint.from_conditionals([0.3, 0.7], [[0.2, 0.8], [0.2, 0.8]], [[0.5, 0.5], [0.1, 0.9]])
    assert joint.confusion[0, 0] + joint.confusion[1, 1] == pytest.approx(1.0, abs=1e-12)
    with pytest.raises(ValueError, match="not identified"):
        recover(joint.stable_posterior, joint.pair_mass)


def test_an_informative_f_s_of_rank_two_does_not_identify_four_classes():
    # Classes {0, 1} and {2, 3} are told apart, their members are not.
    given_label = [[0.8, 0.2], [0.8, 0.2], [0.1, 0.9], [0.1, 0.9]]
    joint = FiniteJoint.from_conditionals(np.full(4, 0.25), given_label, np.eye(4) * 0.6 + 0.1)
    assert joint.informativeness > 0.1
    with pytest.raises(ValueError, match="not identified"):
        recover(joint.stable_posterior, joint.pair_mass)


@given(seeds, st.booleans())
@settings(max_examples=60, deadline=None)
def test_the_leak_is_zero_for_complementary_features_and_biases_the_correction_otherwise(seed, complementary):
    joint = complementary_joint(seed) if complementary else any_joint(seed)
    assert joint.complementary == complementary
    s = joint.confusion[0, 0] + joint.confusion[1, 1] - 1.0
    q = joint.unstable_posterior[:, 1]
    unclipped = (joint.pseudo_posterior[:, 1] + joint.confusion[0, 0] - 1.0) / s
    bias = ((1.0 - q) * joint.leak[:, 1, 0] + q * joint.leak[:, 1, 1]) / s
    np.testing.assert_allclose(unclipped - q, bias, atol=1e-9 / s)
    if complementary:
        np.testing.assert_allclose(joint.leak, 0.0, atol=1e-12)


@given(seeds)
@settings(max_examples=30, deadline=None)
def test_pointwise_confusion_averages_to_confusion_over_the_class_not_over_x_u(seed):
    joint = any_joint(seed)
    given_label = joint.table.sum(axis=0) / joint.prior
    averaged = np.einsum("uyk,uk->yk", joint.pointwise_confusion, given_label)
    np.testing.assert_allclose(averaged, joint.confusion, atol=1e-12)


def test_values_without_mass_do_no_harm():
    table = np.zeros((3, 3, 2))
    table[:2, :2] = complementary_joint(3, 2, 2, 2).table
    small, large = complementary_joint(3, 2, 2, 2), FiniteJoint(table)
    recovered = recover(large.stable_posterior, large.pair_mass)
    np.testing.assert_allclose(recovered.joint[:2, :2], small.joint_posterior, atol=1e-9)
    assert np.isfinite(recovered.joint).all()
    assert large.complementary


def test_samples_follow_the_table_and_the_global_random_state_is_left_alone():
    joint = any_joint(0)
    np.random.seed(3)
    before = repr(np.random.get_state())
    rows = joint.sample(200_000, random_state=1)
    assert repr(np.random.get_state()) == before
    counts = np.zeros(joint.table.shape)
    np.add.at(counts, rows, 1.0)
    error = (counts / 200_000 - joint.table) / np.sqrt(joint.table * (1 - joint.table) / 200_000)
    assert np.abs(error).max() < 4.5


def test_the_given_table_is_copied_and_cannot_be_changed():
    table = np.full((2, 2, 2), 0.125)
    joint = FiniteJoint(table)
    table[0, 0, 0] = 9.0
    assert joint.table[0, 0, 0] == 0.125
    with pytest.raises(ValueError, match="read-only"):
        joint.table[0, 0, 0] = 9.0


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (np.full((2, 2), 0.25), "put Y on the last axis"),
        (np.full((2, 2, 2), 0.2), "sums to 1.6"),
        (np.array([[[1.5, -0.5]]]), "negative"),
    ],
)
def test_a_table_that_is_no_distribution_is_refused_with_a_remedy(table, message):
    with pytest.raises(ValueError, match=message):
        FiniteJoint(table)


def test_conditionals_of_another_number_of_classes_are_refused():
    with pytest.raises(ValueError, match="one row per class"):
        FiniteJoint.from_conditionals([0.5, 0.5], np.eye(3), np.eye(2))


def test_recover_refuses_tables_that_do_not_fit():
    with pytest.raises(ValueError, match="one row of pair_mass per value"):
        recover([[0.2, 0.8], [0.7, 0.3]], np.full((3, 2), 1 / 6))


def test_accuracy_shares_ties_evenly():
    joint = complementary_joint(1)
    assert joint.accuracy(np.full(joint.table.shape, 0.5)) == pytest.approx(0.5)
    assert joint.accuracy(joint.joint_posterior) == pytest.approx(joint.table.max(axis=2).sum())
