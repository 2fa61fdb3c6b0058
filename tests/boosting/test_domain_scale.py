"""`standardize="domain"`: what a domain measures in is no matter."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from gaussian_domains import MIRRORED_U, rows, source_rows
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import sfboost
from sfboost import StableFeatureBoosting

NAMES = ["a", "b", "c", "d"]
#: Of each column, here.
UNITS, OFFSETS = np.array([8.0, 0.3, 100.0, 2.0]), np.array([-50.0, 3.0, 1000.0, 0.0])


def elsewhere(X):
    return X * UNITS + OFFSETS


def in_own_units(X, domain):
    """Every second domain reports in other units."""
    return np.where((domain % 2 == 1)[:, None], elsewhere(X), X)


def model(**options):
    # Trees may put a row that rounding moved on the other side of a threshold: one linear learner.
    return StableFeatureBoosting([0, 1], [2, 3], learner=None, standardize="domain", **options)


@pytest.fixture(scope="module")
def source():
    return source_rows(np.random.default_rng(0))


@pytest.fixture(scope="module")
def fitted(source):
    X, y, domain = source
    return model().fit(in_own_units(X, domain), y, sample_domain=domain)


@pytest.mark.parametrize("signs", [(1, 1, 1, 1), MIRRORED_U])
def test_a_domain_of_other_units_and_offsets_is_answered_as_the_others(source, fitted, signs):
    X, y, domain = source
    X_new, _ = rows(np.random.default_rng(7), 500, signs)
    plain = model().fit(X, y, sample_domain=domain)
    np.testing.assert_allclose(fitted.predict_proba(elsewhere(X_new)), plain.predict_proba(X_new), atol=1e-6)
    here, there = plain.adapt(X_new), fitted.adapt(elsewhere(X_new))
    assert here.decision_ == there.decision_
    np.testing.assert_allclose(there.predict_proba(elsewhere(X_new)), here.predict_proba(X_new), atol=1e-6)


def test_without_it_units_matter(source):
    X, y, domain = source
    X_new, y_new = rows(np.random.default_rng(7), 500)
    plain = model().set_params(standardize=None).fit(X, y, sample_domain=domain)
    ours = model().fit(X, y, sample_domain=domain)
    assert plain.score(elsewhere(X_new), y_new) < 0.7 < 0.85 < ours.score(elsewhere(X_new), y_new)


def test_an_adapted_model_keeps_the_scale_of_its_domain_also_in_a_file(fitted, tmp_path):
    X_new = elsewhere(rows(np.random.default_rng(7), 500)[0])
    adapted = fitted.adapt(X_new)
    np.testing.assert_allclose(adapted.predict_proba(X_new)[:3], adapted.predict_proba(X_new[:3]))
    assert fitted.domain_scale_.here is None, "the model itself knows no target domain"
    # Of three rows by themselves, without a domain, the model makes something else.
    assert np.abs(fitted.predict_proba(X_new)[:3] - fitted.predict_proba(X_new[:3])).max() > 0.01
    for one in (fitted, adapted):
        one.save(tmp_path / "model.sfb")
        loaded = sfboost.load(tmp_path / "model.sfb")
        np.testing.assert_array_equal(loaded.predict_proba(X_new), one.predict_proba(X_new))
    np.testing.assert_array_equal(loaded.predict_proba(X_new[:3]), adapted.predict_proba(X_new[:3]))


def test_weights_of_rows_count(source):
    """Whole weights are rows that stand there so often; rows of weight zero are none."""
    X, y, domain = source
    times = np.random.default_rng(1).integers(1, 4, len(y))
    repeated = np.repeat(np.arange(len(y)), times)
    weighted = model().fit(X, y, sample_domain=domain, sample_weight=times)
    X_new = rows(np.random.default_rng(7), 400)[0]
    weight = np.repeat([1, 2, 0], [200, 100, 100])
    X_new[300:] *= 1000
    here = weighted.domain_scale_.in_domain(X_new, weight).here
    kept = X_new[np.repeat(np.arange(400), weight)]
    np.testing.assert_allclose(here.mean_, kept.mean(axis=0))
    np.testing.assert_allclose(here.scale_, kept.std(axis=0))
    np.testing.assert_allclose(
        weighted.adapt(X_new, sample_weight=weight).model.domain_scale_.here.mean_, here.mean_
    )
    # The fit, too, sees each domain's weighted columns: these have the mean zero in every domain.
    told = model().fit(X[repeated], y[repeated], sample_domain=domain[repeated])
    for one, other in zip(weighted.domains_, told.domains_, strict=True):
        np.testing.assert_allclose(one.feature_mean, 0.0, atol=1e-9)
        np.testing.assert_allclose(one.feature_scale, other.feature_scale)


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame])
def test_of_a_frame_numbers_are_standardised_by_name_and_the_rest_stays(source, library):
    X, y, domain = source
    ward = np.where(np.random.default_rng(2).random(len(y)) < 0.5, "A", "B")

    def table(X, ward):
        made = {name: X[:, j] for j, name in enumerate(NAMES)} | {"ward": ward, "id": np.arange(len(X))}
        return library(made)

    fitted = StableFeatureBoosting(["a", "b", "ward"], ["c", "d"], learner=None, standardize="domain")
    frame = table(in_own_units(X, domain), ward)
    fitted.fit(frame, y, sample_domain=domain)
    assert fitted.domain_scale_.names == tuple(NAMES)
    X_new = rows(np.random.default_rng(7), 500)[0]
    new, other = table(X_new, ward[:500]), table(elsewhere(X_new), ward[:500])
    np.testing.assert_allclose(fitted.predict_proba(new), fitted.predict_proba(other), atol=1e-6)
    adapted = fitted.adapt(other)
    backwards = other[[*reversed(other.columns)]]
    if library is pd.DataFrame:
        backwards = backwards.set_axis(range(500)[::-1]).drop(columns="id")  # an index that says otherwise
    np.testing.assert_allclose(adapted.predict_proba(backwards), adapted.predict_proba(other))
    assert adapted.explain(other[:1]).cells == {"ward": ward[0]}


def test_gaps_stay_gaps_and_columns_without_spread_are_zero(source):
    X, y, domain = source
    gaps = X.copy()
    gaps[::7, 0], gaps[domain == 0, 3] = np.nan, 5.0
    frame = pd.DataFrame(gaps, columns=NAMES)
    fitted = StableFeatureBoosting(["a", "b"], ["c", "d"], standardize="domain")
    with pytest.warns(sfboost.frames.EncodingWarning, match="Missing in training rows"):
        fitted.fit(frame, y, sample_domain=domain)
    scaled = fitted.domain_scale_.apply(frame, domain)
    assert scaled["a"].isna().equals(frame["a"].isna())
    np.testing.assert_allclose(scaled.loc[domain == 0, "d"], 0.0, atol=1e-12)
    new = rows(np.random.default_rng(7), 400)[0]
    with pytest.warns(sfboost.frames.EncodingWarning, match="'c' in all"):
        adapted = fitted.adapt(pd.DataFrame(new, columns=NAMES).assign(c=np.nan))
    # Where nothing was there to tell the scale, a value counts as missing.
    assert np.isfinite(adapted.predict_proba(pd.DataFrame(new, columns=NAMES))).all()


def test_what_cannot_be_standardised_is_refused(source):
    from scipy.sparse import csr_array

    X, y, domain = source
    with pytest.raises(ValueError, match="wants dense numbers"):
        model().fit(csr_array(X), y, sample_domain=domain)
    pipeline = make_pipeline(StandardScaler(), LogisticRegression())
    texts = X.astype(object)
    texts[:, 0] = "north"
    with pytest.raises(ValueError, match="or a frame"):
        model(stable=pipeline, unstable=pipeline).fit(texts, y, sample_domain=domain)


def test_source_domains_that_play_the_target_are_standardised_by_themselves(source):
    X, y, domain = source
    plain, moved = (model().evaluate(rows, y, domain) for rows in (X, in_own_units(X, domain)))
    for one, other in zip(plain.domains, moved.domains, strict=True):
        assert one.scores["pooled"] == pytest.approx(other.scores["pooled"], abs=1e-6)
    assert str(model().diagnose(X, y, domain)) == str(model().diagnose(in_own_units(X, domain), y, domain))


def test_components_are_those_of_standardised_rows(source):
    X, y, domain = source
    X_new = rows(np.random.default_rng(7), 500)[0]
    along = StableFeatureBoosting(unstable_features="components", standardize="domain")
    here, there = (
        along.fit(given, y, sample_domain=domain).adapt(new).predict_proba(new)
        for given, new in ((X, X_new), (in_own_units(X, domain), elsewhere(X_new)))
    )
    np.testing.assert_allclose(there, here, atol=1e-4)


def test_the_command_reads_blocks_and_refuses_it(source, tmp_path):
    pytest.importorskip("typer", reason="the command is an extra")
    from sfboost.cli.project import load_project

    X, y, domain = source
    frame = pd.DataFrame(X, columns=NAMES)
    fitted = StableFeatureBoosting(["a", "b"], ["c", "d"], learner=None, standardize="domain")
    fitted.fit(frame, y, sample_domain=domain).adapt(frame[:500]).save(tmp_path / "model.sfb")
    with pytest.raises(ValueError, match="load it in Python"):
        load_project(tmp_path / "model.sfb")
