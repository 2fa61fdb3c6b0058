"""`save` and `load`: what comes back is what went in, and nothing else is ever made."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import sfboost
from sfboost import SavedModelError, SavedModelWarning, Settings, StableFeatureBoosting
from sfboost.persistence import saving
from sfboost.persistence.saving import from_bytes, to_bytes


def again(model, path, **options):
    model.save(path / "model.sfb", **options)
    return sfboost.load(path / "model.sfb", **options)


@pytest.mark.parametrize("method", ["default", "paper"])
def test_a_model_comes_back_as_it_was(tmp_path, training, new, method):
    X, y, domain = training
    model = StableFeatureBoosting([0], [1], settings=Settings(method)).fit(X, y, sample_domain=domain)
    loaded = again(model, tmp_path)
    assert type(loaded) is StableFeatureBoosting
    assert repr(loaded.get_params()) == repr(model.get_params())
    assert list(vars(loaded)) == list(vars(model))
    np.testing.assert_array_equal(loaded.predict_proba(new), model.predict_proba(new))
    np.testing.assert_array_equal(loaded.adapt(new).predict_proba(new), model.adapt(new).predict_proba(new))
    refitted = clone(loaded).fit(X, y, sample_domain=domain)
    np.testing.assert_array_equal(refitted.predict_proba(new), model.predict_proba(new))
    assert to_bytes(loaded) == to_bytes(model)


@pytest.mark.filterwarnings("ignore::sfboost.AdaptationRefused")
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"answer": "safe"},
        {"settings": Settings("paper", calibrate_unstable=True)},
        {"settings": Settings(correction="likelihood", rounds=3)},
    ],
    ids=str,
)
def test_every_way_of_adapting_comes_back(tmp_path, model, new, options):
    adapted = model.adapt(new, **options)
    loaded = again(adapted, tmp_path)
    np.testing.assert_array_equal(loaded.predict_proba(new), adapted.predict_proba(new))
    assert (loaded.decision_, str(loaded.reason_)) == (adapted.decision_, str(adapted.reason_))
    assert str(loaded.explain(new[0])) == str(adapted.explain(new[0]))
    assert str(loaded.adaptation) == str(adapted.adaptation)
    assert to_bytes(loaded) == to_bytes(adapted)


def test_an_adaptation_of_arrays_comes_back(tmp_path, adaptation, new):
    loaded = again(adaptation, tmp_path)
    stable = np.where(new[:, 0] > 0, 0.75, 0.25)
    ours, theirs = (each.predict_proba(stable, new[:, 1:]) for each in (loaded, adaptation))
    np.testing.assert_array_equal(ours, theirs)
    assert loaded.settings.get_params() == adaptation.settings.get_params()


@pytest.mark.parametrize("dtype", [object, str, "datetime64[D]", float, bool])
def test_labels_of_any_type_come_back(tmp_path, training, new, dtype):
    X, y, domain = training
    names = {object: ["ill", "höher"], str: ["ill", "well"], "datetime64[D]": ["2020-01-01", "2021-01-01"]}
    labels = np.array(names.get(dtype, [0, 1])).astype(dtype)[y]
    model = StableFeatureBoosting([0], [1]).fit(X, labels, sample_domain=domain)
    loaded = again(model, tmp_path)
    assert loaded.classes_.dtype == model.classes_.dtype
    np.testing.assert_array_equal(loaded.predict(new), model.predict(new))


def test_four_classes_and_columns_that_were_searched_for_come_back(tmp_path):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, 4000)
    domain = np.repeat([2019, 2020], 2000)
    moved = (y + (domain == 2020)) % 4  # what the second column means changes
    X = np.column_stack([y == 1, y >= 2, y == 3, moved]) + rng.normal(size=(4000, 4))
    model = StableFeatureBoosting("auto", [3]).fit(X, y, sample_domain=domain)
    adapted = model.adapt(X[domain == 2020], settings=Settings("paper"))
    loaded = again(adapted, tmp_path)
    assert loaded.model.selector_.selection_ == model.selector_.selection_
    np.testing.assert_array_equal(loaded.predict_proba(X), adapted.predict_proba(X))


def test_what_cannot_be_saved_is_refused_and_leaves_the_old_file_alone(tmp_path, model, training):
    class Mine(StableFeatureBoosting):
        pass

    path = tmp_path / "model.sfb"
    with pytest.raises(NotFittedError, match="call fit before save"):
        StableFeatureBoosting().save(path)
    assert not list(tmp_path.iterdir())
    model.save(path)
    before, (X, y, domain) = path.read_bytes(), training
    for kind, columns, said in (
        (StableFeatureBoosting, lambda X: [0], r"stable_features is a function.*name columns"),
        (Mine, [0], "Mine is not one of"),
    ):
        with pytest.raises(SavedModelError, match=said):
            kind(columns, [1]).fit(X, y, sample_domain=domain).save(path)
    for wrong in (True, "sklearn.tree._tree.Tree", None):
        with pytest.raises(TypeError, match="must be a list"):
            model.save(path, trusted=wrong)
    assert path.read_bytes() == before
    assert len(list(tmp_path.iterdir())) == 1


def test_metadata_requests_come_back(tmp_path, training):
    import sklearn

    X, y, domain = training
    with sklearn.config_context(enable_metadata_routing=True):
        model = StableFeatureBoosting([0], [1])
        model.set_fit_request(sample_domain=True, sample_weight="w").fit(X, y, sample_domain=domain)
        loaded = again(model, tmp_path)
        for each in (loaded, clone(loaded)):
            assert str(each.get_metadata_routing()) == str(model.get_metadata_routing())


@pytest.mark.filterwarnings("error::sfboost.SavedModelWarning")
def test_another_scikit_learn_is_told_and_another_patch_is_not(monkeypatch, model, adaptation):
    data, plain = to_bytes(model), to_bytes(adaptation)
    major, minor = saving.version("scikit-learn").split(".")[:2]
    monkeypatch.setattr(saving, "version", lambda name: f"{major}.{minor}.99")
    from_bytes(data)
    monkeypatch.setattr(saving, "version", lambda name: f"{major}.{int(minor) + 1}.0")
    from_bytes(plain)  # nothing of scikit-learn is inside
    with pytest.warns(SavedModelWarning, match=r"saved with scikit-learn .* is loaded with"):
        from_bytes(data)


def test_a_missing_file_is_a_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        sfboost.load(tmp_path / "none.sfb")
