"""Embeddings: f_S reads all columns, and what adapts are directions of the new rows."""

import numpy as np
import pytest

import sfboost
from sfboost import StableFeatureBoosting
from sfboost.boosting import performance_without_labels

CLASSES = np.array(["cat", "dog", "elk"])


def draw(n_rows=300, n_domains=4, shift=1.6, seed=0):
    """Three common centres in 40 columns, which every domain moves in its own way; the last one is new."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(3, 40)) / 2
    X, y = [], []
    for _ in range(n_domains):
        own = centres + shift * rng.normal(size=(3, 40)) / 2
        y.append(rng.integers(0, 3, n_rows))
        X.append(own[y[-1]] + rng.normal(size=(n_rows, 40)) * 0.7)
    domain = np.repeat([f"d{k}" for k in range(n_domains)], n_rows)
    return np.concatenate(X), CLASSES[np.concatenate(y)], domain


def known_and_new(**options):
    X, y, domain = draw(**options)
    new = domain == "d3"
    return (X[~new], y[~new], domain[~new]), (X[new], y[new])


@pytest.fixture(scope="module")
def fitted():
    (X, y, domain), new = known_and_new()
    return StableFeatureBoosting(unstable_features="components").fit(X, y, sample_domain=domain), *new


def test_it_gains_in_a_new_domain_where_own_domains_gained(fitted):
    model, X_new, y_new = fitted
    adapted = model.adapt(X_new)
    assert model.components_.helps
    assert adapted.decision_ == "adapted"
    assert adapted.reason_.code == "learned"
    stable = CLASSES[model.predict_stable_proba(X_new).argmax(axis=1)]
    assert adapted.score(X_new, y_new) > np.mean(stable == y_new) + 0.03


def test_directions_are_those_of_the_new_rows_and_the_model_keeps_its_own(fitted):
    model, X_new, _ = fitted
    before = model.unstable_columns_.rotation
    adapted = model.adapt(X_new)
    assert model.unstable_columns_.rotation is before
    here = adapted.model.unstable_columns_.take(X_new)
    np.testing.assert_allclose(here.mean(axis=0), 0.0, atol=1e-9)
    np.testing.assert_allclose(np.cov(here.T), np.diag(here.var(axis=0, ddof=1)), atol=1e-8)


def test_the_adapted_answer_is_as_sure_as_own_domains_were_right(fitted):
    model, X_new, y_new = fitted
    adapted = model.adapt(X_new)
    assert model.components_.temperature.temperature > 1.0
    raw = adapted.adaptation.predict_log_proba(*adapted._parts(X_new))
    position = np.searchsorted(CLASSES, y_new)
    loss = [-said[np.arange(len(y_new)), position].mean() for said in (adapted.predict_log_proba(X_new), raw)]
    assert loss[0] < loss[1]
    told = adapted.explain(X_new[0])
    np.testing.assert_allclose(told.joint, adapted.predict_log_proba(X_new[:1])[0])
    total = told.stable + told.unstable - told.prior
    np.testing.assert_allclose(total - total[0], told.joint - told.joint[0], atol=1e-9)


def test_the_safe_answer_keeps_f_s_since_no_leak_can_be_measured(fitted):
    model, X_new, _ = fitted
    with pytest.warns(UserWarning, match="kept"):
        adapted = model.adapt(X_new, answer="safe")
    np.testing.assert_allclose(adapted.predict_proba(X_new), model.predict_proba(X_new))


def test_own_domains_that_do_not_gain_keep_f_s():
    # All that varies most is noise, and the class lies in one quiet column that f_S reads well.
    rng = np.random.default_rng(0)
    y, domain = rng.integers(0, 2, 800), np.repeat(["a", "b"], 400)
    X = np.c_[rng.normal(size=(800, 20)) * 5, 2.0 * y + rng.normal(size=800)]
    model = StableFeatureBoosting(unstable_features="components").fit(X, y, sample_domain=domain)
    assert model.components_.gain <= 0
    with pytest.warns(UserWarning, match="did not gain"):
        assert model.adapt(X[:400]).decision_ == "kept stable"


def test_one_domain_alone_keeps_f_s_and_says_why():
    (X, y, _), (X_new, _) = known_and_new()
    model = StableFeatureBoosting(unstable_features="components").fit(X, y, sample_domain=["a"] * len(y))
    with pytest.warns(UserWarning, match="no source domain could be left out"):
        adapted = model.adapt(X_new)
    assert adapted.decision_ == "kept stable"


def test_it_is_saved_and_loaded(fitted, tmp_path):
    model, X_new, _ = fitted
    adapted = model.adapt(X_new)
    for name, one in (("model", model), ("adapted", adapted)):
        one.save(tmp_path / f"{name}.sfb")
    loaded, loaded_adapted = (sfboost.load(tmp_path / f"{name}.sfb") for name in ("model", "adapted"))
    np.testing.assert_array_equal(loaded_adapted.predict_proba(X_new), adapted.predict_proba(X_new))
    np.testing.assert_array_equal(loaded.adapt(X_new).predict_proba(X_new), adapted.predict_proba(X_new))


def test_what_rests_on_two_kinds_of_columns_is_refused(fitted):
    model, X_new, _ = fitted
    adapted = model.adapt(X_new)
    found = performance_without_labels(adapted, X_new)
    assert all(not one.value and "components" in one.withheld for one in found.values())
