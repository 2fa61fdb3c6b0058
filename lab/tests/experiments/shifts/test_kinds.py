"""What each kind of change does to a domain, and what it leaves alone."""

import numpy as np
import pytest

from sfboost_lab.experiments.shifts.kinds import KINDS, Features, SplitRows

N = 400
#: Kinds that leave the meaning of every feature as it was.
UNTOUCHED = ("as is", "shares moved", "X_S resampled")
#: A number, a category of four codes (three columns), and the strongest feature, a number.
FEATURES = Features(np.array([0, 1, 1, 1, 2]), np.array([0.1, 0.2, 0.7]))


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, N)
    level = rng.choice(4, N, p=[0.4, 0.3, 0.2, 0.1])
    U = np.column_stack([rng.normal(size=N), np.eye(4)[level][:, 1:], rng.normal(size=N) + 2 * y])
    made = SplitRows(rng.normal(size=(N, 2)) + y[:, None], U, y)
    for part in (made.stable, made.unstable, made.y):
        part.setflags(write=False)
    return made


def changed(kind, rows, features=FEATURES, seed=0):
    return KINDS[kind](rows, features, np.random.default_rng(seed))


@pytest.mark.parametrize("kind", KINDS)
def test_a_seed_decides_and_untouched_meanings_have_no_changed_columns(kind, rows):
    one, two = changed(kind, rows), changed(kind, rows)
    np.testing.assert_array_equal(one.rows.matrix(), two.rows.matrix())
    assert (one.changed == ()) == (kind in UNTOUCHED)
    assert len(one.rows) == N or (kind in UNTOUCHED and N / 4 < len(one.rows) < 0.6 * N)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in UNTOUCHED])
def test_what_did_not_change_is_as_it_was(kind, rows):
    made = changed(kind, rows)
    others = np.setdiff1d(np.arange(5), made.changed)
    np.testing.assert_array_equal(made.rows.unstable[:, others], rows.unstable[:, others])
    np.testing.assert_array_equal(made.rows.stable, rows.stable)
    np.testing.assert_array_equal(made.rows.y, rows.y)
    assert not np.array_equal(made.rows.unstable, rows.unstable)


@pytest.mark.parametrize(
    ("kind", "columns"), [("strongest mirrored", (4,)), ("all mirrored", (0, 1, 2, 3, 4))]
)
def test_mirrored_twice_is_as_it_was_and_means_stay(kind, columns, rows):
    once = changed(kind, rows)
    assert once.changed == columns
    np.testing.assert_allclose(once.rows.unstable.mean(axis=0), rows.unstable.mean(axis=0))
    np.testing.assert_allclose(changed(kind, once.rows).rows.unstable, rows.unstable, atol=1e-12)


def test_reversed_class_means_change_sides_and_leave_each_class_as_it_was_inside(rows):
    U = changed("class means reversed", rows).rows.unstable
    for label in (0, 1):
        here = rows.y == label
        before, after = rows.unstable[here], U[here]
        np.testing.assert_allclose(
            after.mean(axis=0) - rows.unstable.mean(axis=0),
            rows.unstable.mean(axis=0) - before.mean(axis=0),
        )
        np.testing.assert_allclose(after - after.mean(axis=0), before - before.mean(axis=0), atol=1e-12)


def test_shuffled_columns_hold_the_same_values_in_other_rows(rows):
    strongest, every = changed("strongest shuffled", rows), changed("all shuffled", rows)
    assert strongest.changed == (4,)
    np.testing.assert_array_equal(np.sort(strongest.rows.unstable[:, 4]), np.sort(rows.unstable[:, 4]))
    assert abs(np.corrcoef(strongest.rows.unstable[:, 4], rows.y)[0, 1]) < 0.15
    np.testing.assert_array_equal(  # whole rows of U travel together
        np.sort(every.rows.unstable @ np.arange(1, 6)), np.sort(rows.unstable @ np.arange(1, 6))
    )


def test_half_of_the_rows_keep_their_meaning_when_attenuated(rows):
    kept = (changed("attenuated", rows).rows.unstable == rows.unstable).all(axis=1)
    assert N // 2 <= kept.sum() < 0.55 * N


def test_another_unit_is_a_line_through_the_strongest_number(rows):
    made = changed("other unit", rows)
    assert made.changed == (4,)
    np.testing.assert_allclose(made.rows.unstable[:, 4], 4 * rows.unstable[:, 4] + 1)
    only_codes = Features(np.array([0, 0, 0, 0, 0]), np.array([1.0]))
    assert changed("other unit", rows, only_codes) is None


@pytest.mark.parametrize("seed", range(5))
def test_recoding_gives_every_level_the_code_of_another(rows, seed):
    made = changed("category recoded", rows, seed=seed)
    assert made.changed == (1, 2, 3)
    codes = (rows.unstable[:, 1:4], made.rows.unstable[:, 1:4])
    levels = [np.column_stack([1 - part.sum(axis=1), part]).argmax(axis=1) for part in codes]
    assert (levels[0] != levels[1]).all()
    assert len(set(zip(*levels, strict=True))) == 4  # the same level always becomes the same code
    no_category = Features(np.arange(5), np.ones(5))
    assert changed("category recoded", rows, no_category, seed=seed) is None


@pytest.mark.parametrize("kind", ["shares moved", "X_S resampled"])
def test_resampled_rows_are_rows_that_were_there(kind, rows):
    before = {tuple(row) for row in np.column_stack([rows.matrix(), rows.y])}
    made = changed(kind, rows).rows
    assert {tuple(row) for row in np.column_stack([made.matrix(), made.y])} <= before


def test_the_last_class_is_half_or_twice_as_frequent(rows):
    ratios = [changed("shares moved", rows, seed=s).rows.y.mean() / rows.y.mean() for s in range(8)]
    assert all(abs(ratio - 0.5) < 0.15 or abs(ratio - 1.8) < 0.25 for ratio in ratios)


def test_stable_columns_move_by_about_their_spread(rows):
    moved = changed("X_S resampled", rows).rows.stable.mean(axis=0) - rows.stable.mean(axis=0)
    assert 0.3 < np.linalg.norm(moved / rows.stable.std(axis=0)) < 1.6
