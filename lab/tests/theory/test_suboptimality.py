"""The proposition on violated complementarity, against direct computation."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfboost_lab.theory import (
    EXAMPLES,
    FiniteJoint,
    enumerate_suboptimality,
    nearly_complementary,
    suboptimality,
)


def any_joint(seed, sharpness=1.0):
    rng = np.random.default_rng(seed)
    shape = (rng.integers(2, 5), rng.integers(2, 9), 2)
    return FiniteJoint(rng.dirichlet(np.full(np.prod(shape), sharpness)).reshape(shape))


def naive_printed(joint, *, pooled_mean):
    """The paper's formulas literally, E over X_U or over the class; for ε₀ + ε₁ > 1 everywhere."""
    local, mass = joint.pointwise_confusion, joint.unstable_mass
    z = local[:, 0, 0] - local[:, 1, 1]
    mean = mass @ z if pooled_mean else joint.confusion[0, 0] - joint.confusion[1, 1]
    t = (z - mean) / (2 * (local[:, 0, 0] + local[:, 1, 1] - 1))
    return float(mass[np.abs(joint.unstable_posterior[:, 1] - 0.5) <= np.abs(t)].sum())


@given(st.integers(0, 2**32 - 1), st.sampled_from([0.3, 1.0, 5.0]))
@settings(max_examples=150, deadline=None)
def test_the_corrected_proposition_equals_enumeration(seed, sharpness):
    joint = any_joint(seed, sharpness)
    result = suboptimality(joint)
    assert (result.corrected, result.naive) == pytest.approx(enumerate_suboptimality(joint), abs=1e-12)
    assert result.corrected <= result.corrected_printed + 1e-12
    assert result.naive <= result.naive_printed + 1e-12


@pytest.mark.parametrize("name", [n for n in EXAMPLES if n not in ("XOR", "Y3", "Y4")])
def test_the_named_examples_agree_with_enumeration_too(name):
    result = suboptimality(EXAMPLES[name]())
    assert (result.corrected, result.naive) == pytest.approx(enumerate_suboptimality(EXAMPLES[name]()))


def informative_joints(count):
    """Random joints with ε₀(x) + ε₁(x) > 1 everywhere, as the proposition needs."""
    found, seed = [], 0
    while len(found) < count:
        joint = any_joint(seed, 2.0)
        seed += 1
        local = joint.pointwise_confusion
        if (local[:, 0, 0] + local[:, 1, 1] > 1.01).all():
            found.append(joint)
    return found


def test_the_signed_threshold_is_the_proposition_where_it_is_defined():
    for joint in informative_joints(50):
        result, d = suboptimality(joint), joint.unstable_posterior[:, 1] - 0.5
        for t, wrong in (
            (result.corrected_threshold, result.corrected_wrong),
            (result.naive_threshold, result.naive_wrong),
        ):
            signed = ((d > 0) & (d <= t)) | ((t < d) & (d <= 0))
            assert np.array_equal(signed, wrong)


def test_the_printed_formula_is_far_too_large_and_its_mean_is_the_wrong_one():
    joints = informative_joints(200)
    exact = np.array([suboptimality(joint).corrected for joint in joints])
    bound = np.array([suboptimality(joint).corrected_printed for joint in joints])
    literal = np.array([naive_printed(joint, pooled_mean=True) for joint in joints])
    class_mean = np.array([naive_printed(joint, pooled_mean=False) for joint in joints])
    np.testing.assert_allclose(bound, class_mean, atol=1e-12)
    assert exact.mean() < 0.7 * bound.mean()
    # With the mean over X_U instead of over the class the formula is not even a bound.
    assert (literal < exact - 1e-9).any()


def test_the_correction_helps_under_slight_violations_and_not_under_gross_ones():
    rng = np.random.default_rng(0)
    for share, helps in ((0.05, True), (0.2, True), (0.8, False)):
        results = [suboptimality(nearly_complementary(share, rng)) for _ in range(300)]
        corrected, naive = np.mean([(r.corrected, r.naive) for r in results], axis=0)
        assert (corrected < naive - 0.03) == helps
        assert {"no worse" in str(r) for r in results} == {True, False}


def test_complementary_features_leave_no_error_after_the_correction():
    rng = np.random.default_rng(0)
    for _ in range(50):
        joint = FiniteJoint.from_conditionals(
            rng.dirichlet([3, 3]), rng.dirichlet(np.ones(3), 2), rng.dirichlet(np.ones(5), 2)
        )
        assert suboptimality(joint).corrected == 0.0


def test_three_classes_are_refused_with_the_function_that_takes_them():
    with pytest.raises(ValueError, match="exact_accuracies"):
        suboptimality(FiniteJoint(np.full((2, 2, 3), 1 / 12)))
