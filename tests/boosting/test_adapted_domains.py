"""`adapt(X, sample_domain=shop)`: an answer for each of many new domains."""

import json
import zipfile

import numpy as np
import pytest

import sfboost
from sfboost import StableFeatureBoosting
from sfboost.adaptation import AdaptationRefused
from sfboost.answers.candidates import MendedAnswer


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
    rows = model.adapt(X, sample_domain=shop, answer="safe").overview(by="unusual")
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


@pytest.fixture(scope="module")
def turned():
    """Twenty shops, every fourth of which has its unstable features mirrored."""
    rng = np.random.default_rng(1)
    X, y, domain = draw(300, [1.1, 1.0, 0.9, 1.0], rng)
    model = StableFeatureBoosting(stable_features=[0, 1]).fit(X, y, sample_domain=domain)
    slopes = np.where(np.arange(20) % 4 == 0, -1.0, 1.0)
    X, y, shop = draw(150, slopes, rng)
    return model, X, y, shop, {f"shop {i}" for i in np.flatnonzero(slopes < 0)}


def test_shops_whose_features_were_mirrored_are_mended_and_the_others_answered_as_trained(turned):
    model, X, y, shop, mirrored = turned
    many = model.adapt(X, sample_domain=shop)
    changed = {name for name, change in many.changes_.items() if change.verdict == "changed"}
    assert changed == mirrored
    assert {many.decision_[name] for name in mirrored} <= {"adapted", "blended"}
    assert {name for name in many.domains if many.decision_[name] == "pooled"} == set(many.domains) - mirrored
    assert all(many.reasons_[name].startswith("Changed") for name in mirrored)
    calm = np.array([name not in mirrored for name in shop])
    np.testing.assert_allclose(
        many.predict_log_proba(X, shop)[calm], model.answer_rows(X[calm]).view.log_pooled, atol=1e-9
    )
    there = ~calm
    assert many.score(X[there], y[there], shop[there]) > model.score(X[there], y[there]) + 0.05
    assert {row.name for row in many.overview()[:5]} == mirrored


def test_one_of_many_domains_is_answered_as_if_it_were_the_only_one(turned):
    model, X, _, shop, mirrored = turned
    name = sorted(mirrored)[0]
    mine, here = X[shop == name], shop[shop == name]
    one, many = model.adapt(mine), model.adapt(mine, sample_domain=here)
    assert (many.weights_[name], many.reasons_[name]) == (one.weights_, one.reason_)
    assert str(many.changes_[name]) == str(one.change_)
    # SFB has a part in it, and leans on the training domains here.
    np.testing.assert_allclose(many.predict_proba(mine, here), one.predict_proba(mine), atol=0.02)


def test_a_shop_that_was_not_seen_gets_what_did_best_on_the_own_ones(turned):
    model, X, y, shop, mirrored = turned
    calm = np.array([name not in mirrored for name in shop])
    many = model.adapt(X, sample_domain=shop)
    elsewhere = many.predict_proba(X[calm], np.full(int(calm.sum()), "another"))
    assert np.mean(elsewhere.argmax(axis=1) == y[calm]) > model.score(X[calm], y[calm]) + 0.05


@pytest.mark.parametrize("answer", ["best", "safe"])
def test_it_is_saved_and_loaded(turned, tmp_path, answer):
    model, X, _, shop, _ = turned
    many = model.adapt(X, sample_domain=shop, answer=answer)
    many.save(tmp_path / "shops.sfb")
    loaded = sfboost.load(tmp_path / "shops.sfb")
    np.testing.assert_array_equal(loaded.predict_proba(X, shop), many.predict_proba(X, shop))
    assert dict(loaded.reasons_) == dict(many.reasons_)


def test_a_file_has_the_habits_of_training_once_and_not_in_every_mended_domain(turned, tmp_path):
    model, X, _, shop, mirrored = turned
    many, habits = model.adapt(X, sample_domain=shop), model.training_.experience.habits
    for name in mirrored:
        rows = model.answer_rows(X[shop == name])
        mended = MendedAnswer(habits.mend(rows.view, [0, 1], [-1.0, -1.0]))
        many.best.fitted[many.domains.index(name)] = {"mended": mended}
    many.save(tmp_path / "shops.sfb")
    with zipfile.ZipFile(tmp_path / "shops.sfb") as file:
        tree = json.loads(file.read("model.json"))
    # In the model's experience, and once for all domains.
    assert json.dumps(tree).count('"object": "Habits"') == 2
    loaded = sfboost.load(tmp_path / "shops.sfb")
    for number, made in many.best.fitted.items():
        again = loaded.best.fitted[number]["mended"]
        np.testing.assert_array_equal(again.log_proba(rows), made["mended"].log_proba(rows))


@pytest.mark.parametrize(("slope", "starts"), [(1.0, "Nothing changed"), (-1.0, "Changed")])
def test_shops_that_are_too_small_to_be_asked_are_asked_together(turned, tmp_path, slope, starts):
    model = turned[0]
    rng = np.random.default_rng(2)
    X, y, shop = draw(6, [slope] * 100, rng)
    kept = np.flatnonzero(~np.isin(shop, ["shop 0", "shop 1"]) | (np.arange(len(shop)) % 6 == 0))
    X, y, shop = X[kept], y[kept], shop[kept]  # two of them have one row
    many = model.adapt(X, sample_domain=shop)
    assert {change.verdict for change in many.changes_.values()} == {"cannot tell"}
    assert len(set(many.decision_.values())) == 1
    assert many.reasons_["shop 0"].startswith(
        f"Cannot tell by itself. Of all 100 domains like that as one: {starts}"
    )
    # As a model that is told that they are one domain, but for heads that lean on each other.
    one = model.adapt(X)
    assert many.weights_["shop 7"] == one.weights_
    assert many.score(X, y, shop) > max(one.score(X, y) - 0.02, model.score(X, y) + 0.05)
    many.save(tmp_path / "shops.sfb")
    loaded = sfboost.load(tmp_path / "shops.sfb")
    np.testing.assert_array_equal(loaded.predict_proba(X, shop), many.predict_proba(X, shop))
    assert dict(loaded.reasons_) == dict(many.reasons_)


@pytest.mark.parametrize("sizes", [[1], [2], [1, 1, 2]])
def test_a_few_rows_in_all_get_what_own_domains_ask_for(turned, sizes):
    model = turned[0]
    X, _, shop = draw(4, [1.0] * len(sizes), np.random.default_rng(3))
    kept = np.concatenate([np.flatnonzero(shop == f"shop {i}")[:size] for i, size in enumerate(sizes)])
    X, shop = X[kept], shop[kept]
    many = model.adapt(X, sample_domain=shop)
    assert set(many.decision_.values()) == {"pooled"}
    assert (
        f"{sum(sizes)} rows are too few to ask. The answer is all features as trained"
        in many.reasons_["shop 0"]
    )
    np.testing.assert_allclose(
        many.predict_log_proba(X, shop), model.answer_rows(X).view.log_pooled, atol=1e-9
    )


def test_without_experience_the_answer_is_the_safe_one_and_says_so(turned):
    _, X, y, shop, _ = turned
    plain = StableFeatureBoosting([0, 1], play=False).fit(X, y, sample_domain=shop)
    many = plain.adapt(X, sample_domain=shop)
    assert many.changes_ is None
    assert 'answer="best" needs' in many.reasons_["shop 1"]


def test_a_stable_predictor_that_says_nothing_is_kept_for_all():
    rng = np.random.default_rng(0)
    X, y, shop = draw(100, [1.0, 1.0], rng)
    X[:, :2] = rng.normal(size=(200, 2))
    model = StableFeatureBoosting(stable_features=[0, 1]).fit(X, y, sample_domain=shop)
    with pytest.warns(AdaptationRefused, match="not shown to be informative"):
        many = model.adapt(X, sample_domain=shop, answer="safe")
    assert set(many.decision_.values()) == {"kept stable"}
    np.testing.assert_array_equal(many.predict_proba(X, shop), model.predict_proba(X))


def test_what_many_domains_do_not_take_is_said(shops):
    model, X, y, shop, _ = shops
    with pytest.raises(ValueError, match="one domain at a time"):
        model.adapt(X, y, sample_domain=shop)
