"""Frames with text, truth values and missing cells, of any library: encoded by what training rows say."""

import warnings
from functools import lru_cache

import numpy as np
import pytest
from joints import draw_anticausal
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import sfboost
from sfboost import Settings, StableFeatureBoosting
from sfboost.adaptation import AdaptationRefused
from sfboost.frames import Encoder, EncodingWarning

nw = pytest.importorskip("narwhals")
pd = pytest.importorskip("pandas", reason="the [app] extra brings pandas")
pytest.importorskip("pyarrow", reason="text is encoded with pyarrow, which the [app] extra brings")
pytestmark = pytest.mark.filterwarnings("ignore::sfboost.frames.EncodingWarning")

LIBRARIES = ["pandas", "pyarrow", "polars"]


def draw(n, agreement, seed, library="pandas"):
    """A stable number that is missing here and there, and a colour, as text, that follows the label."""
    pytest.importorskip(library)
    X, y = draw_anticausal(n, agreement, seed)
    stable = [None if i % 11 == 0 else float(value) for i, value in enumerate(X[:, 0])]
    colour = np.where(X[:, 1] > 0, "green", "red").tolist()
    smokes = (np.arange(n) % 3 == 0).tolist()
    columns = {"id": [f"p{i}" for i in range(n)], "colour": colour, "stable": stable, "smokes": smokes}
    return nw.from_dict(columns, backend=library).to_native(), y


@lru_cache
def fitted(library="pandas"):
    frame, y = draw(3000, 0.9, 0, library)
    model = StableFeatureBoosting(["stable", "smokes"], ["colour"], learner=None)
    return model.fit(frame, y, sample_domain=np.arange(3000) % 2)


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_frame_of_any_library_is_fitted_adapted_and_predicted_the_same(library):
    new, y = draw(2000, 0.1, 1, library)
    adapted = fitted(library).adapt(new, settings=Settings("paper"))
    same = fitted().adapt(draw(2000, 0.1, 1)[0], settings=Settings("paper"))
    np.testing.assert_allclose(
        adapted.predict_proba(new), same.predict_proba(draw(2000, 0.1, 1)[0]), rtol=1e-9
    )
    assert adapted.score(new, y) > same.model.score(draw(2000, 0.1, 1)[0], y) + 0.05


def test_rows_are_encoded_once_where_they_are_adapted_to_and_once_where_they_are_predicted(
    tmp_path, monkeypatch
):
    counted, encode = [], Encoder.encode

    def counting(self, X):
        counted.append(self.names)
        return encode(self, X)

    frame, y = draw(600, 0.9, 0)
    made = StableFeatureBoosting(["stable", "smokes"], ["colour"]).fit(frame, y, np.arange(600) % 3)
    made.save(tmp_path / "model.sfb")
    new, _ = draw(300, 0.1, 1)
    for model in (made, sfboost.load(tmp_path / "model.sfb")):
        once = [model.stable_columns_.encoder.names, model.unstable_columns_.encoder.names]
        with monkeypatch.context() as patched, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            patched.setattr(Encoder, "encode", counting)
            adapted = model.adapt(new)
            assert adapted.best is not None
            assert counted == once
            counted.clear()
            adapted.predict_proba(new)
            assert counted == once
            counted.clear()


@pytest.mark.parametrize("library", LIBRARIES)
def test_extra_and_reordered_columns_change_nothing(library):
    new = draw(2000, 0.1, 1, library)[0]
    rows = nw.from_native(new, eager_only=True)
    turned = rows.select("smokes", "stable", "id", "colour").with_columns(note=rows["colour"]).to_native()
    lean = rows.select("smokes", "stable", "colour").to_native()
    model = fitted(library)
    expected = model.adapt(new, settings=Settings("paper")).predict_proba(new)
    for other in (turned, lean):
        np.testing.assert_allclose(
            model.adapt(other, settings=Settings("paper")).predict_proba(other), expected, rtol=1e-9
        )
    with pytest.raises(ValueError, match=r"feature names.*lacks \['colour'\]"):
        model.adapt(rows.drop("colour").to_native())


@pytest.mark.parametrize("library", ["pandas", "pyarrow"])
def test_two_columns_of_one_name_are_refused(library):
    frame, y = draw(100, 0.9, 0, library)
    twice = ["id", "colour", "stable", "stable"]
    twins = frame.set_axis(twice, axis=1) if library == "pandas" else frame.rename_columns(twice)
    for use in (
        lambda: StableFeatureBoosting(["stable"], ["colour"]).fit(twins, y, sample_domain=np.arange(100) % 2),
        lambda: fitted().adapt(twins),
        lambda: fitted().predict(twins),
    ):
        with pytest.raises(ValueError, match=r"several columns named \['stable'\]"):
            use()


@pytest.mark.filterwarnings("error::sfboost.frames.EncodingWarning")
def test_no_cell_is_filled_in_silence():
    with pytest.warns(EncodingWarning, match=r"Missing in training rows;.*'stable' in 9.1 %"):
        model = fitted.__wrapped__()
    new = draw(300, 0.1, 1)[0]
    with pytest.warns(EncodingWarning, match=r"Missing in new rows;.*'stable' in 9.3 %"):
        model.predict(new)
    model.predict(new.dropna())


def test_many_fits_tell_once_what_is_filled_in_and_at_the_callers_line():
    frame, y = draw(600, 0.9, 0)
    domain = np.arange(600) % 3
    model = StableFeatureBoosting(["stable", "smokes"], ["colour"], learner=None)

    def heard(call):
        with warnings.catch_warnings(record=True) as all_of_them:
            warnings.simplefilter("always", EncodingWarning)
            call(frame, y, domain)
        return [one for one in all_of_them if issubclass(one.category, EncodingWarning)]

    (warning,) = heard(model.evaluate)
    assert "'stable' in 9.2 %" in str(warning.message)
    assert warning.filename == __file__
    assert len(heard(model.fit)) == 1
    assert heard(model.evaluate) == heard(model.calibrate_sets) == []


def test_a_cell_that_is_missing_does_not_look_measured():
    new = draw(2000, 0.1, 1)[0]
    adapted = fitted().adapt(new, settings=Settings("paper"))
    row = new.iloc[[3]].assign(colour=None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it is missing is told
        told = str(adapted.explain(row))
    lines = [line for line in told.splitlines() if line.startswith("    colour")]
    assert lines
    assert all("= missing" in line for line in lines)


def test_stable_features_that_decide_alone_are_explained_one_by_one():
    frame, y = draw(3000, 0.9, 0)
    model = StableFeatureBoosting(["stable", "smokes"], ["colour"]).fit(frame, y, np.arange(3000) % 3)
    with pytest.warns(AdaptationRefused):
        adapted = model.adapt(frame[:30], answer="safe")  # of which nobody can tell
    why = adapted.explain(frame.iloc[1])
    assert why.stable_alone
    assert why.stable_names == ("stable", "smokes")
    other = frame.iloc[[1]].assign(stable=frame["stable"][1] + 1.0)
    apart = why.stable_features[0] - adapted.explain(other).stable_features[0]
    odds = [np.diff(np.log(model.predict_stable_proba(row)[0]))[0] for row in (frame.iloc[[1]], other)]
    assert np.diff(apart)[0] == pytest.approx(odds[0] - odds[1])
    told = str(why)
    assert "log unstable" not in told
    assert "The stable features alone decide" in told
    assert f"    stable = {frame['stable'][1]:.4g}" in told


def test_an_array_is_refused_where_text_was():
    model = fitted()
    with pytest.raises(ValueError, match="pass a frame"), pytest.warns(UserWarning, match="feature names"):
        model.adapt(np.zeros((100, 4)))


def test_a_category_is_explained_by_its_name_and_not_by_one_of_its_codes():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 900)
    frame = pd.DataFrame(
        {
            "age": y + rng.normal(size=900),
            "ward": np.where(rng.random(900) < 0.3, rng.choice(["A", "B", "C"], 900), np.where(y, "A", "B")),
            "dose": y + rng.normal(size=900),
        }
    )
    model = StableFeatureBoosting(["age"]).fit(frame, y, sample_domain=np.repeat(["a", "b", "c"], 300))
    adapted = model.adapt(frame[:300])
    told = str(adapted.explain(frame.iloc[0]))
    assert f"    ward = {frame['ward'][0]}  " in told
    assert f"    dose = {frame['dose'][0]:.4g}" in told
    assert str(adapted).startswith(f"AdaptedClassifier: {adapted.decision_}\n")


def test_a_classifier_that_reads_no_text_is_told_how_it_could():
    """It said: could not convert string to float."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.normal(size=60), "sex": ["f", "m"] * 30, "ward": rng.normal(size=60)})
    y, domain = rng.integers(0, 2, 60), np.repeat(["a", "b"], 30)
    model = StableFeatureBoosting(["age", "sex"], stable=HistGradientBoostingClassifier(max_iter=3))
    with pytest.raises(ValueError, match=r"'sex' holds text\. Pass a pipeline that encodes it") as told:
        model.fit(frame, y, sample_domain=domain)
    assert "(could not convert string to float" in str(told.value)
    names = {"OneHotEncoder": OneHotEncoder, "make_pipeline": make_pipeline}
    names |= {"make_column_transformer": make_column_transformer}
    remedy = str(told.value).partition("stable=")[2].rstrip(".")
    stable = eval(remedy, names | {"HistGradientBoostingClassifier": HistGradientBoostingClassifier})
    assert model.set_params(stable=stable).fit(frame, y, sample_domain=domain).score(frame, y) > 0.5
    numbers = StableFeatureBoosting(["age"], stable=HistGradientBoostingClassifier(max_iter=-1))
    with pytest.raises(ValueError, match="max_iter"):  # its own words, where text is not what is wrong
        numbers.fit(frame, y, sample_domain=domain)
