"""The paper's examples say what the paper says, or what is true where the paper errs."""

import numpy as np
import pytest

from sfboost_lab.theory import (
    EXAMPLES,
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


def test_every_named_example_is_a_distribution():
    assert {name: make().table.sum() for name, make in EXAMPLES.items()} == pytest.approx(
        dict.fromkeys(EXAMPLES, 1.0)
    )
