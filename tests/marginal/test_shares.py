"""Label shift: the class shares are found, with their uncertainty, and nothing else is touched."""

import numpy as np
import pytest

import sfboost
from sfboost.marginal.shares import label_shift, shifted

# P(X | Y) of three classes and four cells: what does not change.
CELLS = np.array([[0.6, 0.2, 0.1, 0.1], [0.1, 0.6, 0.2, 0.1], [0.1, 0.1, 0.2, 0.6]])
OLD, NEW = np.array([0.5, 0.3, 0.2]), np.array([0.1, 0.3, 0.6])


def posterior(prior):
    joint = prior[:, None] * CELLS
    return (joint / joint.sum(axis=0)).T


def test_with_the_exact_law_of_the_new_rows_the_shares_are_exact():
    found = label_shift(posterior(OLD), OLD, sample_weight=NEW @ CELLS)
    np.testing.assert_allclose(found.prior, NEW, atol=1e-6)
    np.testing.assert_allclose(found.apply(posterior(OLD)), posterior(NEW), atol=1e-5)


def test_without_a_shift_nothing_moves():
    found = label_shift(posterior(OLD), OLD, sample_weight=OLD @ CELLS)
    np.testing.assert_allclose(found.prior, OLD, atol=1e-6)
    np.testing.assert_allclose(found.apply(posterior(OLD)), posterior(OLD), atol=1e-6)


def test_the_intervals_cover_as_often_as_they_say():
    rng, covered, sizes = np.random.default_rng(0), [], []
    for _ in range(300):
        y = rng.choice(3, 400, p=NEW)
        cell = np.array([rng.choice(4, p=CELLS[k]) for k in range(3) for _ in range((y == k).sum())])
        found = label_shift(posterior(OLD)[cell], OLD)
        low, high = found.interval(0.9)
        covered.append((low <= NEW) & (high >= NEW))
        sizes.append((found.prior - NEW) / found.standard_error)
    # Three standard errors of a share of 0.9 over 300 trials.
    assert np.abs(np.mean(covered, axis=0) - 0.9).max() < 3 * np.sqrt(0.9 * 0.1 / 300)
    assert np.std(sizes, axis=0) == pytest.approx(1.0, abs=0.15)


def test_two_classes_have_the_closed_form_of_the_standard_error():
    f = np.array([0.9, 0.8, 0.3, 0.1, 0.6, 0.7])
    found = label_shift(f, [0.5, 0.5])
    ratio = np.column_stack([1 - f, f]) / 0.5
    slope = (ratio[:, 1] - ratio[:, 0]) / (ratio @ found.prior)
    assert found.standard_error == pytest.approx([1 / np.sqrt((slope**2).sum())] * 2)


def test_a_row_of_weight_two_is_two_rows():
    f = np.array([0.9, 0.8, 0.3, 0.1])
    twice = label_shift(np.repeat(f, 2), [0.4, 0.6])
    weighed = label_shift(f, [0.4, 0.6], sample_weight=[2] * 4)
    np.testing.assert_allclose(twice.prior, weighed.prior, atol=1e-9)
    np.testing.assert_allclose(weighed.standard_error, label_shift(f, [0.4, 0.6]).standard_error, atol=1e-9)


def test_the_function_is_public_and_leaves_its_input_alone():
    f = np.array([[0.1, 0.9], [0.6, 0.4]])
    before = f.copy()
    found = sfboost.label_shift(f, [0.5, 0.5])
    assert isinstance(found, sfboost.LabelShift)
    np.testing.assert_array_equal(f, before)
    np.testing.assert_allclose(shifted(f, np.array([0.5, 0.5]), np.full(2, 0.5)), found.apply(f), atol=1e-3)


@pytest.mark.parametrize(
    ("proba", "prior", "weight", "words"),
    [
        ([0.5], [1.0, 0.0], None, "positive shares"),
        ([0.5], [0.5, 0.4], None, "source_prior"),
        ([0.5, 0.5], [0.5, 0.5], [1.0], "one finite number"),
        ([0.5, 0.5], [0.5, 0.5], [0.0, 0.0], "not all 0"),
        ([1.5], [0.5, 0.5], None, "1.5|probabilit"),
    ],
)
def test_what_cannot_be_is_refused_with_a_sentence(proba, prior, weight, words):
    with pytest.raises(ValueError, match=words):
        label_shift(proba, prior, sample_weight=weight)


def test_shares_are_never_less_likely_than_those_of_em_alone():
    """Also where classes overlap so much that EM has hardly moved after hundreds of steps."""
    rng = np.random.default_rng(0)
    for n_classes, apart in ((2, 0.3), (2, 3.0), (5, 0.3), (5, 1.0)):
        source, at = rng.dirichlet(np.full(n_classes, 3.0)), rng.normal(0.0, apart, n_classes)
        x = at[rng.choice(n_classes, 300)] + rng.normal(size=300)
        joint = source * np.exp(-0.5 * (x[:, None] - at) ** 2)
        proba, weight = joint / joint.sum(axis=1, keepdims=True), np.full(300, 1 / 300)
        slow = source
        for _ in range(500):
            ratio = proba * (slow / source)
            slow = weight @ (ratio / ratio.sum(axis=1, keepdims=True))
        fast = weight @ shifted(proba, source, weight)
        assert fast.sum() == pytest.approx(1.0)
        assert weight @ np.log(proba / source @ fast) >= weight @ np.log(proba / source @ slow) - 1e-9
