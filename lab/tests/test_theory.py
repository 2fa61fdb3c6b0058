"""Theorem 4.4, Lemma 4.5 and the paper's examples, on exact finite distributions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special, stats

from sfboost_lab.theory import (
    FiniteJoint,
    anticausal,
    cause_effect,
    copy_of_stable,
    copy_of_unstable,
    exact_accuracies,
    independent_label,
    product,
    product_of_complement,
    recover,
    xor,
)

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
@settings(max_examples=30, deadline=None)
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
@settings(max_examples=30, deadline=None)
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
@settings(max_examples=30, deadline=None)
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


def test_ac_closed_forms():
    joint = anticausal(0.1)
    np.testing.assert_allclose(np.diag(joint.confusion), 0.625)
    assert joint.informativeness == pytest.approx(0.25)
    np.testing.assert_allclose(joint.pseudo_posterior[1, 1], 0.4)
    np.testing.assert_allclose(recover(joint.stable_posterior, joint.pair_mass).unstable[1, 1], 0.1)


@pytest.mark.parametrize("agreement", [0.95, 0.9, 0.7, 0.6, 0.5, 0.3, 0.1])
def test_ac_adaptation_reaches_the_best_classifier_in_every_domain(agreement):
    result = exact_accuracies(anticausal(agreement))
    assert result.stable == pytest.approx(0.75)
    assert result.best == pytest.approx(max(0.75, agreement, 1 - agreement))
    assert result.corrected == pytest.approx(result.best)


@pytest.mark.parametrize("agreement", [0.95, 0.8, 0.2, 0.1])
def test_cedd_raw_x_u_says_nothing_and_what_it_hides_is_complementary(agreement):
    raw, learned = cause_effect(agreement), cause_effect(agreement, learned=True)
    np.testing.assert_allclose(raw.unstable_posterior, 0.5)
    np.testing.assert_allclose(raw.pair_mass, np.outer(raw.stable_mass, raw.unstable_mass))
    assert not raw.complementary
    assert learned.complementary
    assert exact_accuracies(raw).corrected == pytest.approx(0.75)
    assert exact_accuracies(learned).corrected == pytest.approx(max(0.75, agreement, 1 - agreement))
    assert exact_accuracies(raw).best == pytest.approx(exact_accuracies(learned).best)


@pytest.mark.parametrize(
    ("one", "other", "informative", "complementary"),
    [(product, product_of_complement, True, False), (copy_of_unstable, independent_label, False, True)],
)
def test_twins_look_alike_without_labels_yet_differ(one, other, informative, complementary):
    a, b = one(), other()
    np.testing.assert_allclose(a.stable_posterior, b.stable_posterior)
    np.testing.assert_allclose(a.pair_mass, b.pair_mass)
    assert np.abs(a.unstable_posterior - b.unstable_posterior).max() == pytest.approx(0.5)
    for joint in (a, b):
        assert (joint.informativeness > 1e-12) == informative
        assert joint.complementary == complementary


def test_a_copy_of_x_s_looks_like_ac_and_loses_what_ac_gains():
    ac, copied = anticausal(0.1), copy_of_stable()
    np.testing.assert_allclose(copied.pair_mass, ac.pair_mass)
    np.testing.assert_allclose(copied.stable_posterior, ac.stable_posterior)
    assert not copied.complementary
    assert exact_accuracies(ac).corrected == pytest.approx(0.9)
    assert exact_accuracies(copied).corrected == pytest.approx(0.6)


@pytest.mark.parametrize("example", [xor, copy_of_unstable, independent_label])
def test_without_informativeness_recovery_refuses(example):
    joint = example()
    with pytest.raises(ValueError, match="informative"):
        recover(joint.stable_posterior, joint.pair_mass)


def test_xor_is_predictable_from_both_and_from_neither_alone():
    np.testing.assert_allclose(xor().stable_posterior, 0.5)
    np.testing.assert_allclose(xor().unstable_posterior, 0.5)
    assert xor().accuracy(xor().joint_posterior) == pytest.approx(1.0)


def own_pseudo_label_risk(joint, logit):
    """E ℓ(Ŷ, σ(logit f_S + logit f_U)) where Ŷ is drawn from f_S; `logit` is that of f_U, by value of X_U."""
    stable = joint.stable_posterior[:, 1]
    both = special.expit(special.logit(stable)[:, None] + logit[None])
    risk = -special.xlogy(stable[:, None], both) - special.xlog1py(1 - stable[:, None], -both)
    return float((joint.pair_mass * risk).sum())


@given(seeds, st.booleans())
@settings(max_examples=30, deadline=None)
def test_proposition_d_1_nothing_predicts_pseudo_labels_of_f_s_better_than_f_s_alone(seed, complementary):
    """The trivial solution: whatever X_U says of Y, the joint risk has its only minimum at logit f_U = 0."""
    joint = complementary_joint(seed) if complementary else any_joint(seed)
    n_unstable = joint.table.shape[1]
    least = own_pseudo_label_risk(joint, np.zeros(n_unstable))
    stable = joint.stable_posterior[:, 1]
    assert least == pytest.approx(joint.stable_mass @ stats.entropy([stable, 1 - stable]), abs=1e-12)
    rng = np.random.default_rng(seed)
    for scale in (0.01, 0.1, 1.0, 10.0):
        assert own_pseudo_label_risk(joint, scale * rng.normal(size=n_unstable)) > least
    truth = special.logit(joint.unstable_posterior[:, 1].clip(1e-9, 1 - 1e-9)) - special.logit(joint.prior[1])
    if np.abs(truth).max() > 1e-3:  # so minimising it unlearns what X_U is worth
        assert own_pseudo_label_risk(joint, truth) > least
