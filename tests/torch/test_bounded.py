"""Φ_U of a search, bounded: it says which class, and hardly how strongly."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

pytest.importorskip("torch", reason="needs the torch extra")

import sfboost
from sfboost.torch.bounded import Bounded

_LOGITS = arrays(float, (30, 1), elements=st.floats(-50, 50))


@given(_LOGITS, st.floats(0.01, 0.99))
def test_the_order_of_rows_is_kept_and_nothing_is_beyond_one(unstable, share):
    said = Bounded.of(unstable, [1 - share, share]).apply(unstable)
    assert said.shape == unstable.shape
    assert np.abs(said).max() <= 1.0
    assert (np.diff(said[np.argsort(unstable[:, 0]), 0]) >= -1e-12).all()


@given(_LOGITS, st.floats(0.1, 10.0))
def test_how_large_logits_are_does_not_matter(unstable, factor):
    said, larger = (Bounded.of(u, [0.5, 0.5]).apply(u) for u in (unstable, factor * unstable))
    if np.median(np.abs(unstable)) > 1e-3:
        np.testing.assert_allclose(larger, said, atol=1e-9)


def test_a_row_that_says_no_more_than_the_class_shares_is_at_zero():
    shares = np.array([0.9, 0.1])
    unstable = np.log(shares[1] / shares[0]) + np.array([[-2.0], [0.0], [2.0]])
    assert Bounded.of(unstable, shares).apply(unstable)[1, 0] == pytest.approx(0.0)


def test_labels_put_right_a_part_that_says_too_little():
    """Held back and biased: what points to the rare class and what points away are both above its share."""
    rng = np.random.default_rng(0)
    points = rng.random(4000) < 0.2
    y = (rng.random(4000) < np.where(points, 0.4, 0.02)).astype(int)
    unstable = np.where(points, -1.0, -1.6)[:, None]
    share = y.mean()
    assert np.log(share / (1 - share)) < -1.7
    blind, told = (
        Bounded.of(unstable, [1 - share, share], *more).apply(unstable)[:, 0] for more in ((), (y,))
    )
    assert blind.min() > 0.9
    assert told[points].min() > 0.9
    assert told[~points].max() < -0.9


def test_of_several_classes_there_is_a_number_each_that_sum_to_zero():
    unstable = 3.0 * np.eye(4)[[0, 1, 2, 3, 3]]
    said = Bounded.of(unstable, np.full(4, 0.25)).apply(unstable)
    np.testing.assert_allclose(said.sum(axis=1), 0.0, atol=1e-12)
    assert said.argmax(axis=1).tolist() == [0, 1, 2, 3, 3]


def test_a_part_that_says_nothing_stays_a_part_that_says_nothing():
    unstable = np.zeros((10, 1))
    assert (Bounded.of(unstable, [0.5, 0.5]).apply(unstable) == 0.0).all()


def test_where_a_colour_has_lost_its_meaning_the_amount_of_ink_is_not_learned_in_its_place():
    """Of one colour Φ_U says more where there is more ink, which f_S sees too."""
    rng = np.random.default_rng(0)
    y, colour = rng.integers(0, 2, (2, 4000))
    ink = 1.2 * (y - 0.5) + rng.normal(size=4000)
    positive = 1.0 / (1.0 + np.exp(-1.2 * ink))
    stable = np.c_[1 - positive, positive]
    unstable = np.where(colour == 1, 2.0, -2.0 - 0.5 * ink)[:, None]
    lost = []
    for said in (unstable, Bounded.of(unstable, [0.5, 0.5]).apply(unstable)):
        adapted = sfboost.adapt(stable, said, answer="paper").predict_proba(stable, said)
        lost.append(np.mean(stable.argmax(axis=1) == y) - np.mean(adapted.argmax(axis=1) == y))
    assert lost[0] > 0.015
    assert lost[1] < 0.01
