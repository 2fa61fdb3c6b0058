"""What of a row the stable part may see: cues that a view takes out, and what it leaves."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the torch extra")

from sklearn.datasets import load_digits  # noqa: E402
from sklearn.linear_model import LogisticRegression  # noqa: E402

from sfboost.torch import SFBClassifier  # noqa: E402
from sfboost.torch.views import (  # noqa: E402
    VIEWS,
    columns_apart,
    depends_on_rows,
    erasure,
    found_views,
    silent_columns,
    steady_columns,
    views_of,
)


def _patch(images, cue):
    images = images.copy()
    images[cue == 0, :, :2, :2] = 1.0
    images[cue == 1, :, -2:, :2] = 1.0
    return images


def _stripes(images, cue):
    rows, columns = np.zeros((2, 8, 8))
    rows[::2], columns[:, ::2] = 0.5, 0.5
    return images + np.where(cue[:, None, None, None] == 0, rows, columns)


def _brightness(images, cue):
    return images * (0.4 + 0.6 * cue)[:, None, None, None]


def _digits(cue_of, agreement, n, rng):
    """Digits below or above five, a quarter of the labels wrong, and a cue that agrees with the label."""
    data = load_digits()
    rows = rng.choice(len(data.target), n, replace=False)
    y = (data.target[rows] >= 5) ^ (rng.random(n) < 0.25)
    cue = np.where(rng.random(n) < agreement, y, ~y).astype(int)
    return cue_of(data.images[rows][:, None] / 16.0, cue).astype(np.float32), y.astype(int), cue


@pytest.fixture(scope="module")
def striped():
    return _digits(_stripes, 0.85, 1200, np.random.default_rng(0))


def test_a_handful_of_rows_with_one_code_does_not_speak_against_a_column():
    """Where the guess is hardly ever wrong: seven rows that have the commoner of two codes, by chance."""
    rng = np.random.default_rng(0)
    y, guess = np.repeat([0, 1, 1], [2000, 7, 220]), np.repeat([0, 0, 1], [2000, 7, 220])
    guess[:150] = 1
    code = (rng.random(len(y)) < np.where(y == 1, 0.75, 0.25)).astype(float)
    code[y != guess] = np.r_[np.tile([0.0, 0.0, 0.0, 1.0], 38)[:150], np.ones(7)]
    assert silent_columns(np.c_[code, guess], y, guess, np.zeros(len(y))).tolist() == [True, False]


def test_after_erasing_no_linear_score_of_a_row_follows_the_guess_within_a_class(striped):
    X, y, cue = striped
    parts = erasure(X.reshape(len(X), -1), y, cue, np.zeros(len(y)))
    view = VIEWS["erased"]((1, 8, 8), 2)
    for name, values in parts.items():
        view.get_buffer(name).copy_(torch.from_numpy(values))
    seen = view(torch.from_numpy(X)).flatten(1).numpy()
    for label in (0, 1):
        mine = y == label
        before, after = (
            LogisticRegression(max_iter=1000)
            .fit(Z[mine][::2], cue[mine][::2])
            .score(Z[mine][1::2], cue[mine][1::2])
            for Z in (X.reshape(len(X), -1), seen)
        )
        usual = max(cue[mine].mean(), 1 - cue[mine].mean())
        assert before == 1.0
        assert after < usual + 0.02


def test_erasing_three_classes_takes_two_directions():
    rng = np.random.default_rng(0)
    y, guess = rng.integers(0, 3, (2, 900))
    X = rng.normal(size=(900, 5)) + 3 * np.eye(3, 5)[guess]
    parts = erasure(X, y, guess, np.zeros(900))
    assert parts["score"].shape == (5, 2)
    left = X - X @ parts["score"] @ parts["direction"]
    means = np.array([left[guess == k].mean(axis=0) for k in range(3)])
    assert np.ptp(means, axis=0).max() < 0.3  # 3 before


def test_pixels_that_follow_the_guess_are_hidden_and_hardly_any_others():
    X, y, cue = _digits(_patch, 0.85, 1200, np.random.default_rng(0))
    kept = found_views(X, y, cue, np.zeros(len(y)), ["pixels"])["pixels"]["kept"]
    patches = np.zeros((1, 8, 8), dtype=bool)
    patches[:, :2, :2] = patches[:, -2:, :2] = True
    assert not kept[patches].any()
    assert kept[~patches].mean() > 0.9


def test_a_levelled_picture_does_not_know_how_bright_it_was():
    X = torch.rand(5, 1, 8, 8) + 0.1
    level = VIEWS["levelled"]((1, 8, 8), 2)
    torch.testing.assert_close(level(X), level(3.0 * X + 2.0), atol=1e-3, rtol=0)


def test_a_view_keeps_the_shape_and_one_that_depends_on_rows_hides_nothing_before():
    X = torch.rand(4, 3, 8, 8)
    for name in views_of((3, 8, 8)):
        seen = VIEWS[name]((3, 8, 8), 4)(X)
        assert seen.shape == X.shape
        assert not depends_on_rows(name) or torch.equal(seen, X)


def _learned(cue):
    """A model of two domains with this cue, a generator for more rows."""
    rng = np.random.default_rng(0)
    parts = [_digits(cue, agreement, 500, rng)[:2] for agreement in (0.9, 0.8)]
    X, y = (np.concatenate(both) for both in zip(*parts, strict=True))
    return SFBClassifier().fit(X, y, sample_domain=np.repeat(["a", "b"], 500)), rng


@pytest.mark.long
@pytest.mark.parametrize("cue", [_patch, _stripes])
def test_the_default_finds_a_part_that_does_not_read_a_cue_it_was_not_made_for(cue):
    model, rng = _learned(cue)
    (X_like, y_like, _), (X_new, y_new, _) = (_digits(cue, agreement, 1000, rng) for agreement in (0.9, 0.1))
    assert min(model.score(X_like, y_like), model.score(X_new, y_new)) > 0.62
    # Either it adapts, or it says why not and stays with the stable part.
    assert model.adapt(X_new).score(X_new, y_new) > 0.62


@pytest.mark.long
def test_where_no_stable_part_is_found_that_is_said_and_nothing_is_learned_from_it():
    model, rng = _learned(_brightness)
    X_new = _digits(_brightness, 0.1, 1000, rng)[0]
    assert not model.verification_.stable
    adapted = model.adapt(X_new)
    assert adapted.decision_ != "adapted"
    assert "f_S is not shown to be stable" in adapted.reason_


def test_colours_that_are_not_as_bright_as_each_other_leave_the_same_grey_picture_once_it_is_levelled():
    shape = torch.from_numpy(load_digits().images[:20, None].astype(np.float32) / 16.0)
    red, green = (
        shape * torch.tensor(colour)[:, None, None] for colour in ([0.5, 0.0, 0.0], [0.0, 1.0, 0.0])
    )
    levelled, grey = (VIEWS[name]((3, 8, 8), 2) for name in ("grey levelled", "grey"))
    assert torch.allclose(levelled(red), levelled(green), atol=1e-2)
    assert not torch.allclose(grey(red), grey(green), atol=0.1)


def _curved_table(agreement, n, rng):
    """Five columns of which a curved rule says the class, three that follow a cue, four of noise."""
    clean = rng.normal(size=(n, 5))
    rule = clean[:, 0] * clean[:, 1] + clean[:, 2] + 0.5 * clean[:, 3] ** 2 > 0.5
    y = np.where(rng.random(n) < 0.8, rule, ~rule).astype(int)
    cue = np.where(rng.random(n) < agreement, y, 1 - y)
    cues = 2.0 * cue[:, None] - 1 + rng.normal(0, [0.3, 1.0, 2.0], (n, 3))
    return np.c_[clean, cues, rng.normal(size=(n, 4))], y


def test_a_column_that_says_little_is_known_by_those_that_say_more_of_the_same():
    rng = np.random.default_rng(0)
    missed, found = [], []
    for _ in range(20):
        parts = [_curved_table(agreement, 500, rng) for agreement in (0.95, 0.8)]
        X, y = (np.concatenate(both) for both in zip(*parts, strict=True))
        domain = np.repeat([0, 1], 500)
        missed.append(steady_columns(X, y, domain))
        found.append(columns_apart(X, y, domain))
    assert np.mean(missed, axis=0)[7] > 0.2  # its own drift is often not seen
    assert np.mean(found, axis=0)[5:8].max() <= 0.1
    assert np.mean(found, axis=0)[[0, 1, 2, 3, 4, 8, 9, 10, 11]].min() >= 0.85


def test_nothing_follows_what_does_not_drift():
    rng = np.random.default_rng(0)
    y, domain = rng.integers(0, 2, 400), np.repeat([0, 1], 200)
    X = rng.normal(size=(400, 3)) + y[:, None]
    np.testing.assert_array_equal(columns_apart(X, y, domain), steady_columns(X, y, domain))
    twice = np.c_[X[:, 0], np.where(domain == 0, y, 1 - y) * 5.0 + X[:, 1]][:, [0, 1, 1]]
    np.testing.assert_array_equal(columns_apart(twice, y, domain), [True, False, False])


@pytest.mark.long
def test_a_stable_column_that_the_first_guess_reads_is_kept():
    rng = np.random.default_rng(2)
    parts = [_curved_table(agreement, 1000, rng) for agreement in (0.95, 0.8)]
    X, y = (np.concatenate(both) for both in zip(*parts, strict=True))
    model = SFBClassifier(random_state=2).fit(X, y, sample_domain=np.repeat([0, 1], 1000))
    kept = np.array([trunk[0].kept.tolist() for trunk in model.network_.trunk.trunks])
    assert kept[:, 2].all()
    assert model.verification_.stable
    for agreement, least in ((0.9, 0.85), (0.5, 0.7), (0.1, 0.85)):
        X_new, y_new = _curved_table(agreement, 2000, rng)
        assert model.score(X_new, y_new) > 0.68
        assert model.adapt(X_new).score(X_new, y_new) > least
