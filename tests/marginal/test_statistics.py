import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfboost.marginal import PseudoLabelStatistics


def random_proba(seed, n=40, k=3):
    return np.random.default_rng(seed).dirichlet(np.ones(k), size=n)


@given(st.integers(0, 2**32 - 1))
def test_a_row_of_weight_two_counts_like_two_rows(seed):
    proba = random_proba(seed)
    twice = np.vstack([proba, proba[:7]])
    weight = np.ones(40)
    weight[:7] = 2
    copied, weighted = (
        PseudoLabelStatistics.from_proba(twice),
        PseudoLabelStatistics.from_proba(proba, weight),
    )
    assert copied.weight == weighted.weight == 47
    np.testing.assert_allclose(copied.total, weighted.total, atol=1e-12)
    np.testing.assert_allclose(copied.cross, weighted.cross, atol=1e-12)


@given(st.integers(0, 2**32 - 1))
def test_renaming_classes_renames_the_statistics(seed):
    proba = random_proba(seed)
    order = np.random.default_rng(seed).permutation(3)
    plain, renamed = (PseudoLabelStatistics.from_proba(p) for p in (proba, proba[:, order]))
    np.testing.assert_allclose(renamed.confusion, plain.confusion[np.ix_(order, order)], atol=1e-14)
    assert renamed.informativeness == pytest.approx(plain.informativeness)


@given(st.integers(0, 2**32 - 1), st.integers(2, 6))
def test_confusion_is_stochastic_with_real_eigenvalues_in_the_unit_interval(seed, k):
    stats = PseudoLabelStatistics.from_proba(random_proba(seed, k=k))
    np.testing.assert_allclose(stats.confusion.sum(axis=0), 1)
    np.testing.assert_allclose(
        np.sort(np.linalg.eigvals(stats.confusion).real)[::-1], stats.spectrum, atol=1e-10
    )
    assert stats.spectrum[0] == pytest.approx(1)
    assert stats.informativeness == pytest.approx(stats.spectrum[1:].mean())


def test_certain_predictions_are_fully_informative():
    stats = PseudoLabelStatistics.from_proba(np.eye(3)[[0, 1, 2, 0]])
    assert stats.informativeness == 1
    assert stats.effective_labels == 4


def test_a_class_without_mass_is_left_out():
    proba = np.column_stack([random_proba(0, k=2), np.zeros(40)])
    stats = PseudoLabelStatistics.from_proba(proba)
    two = PseudoLabelStatistics.from_proba(proba[:, :2])
    np.testing.assert_array_equal(stats.confusion[:, 2], [0, 0, 1])
    assert stats.informativeness == pytest.approx(two.informativeness)
    assert PseudoLabelStatistics.from_proba(np.array([[1.0, 0.0]])).informativeness == 0


def test_a_weak_contrast_is_one_that_no_row_has():
    """Two classes whose odds are the same in every row, and nothing else, cannot be told apart."""
    first = random_proba(0, k=2)
    proba = np.column_stack([first[:, 0], 0.3 * first[:, 1], 0.7 * first[:, 1]])
    [contrast] = PseudoLabelStatistics.from_proba(proba).weak_contrasts(1e-6)
    np.testing.assert_allclose(contrast / contrast[1], [0.0, 1.0, -3.0 / 7.0], atol=1e-6)
