"""The theorems of Section 4, on enumerated finite distributions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from joints import joints, mutual_information, normalise

from sfboost.heads.objectives import LogLikelihood
from sfboost.marginal import (
    PseudoLabelStatistics,
    combine,
    correct_posthoc,
    floored_log,
    log_likelihood_rows,
    log_weights,
    posterior,
)
from sfboost_lab.theory import (
    FiniteJoint,
    anticausal,
    copy_of_unstable,
    independent_label,
    product,
    product_of_complement,
    xor,
)


def statistics_of(joint):
    return PseudoLabelStatistics.from_proba(joint.stable_posterior, joint.stable_mass)


@given(joints())
def test_theorem_4_4_recovers_both_conditionals_exactly(joint):
    stats = statistics_of(joint)
    unstable = correct_posthoc(joint.pseudo_posterior, stats.confusion)
    np.testing.assert_allclose(unstable, joint.unstable_posterior, atol=1e-12)
    a, b = joint.pair_mass.shape
    both = combine(np.repeat(joint.stable_posterior, b, axis=0), np.tile(unstable, (a, 1)), stats.prior)
    np.testing.assert_allclose(both.reshape(a, b, -1), joint.joint_posterior, atol=1e-12)


@given(joints())
def test_the_prior_and_the_confusion_need_no_labels(joint):
    stats = statistics_of(joint)
    np.testing.assert_allclose(stats.prior, joint.prior, atol=1e-13)
    given_y = joint.table.sum(axis=1) / joint.prior  # P(x_S | y)
    np.testing.assert_allclose(stats.confusion, joint.stable_posterior.T @ given_y, atol=1e-13)


@given(joints(classes=st.just(2)))
def test_informativeness_is_the_scaled_variance_of_the_stable_predictor(joint):
    stats = statistics_of(joint)
    weight, f = joint.stable_mass, joint.stable_posterior[:, 1]
    p = weight @ f
    variance = weight @ (f - p) ** 2
    assert stats.informativeness == pytest.approx(variance / (p * (1 - p)), abs=1e-13)
    assert stats.confusion.trace() - 1 == pytest.approx(stats.informativeness, abs=1e-13)


@given(st.integers(0, 2**32 - 1))
def test_lemma_4_5_zero_informativeness_if_and_only_if_independent(seed):
    rng = np.random.default_rng(seed)
    prior, given_0 = rng.dirichlet([2, 2]), rng.dirichlet(np.ones(3))
    unstable = rng.dirichlet(np.ones(2), size=2)
    independent = FiniteJoint.from_conditionals(prior, [given_0, given_0], unstable)
    assert statistics_of(independent).informativeness == pytest.approx(0.0, abs=1e-12)
    tilted = normalise(given_0 * np.array([1.5, 1.0, 1.0]))
    dependent = FiniteJoint.from_conditionals(prior, [given_0, tilted], unstable)
    assert statistics_of(dependent).informativeness > 1e-9


def test_anticausal_closed_forms():
    joint = anticausal(agreement=0.1)
    stats = statistics_of(joint)
    np.testing.assert_allclose(np.diag(stats.confusion), 0.625)
    assert stats.informativeness == pytest.approx(0.25)
    pseudo = joint.pseudo_posterior
    assert pseudo[1, 1] == pytest.approx(0.4)
    corrected = correct_posthoc(pseudo, stats.confusion)
    assert corrected[1, 1] == pytest.approx(0.1)
    assert accuracy(joint, pseudo) == pytest.approx(0.75)
    assert accuracy(joint, corrected) == pytest.approx(0.90)


def accuracy(joint, unstable):
    a, b = joint.pair_mass.shape
    both = combine(np.repeat(joint.stable_posterior, b, axis=0), np.tile(unstable, (a, 1)), joint.prior)
    return joint.accuracy(both.reshape(a, b, -1))


@pytest.mark.parametrize("joint", [xor(), copy_of_unstable(), independent_label()], ids=["XOR", "Y3", "Y4"])
def test_xor_and_the_uninformative_examples_claim_nothing(joint):
    assert statistics_of(joint).informativeness == pytest.approx(0.0, abs=1e-15)


def test_without_complementarity_two_worlds_look_the_same_and_differ():
    first, second = product(), product_of_complement()
    np.testing.assert_array_equal(first.pair_mass, second.pair_mass)
    np.testing.assert_array_equal(first.stable_posterior, second.stable_posterior)
    assert abs(first.unstable_posterior[0, 1] - second.unstable_posterior[0, 1]) == 0.5
    # What is learned from the identical observations is the prior: nothing to gain, nothing claimed.
    corrected = correct_posthoc(first.pseudo_posterior, statistics_of(first).confusion)
    np.testing.assert_allclose(corrected, np.tile(first.prior, (2, 1)), atol=1e-15)


def cell_rows(joint):
    """f_S, index of x_U and weight, one row per cell (x_S, x_U)."""
    a, b = joint.pair_mass.shape
    return np.repeat(joint.stable_posterior, b, axis=0), np.tile(np.arange(b), a), joint.pair_mass.ravel()


@given(joints())
def test_likelihood_is_zero_at_the_prior_and_the_mutual_information_at_the_truth(joint):
    stable, u, weight = cell_rows(joint)
    log_w = log_weights(stable, joint.prior)
    at_prior = log_likelihood_rows(np.tile(np.log(joint.prior), (len(u), 1)), log_w)
    assert weight @ at_prior == pytest.approx(0.0, abs=1e-12)
    at_truth = log_likelihood_rows(floored_log(joint.unstable_posterior)[u], log_w)
    assert weight @ at_truth == pytest.approx(mutual_information(joint), abs=1e-12)


@given(joints(), st.integers(0, 2**32 - 1))
def test_no_other_unstable_predictor_is_more_likely_than_the_truth(joint, seed):
    stable, u, weight = cell_rows(joint)
    log_w = log_weights(stable, joint.prior)
    other = np.random.default_rng(seed).dirichlet(np.ones(len(joint.prior)), size=joint.pair_mass.shape[1])
    mixed = 0.9 * joint.unstable_posterior + 0.1 * other
    for rival in (other, mixed):
        value = weight @ log_likelihood_rows(floored_log(rival)[u], log_w)
        assert value <= mutual_information(joint) + 1e-12


def em_map(joint, unstable):
    stable, u, weight = cell_rows(joint)
    joint_posterior = posterior(floored_log(unstable)[u], log_weights(stable, joint.prior))
    mass = np.zeros_like(unstable)
    np.add.at(mass, u, joint_posterior * weight[:, None])
    return normalise(mass)


@given(joints())
def test_the_truth_is_a_fixed_point_of_em(joint):
    np.testing.assert_allclose(em_map(joint, joint.unstable_posterior), joint.unstable_posterior, atol=1e-12)


def repeated_correction(joint, rounds):
    """Population version of correcting joint pseudo-labels again in every round."""
    a, b = joint.pair_mass.shape
    pseudo = np.repeat(joint.stable_posterior[:, None], b, axis=1)
    for _ in range(rounds):
        rows, weight = pseudo.reshape(a * b, -1), joint.pair_mass.ravel()
        stats = PseudoLabelStatistics.from_proba(rows, weight)
        by_u = np.einsum("ab,abk->bk", joint.pair_mass / joint.unstable_mass, pseudo)
        unstable = correct_posthoc(by_u, stats.confusion)
        both = combine(np.repeat(joint.stable_posterior, b, axis=0), np.tile(unstable, (a, 1)), joint.prior)
        pseudo = both.reshape(a, b, -1)
    return accuracy(joint, unstable)


@pytest.mark.parametrize(("agreement", "wrong"), [(0.7, 0.70), (0.3, 0.70), (0.6, 0.60), (0.4, 0.60)])
def test_correcting_again_every_round_loses_what_one_correction_gains(agreement, wrong):
    joint = anticausal(agreement)
    assert repeated_correction(joint, 1) == pytest.approx(0.75)
    assert repeated_correction(joint, 5) == pytest.approx(wrong)


@given(joints(classes=st.just(2)))
def test_the_joint_risk_on_own_pseudo_labels_is_minimised_by_no_information(joint):
    """App. D.1: fitting C(f_S, f_U) to f_S's own pseudo-labels makes f_U say nothing.

    The joint risk of Eq. 3.2 with soft labels, as an average over the label of our joint-risk objective.
    """
    f, weight = joint.stable_posterior, joint.stable_mass
    evidence = np.log(f)

    def risk(z):
        logits, value, slope = np.full((len(f), 1), z), 0.0, 0.0
        for label in (0, 1):
            alone = np.where(np.eye(2)[label] > 0, evidence, -1e4)
            part = LogLikelihood(alone, weight * f[:, label], below=evidence)
            loss, gradient = part.value_and_gradient(logits)
            value, slope = value + loss, slope + float(gradient.sum())
        return value, slope

    values = [risk(z)[0] for z in np.linspace(-2, 2, 41)]
    assert int(np.argmin(values)) == 20
    assert risk(0.0)[1] == pytest.approx(0.0, abs=1e-12)


def test_the_stable_predictor_must_have_full_rank_for_four_classes():
    """An informative f_S of rank two leaves ε with rank two, and the classes are named."""
    low = np.array([[0.4, 0.1], [0.4, 0.1], [0.1, 0.4], [0.1, 0.4]])
    stats = PseudoLabelStatistics.from_proba(low.T, np.array([500.0, 500.0]))
    assert stats.informativeness > 0.05
    assert np.linalg.matrix_rank(stats.confusion, tol=1e-9) == 2
    contrasts = stats.weak_contrasts(30)
    assert len(contrasts) == 2
    for contrast in contrasts:
        np.testing.assert_allclose(stats.confusion @ contrast, 0, atol=1e-12)
