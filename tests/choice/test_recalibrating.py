"""Few labels put answers right, and only labels of rows that look drawn at random."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import log_softmax, logsumexp

from sfboost import StableFeatureBoosting, load
from sfboost.choice.recalibrating import drawn_at_random, recalibrate


def drawn(seed, n, n_classes=2):
    """Log-probabilities of a classifier, and labels that follow them."""
    rng = np.random.default_rng(seed)
    log_proba = log_softmax(1.5 * rng.normal(size=(n, n_classes)), axis=1)
    return log_proba, (np.exp(log_proba).cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_likelihood_is_that_of_an_integral(seed):
    """Laplace's approximation against a sum over draws from the prior."""
    log_proba, y = drawn(seed, 25)
    y = np.where(np.arange(25) < 12, 1, y)
    rng = np.random.default_rng(seed)
    shift, slope = rng.normal(size=(200_000, 2)), np.exp(0.5 * rng.normal(size=200_000))
    said = log_proba[:, 1] - log_proba[:, 0]
    wanted = []
    for steep in (np.ones_like(slope), slope):
        for moved in (np.zeros_like(slope), shift[:, 1] - shift[:, 0]):
            odds = steep[:, None] * said + moved[:, None]
            fits = -np.logaddexp(0.0, np.where(y == 1, -odds, odds)).sum(axis=1)
            wanted.append(logsumexp(fits) - np.log(len(fits)))
    assert recalibrate(log_proba, y)[1] == pytest.approx(logsumexp(wanted) - np.log(4.0), abs=0.15)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000), n=st.integers(1, 60), n_classes=st.integers(2, 5))
def test_the_order_of_rows_and_classes_does_not_matter(seed, n, n_classes):
    log_proba, y = drawn(seed, n, n_classes)
    rng = np.random.default_rng(seed)
    rows, classes = rng.permutation(n), rng.permutation(n_classes)
    found, fit = recalibrate(log_proba, y)
    other, other_fit = recalibrate(log_proba[rows][:, classes], np.argsort(classes)[y[rows]])
    assert other_fit == pytest.approx(fit, abs=1e-6)
    assert other.temperature == pytest.approx(found.temperature, abs=1e-6)
    np.testing.assert_allclose(other.bias, found.bias[classes], atol=1e-6)


def test_an_answer_that_is_right_stays_and_one_that_is_not_is_put_right():
    log_proba, y = drawn(3, 4000)
    kept, _ = recalibrate(log_proba, y)
    np.testing.assert_allclose(kept.apply(log_proba), log_proba, atol=0.02)
    moved = log_softmax(3.0 * log_proba + np.array([0.0, 2.0]), axis=1)
    found, fit = recalibrate(moved, y)
    np.testing.assert_allclose(np.exp(found.apply(moved)), np.exp(log_proba), atol=0.05)
    assert fit > moved[np.arange(4000), y].sum() + 100.0


def test_one_label_moves_little():
    log_proba = np.log([[0.6, 0.4]])
    found, _ = recalibrate(log_proba, np.array([1]))
    assert 0.4 < np.exp(found.apply(log_proba))[0, 1] < 0.55


def test_rows_that_were_chosen_by_their_class_are_told():
    alarms, seen = [], []
    for seed in range(200):
        log_proba, y = drawn(seed, 500)
        said = np.exp(log_proba[:, 1:])
        rng = np.random.default_rng(seed)
        random = rng.permutation(500)[:20]
        alarms.append(not drawn_at_random(said, random))
        positives = rng.permutation(np.flatnonzero(y == 1))[:20]
        seen.append(not drawn_at_random(said, positives))
    assert np.mean(alarms) < 0.1  # 5 % wanted; 10 % is three standard errors more
    assert np.mean(seen) > 0.9


def test_which_rows_are_labelled_and_which_are_not_could_be_exchanged():
    """Ninety rows and ten: that the ten are half a standard deviation apart is chance."""
    said = np.random.default_rng(0).normal(size=(100, 1))
    said = (said - said.mean()) / said.std()
    said[90:] += 0.5 - said[90:].mean() + said[:90].mean()
    for labelled in (np.arange(90), np.arange(90, 100)):
        assert drawn_at_random(said, labelled)
        assert not drawn_at_random(np.where(np.arange(100)[:, None] < 90, said, said + 2.0), labelled)


@pytest.fixture(scope="module")
def hospitals():
    """Three own hospitals with even shares, and a new one in which 90 % are sick."""
    rng = np.random.default_rng(7)

    def rows(n, share):
        y = (rng.random(n) < share).astype(int)
        X = np.column_stack([y + rng.normal(size=n), y + rng.normal(size=n), 0.5 * y + rng.normal(size=n)])
        return X, y

    parts = [rows(300, 0.5) for _ in range(3)]
    X, y = (np.concatenate([part[i] for part in parts]) for i in (0, 1))
    model = StableFeatureBoosting([0, 1], [2], learner=None).fit(
        X, y, sample_domain=np.repeat(list("abc"), 300)
    )
    return model, *rows(400, 0.9)


def some(y, rows):
    return [int(y[k]) if k in set(rows.tolist()) else None for k in range(len(y))]


@pytest.mark.filterwarnings("ignore")
def test_twenty_labels_tell_how_frequent_a_class_is(hospitals, tmp_path):
    model, X, y = hospitals
    rows = np.random.default_rng(0).permutation(400)[:20]
    before, after = model.adapt(X), model.adapt(X, some(y, rows))
    others = np.setdiff1d(np.arange(400), rows)
    right = [(a.predict(X)[others] == y[others]).mean() for a in (before, after)]
    assert right[1] > right[0] + 0.05
    assert "They also recalibrate it: how sure it is" in str(after.reason_)
    after.save(tmp_path / "a.sfb")
    np.testing.assert_array_equal(load(tmp_path / "a.sfb").predict_proba(X), after.predict_proba(X))


@pytest.mark.filterwarnings("ignore")
def test_labels_of_one_class_alone_do_not_move_the_answer(hospitals):
    model, X, y = hospitals
    well = np.flatnonzero(y == 0)[:20]
    after = model.adapt(X, some(y, well))
    assert "The labelled rows are unlike the others" in str(after.reason_)
    assert (after.predict(X) == 1).mean() > 0.5


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("bias", [False, True])
def test_one_training_domain_is_enough_for_labels_to_help(hospitals, bias, tmp_path):
    _, X, y = hospitals
    rng = np.random.default_rng(1)
    own = (rng.random(300) < 0.5).astype(int)
    at = np.column_stack([own + rng.normal(size=300) for _ in range(3)])
    model = StableFeatureBoosting([0, 1], [2], learner=None, calibration_bias=bias).fit(
        at, own, sample_domain=["a"] * 300
    )
    rows = np.random.default_rng(0).permutation(400)[:40]
    others = np.setdiff1d(np.arange(400), rows)
    before, after = model.adapt(X), model.adapt(X, some(y, rows))
    right = [(a.predict(X)[others] == y[others]).mean() for a in (before, after)]
    assert right[1] > right[0] + 0.05
    assert "They also recalibrate it" in str(after.reason_)
    after.save(tmp_path / "a.sfb")
    np.testing.assert_array_equal(load(tmp_path / "a.sfb").predict_proba(X), after.predict_proba(X))
    assert model.adapt(X).predict_proba(X) == pytest.approx(before.predict_proba(X))
