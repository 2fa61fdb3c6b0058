"""`adapt(X, sample_domain=shop)`: an answer for each of several new domains."""

from copy import copy
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import sfboost
from sfboost import AdaptedDomains, StableFeatureBoosting


def draw(n_rows, slopes, rng):
    """Rows of several shops; the second half of the columns means `slopes[shop]` times the class."""
    shop = np.repeat(np.arange(len(slopes)), n_rows)
    y = rng.integers(0, 2, len(shop))
    sign = (2 * y - 1)[:, None]
    stable = rng.normal(size=(len(shop), 2)) + 0.8 * sign
    unstable = rng.normal(size=(len(shop), 2)) + sign * np.asarray(slopes)[shop][:, None] * [1.0, 0.5]
    return np.column_stack([stable, unstable]), y, np.array([f"shop {i}" for i in shop])


@pytest.fixture(scope="module")
def turned():
    """Twelve shops in mixed order, every fourth of which has its unstable features mirrored."""
    rng = np.random.default_rng(1)
    X, y, domain = draw(300, [1.1, 1.0, 0.9, 1.0], rng)
    model = StableFeatureBoosting(stable_features=[0, 1], learner=None).fit(X, y, sample_domain=domain)
    slopes = np.where(np.arange(12) % 4 == 0, -1.0, 1.0)
    X, y, shop = draw(150, slopes, rng)
    order = rng.permutation(len(y))
    mirrored = {f"shop {i}" for i in np.flatnonzero(slopes < 0)}
    return model, X[order], y[order], shop[order], mirrored


@pytest.fixture(scope="module")
def many(turned):
    model, X, _, shop, _ = turned
    return model.adapt(X, sample_domain=shop)


def test_each_domain_is_answered_as_if_it_were_the_only_one(turned, many):
    model, X, y, shop, _ = turned
    assert set(many) == set(shop)
    assert len(many) == 12
    for name in ("shop 0", "shop 1"):
        mine = shop == name
        one = model.adapt(X[mine])
        assert str(many[name].reason_) == str(one.reason_)
        expected = one.predict_proba(X[mine])
        np.testing.assert_allclose(many.predict_proba(X, shop)[mine], expected, rtol=1e-9)
        np.testing.assert_allclose(
            many.predict_log_proba(X, shop)[mine], one.predict_log_proba(X[mine]), rtol=1e-9
        )
        np.testing.assert_array_equal(many.predict(X, shop)[mine], one.predict(X[mine]))
    assert many.score(X, y, shop) == np.mean(many.predict(X, shop) == y)


def test_mirrored_shops_are_found_and_come_first(turned, many):
    model, X, y, shop, mirrored = turned
    rows = many.overview()
    assert {row.name for row in rows[: len(mirrored)]} == mirrored
    assert {row.name for row in rows if row.verdict == "changed"} == mirrored
    assert [row.p_value for row in rows] == sorted(row.p_value for row in rows)
    assert all(row.adjusted >= row.p_value for row in rows)
    assert {row.n_rows for row in rows} == {150}
    assert {name for name, one in many.items() if one.best.as_in_training} == set(many) - mirrored
    there = np.isin(shop, sorted(mirrored))
    assert many.score(X[there], y[there], shop[there]) > model.score(X[there], y[there]) + 0.05


def test_false_discoveries_are_held_over_all_domains(turned, many):
    """As Benjamini and Hochberg do: p times the number of domains over its rank, by hand."""
    p_values = {"shop 0": 0.001, "shop 1": 0.04, "shop 2": 0.03, "shop 3": 0.5}
    powers = {"shop 0": 3.0, "shop 1": 1.0, "shop 2": 3.0, "shop 3": 3.0}

    def seen(name):
        one = copy(many[name])
        verdict = "changed" if p_values[name] < 0.05 else "unchanged"
        change = one.shift_.unstable
        change = replace(change, verdict=verdict, p_value=p_values[name], power=powers[name])
        one.best = replace(one.best, shift=replace(one.shift_, unstable=change))
        return one

    rows = AdaptedDomains(
        turned[0], {name: seen(name) for name in p_values}, dict.fromkeys(p_values, 150)
    ).overview()
    assert [row.name for row in rows] == ["shop 0", "shop 2", "shop 1", "shop 3"]
    np.testing.assert_allclose([row.adjusted for row in rows], [0.004, 0.16 / 3, 0.16 / 3, 0.5])
    assert [row.verdict for row in rows] == ["changed", "unchanged", "cannot tell", "unchanged"]
    told = ["Among 4 domains that is no discovery (adjusted p = 0.05)" in row.reason for row in rows]
    assert told == [False, True, True, False]


def test_labels_weights_and_options_reach_each_domain(turned):
    model, X, y, shop, _ = turned
    known = np.where(np.arange(len(y)) % 3 == 0, y, -1).astype(float)
    known[known < 0] = np.nan
    weight = np.random.default_rng(0).random(len(y))
    many = model.adapt(X, known, weight, sample_domain=shop, answer="safe")
    mine = shop == "shop 4"
    one = model.adapt(X[mine], known[mine], weight[mine], answer="safe")
    assert str(many["shop 4"].reason_) == str(one.reason_)
    assert {"kept", "n_labels"} <= one.reason_.values.keys()
    np.testing.assert_allclose(many["shop 4"].predict_proba(X), one.predict_proba(X), rtol=1e-9)


def test_a_shop_of_one_row_gets_the_answer_of_one_that_nothing_is_known_of(turned):
    model = turned[0]
    X, _, shop = draw(2, [1.0, 1.0], np.random.default_rng(3))
    many = model.adapt(X[:3], sample_domain=shop[:3])
    assert {row.name: row.n_rows for row in many.overview()} == {"shop 0": 2, "shop 1": 1}
    assert {one.decision_ for one in many.values()} == {"pooled"}
    pooled = model.answer_rows(X[:3]).log_pooled
    np.testing.assert_allclose(many.predict_log_proba(X[:3], shop[:3]), pooled, atol=1e-9)


def test_a_shop_that_was_not_adapted_to_is_refused(turned, many):
    X = turned[1][:2]
    with pytest.raises(ValueError, match="Nothing was adapted to 'another': pass rows of 'shop"):
        many.predict(X, ["shop 1", "another"])


def test_what_is_filled_in_is_told_once_of_all_rows():
    rng = np.random.default_rng(0)
    X, y, shop = draw(60, [1.0, 1.0, 0.9], rng)
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = StableFeatureBoosting(["a", "b"], learner=None).fit(frame, y, sample_domain=shop)
    frame.loc[::5, "c"] = np.nan
    with pytest.warns(sfboost.frames.EncodingWarning) as told:
        many = model.adapt(frame, sample_domain=shop)
    assert len(told) == 1
    with pytest.warns(sfboost.frames.EncodingWarning) as told:
        many.predict(frame, shop)
    assert len(told) == 1
