"""`adapt(X, sample_domain=shop)`: an answer for each of many new domains."""

import numpy as np
import pytest

import sfboost
from sfboost import StableFeatureBoosting
from sfboost.adaptation import AdaptationRefused


def draw(n_rows, slopes, rng):
    """Rows of several shops; the second half of the columns means `slopes[shop]` times the class."""
    shop = np.repeat(np.arange(len(slopes)), n_rows)
    y = rng.integers(0, 2, len(shop))
    sign = (2 * y - 1)[:, None]
    stable = rng.normal(size=(len(shop), 2)) + 0.8 * sign
    unstable = rng.normal(size=(len(shop), 2)) + sign * np.asarray(slopes)[shop][:, None] * [1.0, 0.5]
    return np.column_stack([stable, unstable]), y, np.array([f"shop {i}" for i in shop])


@pytest.fixture(scope="module")
def shops():
    rng = np.random.default_rng(0)
    X, y, domain = draw(400, [1.0, 0.8, 0.6], rng)
    model = StableFeatureBoosting(stable_features=[0, 1]).fit(X, y, sample_domain=domain)
    slopes = rng.normal(0.7, 0.7, 40)
    return model, *draw(80, slopes, rng), slopes


def test_many_shops_are_predicted_better_than_by_one_adaptation(shops):
    model, X, y, shop, _ = shops
    many = model.adapt(X, sample_domain=shop, answer="checked")
    one = model.adapt(X, answer="checked")
    assert many.score(X, y, shop) > one.score(X, y) + 0.02
    assert many.score(X, y, shop) > model.score(X, y) + 0.02


def test_a_shop_that_was_not_adapted_to_gets_what_is_usual(shops):
    model, X, y, shop, _ = shops
    many = model.adapt(X, sample_domain=shop, answer="checked")
    elsewhere = many.predict_proba(X, np.full(len(X), "a new shop"))
    assert np.isfinite(elsewhere).all()
    assert np.mean(elsewhere.argmax(axis=1) == y) > model.score(X, y) - 0.02


def test_the_overview_is_sorted_and_finds_the_shops_whose_features_changed_their_meaning(shops):
    model, X, _, shop, slopes = shops
    rows = model.adapt(X, sample_domain=shop).overview(by="unusual")
    assert [row.unusual for row in rows] == sorted((row.unusual for row in rows), reverse=True)
    far = {f"shop {i}" for i in np.argsort(np.abs(slopes - slopes.mean()))[-6:]}
    assert len(far & {row.name for row in rows[:6]}) >= 3
    assert {row.n_rows for row in rows} == {80}


def test_the_safe_answer_is_guarded_by_the_leak_of_training(shops):
    model, X, _, shop, _ = shops
    safe, plain = (model.adapt(X, sample_domain=shop, answer=answer) for answer in ("safe", "checked"))
    assert (safe.leak, plain.leak) == (model.training_.leak, None)
    stable = model.predict_proba(X)
    away = [np.abs(made.predict_proba(X, shop) - stable).mean() for made in (safe, plain)]
    assert away[0] < away[1]
    huge = model.adapt(X, sample_domain=shop, leak=1.0)
    np.testing.assert_allclose(huge.predict_proba(X, shop), stable, atol=1e-9)


def test_it_is_saved_and_loaded(shops, tmp_path):
    model, X, _, shop, _ = shops
    many = model.adapt(X, sample_domain=shop)
    many.save(tmp_path / "shops.sfb")
    loaded = sfboost.load(tmp_path / "shops.sfb")
    np.testing.assert_array_equal(loaded.predict_proba(X, shop), many.predict_proba(X, shop))


def test_a_stable_predictor_that_says_nothing_is_kept_for_all():
    rng = np.random.default_rng(0)
    X, y, shop = draw(100, [1.0, 1.0], rng)
    X[:, :2] = rng.normal(size=(200, 2))
    model = StableFeatureBoosting(stable_features=[0, 1]).fit(X, y, sample_domain=shop)
    with pytest.warns(AdaptationRefused, match="not shown to be informative"):
        many = model.adapt(X, sample_domain=shop)
    assert set(many.decision_.values()) == {"kept stable"}
    np.testing.assert_array_equal(many.predict_proba(X, shop), model.predict_proba(X))


def test_what_many_domains_do_not_take_is_said(shops):
    model, X, y, shop, _ = shops
    with pytest.raises(ValueError, match="one domain at a time"):
        model.adapt(X, y, sample_domain=shop)
