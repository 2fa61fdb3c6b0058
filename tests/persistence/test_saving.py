"""`save` and `load`: what comes back is what went in, and nothing else is ever made."""

import numpy as np
import pytest
from absent import run_without
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
    ("options", "decision"),
    [({"answer": "paper"}, "adapted"), ({"leak": 0.01}, "adapted"), ({"leak": 0.6}, "kept stable")],
)
def test_every_decision_comes_back_with_its_reason(tmp_path, model, new, options, decision):
    adapted = model.adapt(new, **options)
    assert adapted.decision_ == decision
    loaded = again(adapted, tmp_path)
    np.testing.assert_array_equal(loaded.predict_proba(new), adapted.predict_proba(new))
    assert str(loaded.adaptation) == str(adapted.adaptation)
    assert str(loaded.explain(new[0])) == str(adapted.explain(new[0]))
    assert (loaded.adaptation.withheld is None) == (adapted.adaptation.withheld is None)
    np.testing.assert_array_equal(loaded.depends_on_leak(new), adapted.depends_on_leak(new))
    assert loaded.model.leaks_ == model.leaks_
    known, before = loaded.model.training_, model.training_
    assert (known.evidence, known.leak, known.leak_source) == (
        before.evidence,
        before.leak,
        "training domains",
    )
    np.testing.assert_array_equal(known.source_prior, before.source_prior)
    np.testing.assert_array_equal(known.recalibration.shift, before.recalibration.shift)


@pytest.mark.parametrize(
    "options",
    [
        {"uncertainty": True},
        {"settings": Settings(correction="posthoc")},
        {"settings": Settings(correction="posthoc", calibrate_unstable=True), "answer": "paper"},
        {"settings": Settings(correction="likelihood", rounds=3)},
    ],
    ids=str,
)
def test_every_way_of_adapting_comes_back(tmp_path, model, new, options):
    adapted = model.adapt(new, **options)
    loaded = again(adapted, tmp_path)
    np.testing.assert_array_equal(loaded.predict_proba(new), adapted.predict_proba(new))
    assert str(loaded.adaptation.uncertainty) == str(adapted.adaptation.uncertainty)
    assert to_bytes(loaded) == to_bytes(adapted)


def test_an_adaptation_of_arrays_comes_back(tmp_path, adaptation, new):
    loaded = again(adaptation, tmp_path)
    stable = np.where(new[:, 0] > 0, 0.75, 0.25)
    np.testing.assert_array_equal(
        loaded.predict_proba(stable, new[:, 1:]), adaptation.predict_proba(stable, new[:, 1:])
    )
    assert loaded.settings == adaptation.settings


@pytest.mark.parametrize("dtype", [object, str, "datetime64[D]", float, bool])
def test_labels_of_any_type_come_back(tmp_path, training, new, dtype):
    X, y, domain = training
    names = {object: ["ill", "höher"], str: ["ill", "well"], "datetime64[D]": ["2020-01-01", "2021-01-01"]}
    labels = np.array(names.get(dtype, [0, 1])).astype(dtype)[y]
    model = StableFeatureBoosting([0], [1], play=False).fit(X, labels, sample_domain=domain)
    loaded = again(model, tmp_path)
    assert loaded.classes_.dtype == model.classes_.dtype
    np.testing.assert_array_equal(loaded.predict(new), model.predict(new))


def test_four_classes_and_columns_that_were_searched_for_come_back(tmp_path):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, 4000)
    domain = np.repeat([2019, 2020], 2000)
    moved = (y + (domain == 2020)) % 4  # what the second column means changes
    X = np.column_stack([y == 1, y >= 2, y == 3, moved]) + rng.normal(size=(4000, 4))
    model = StableFeatureBoosting("auto", [3], play=False).fit(X, y, sample_domain=domain)
    adapted = model.adapt(X[domain == 2020], answer="paper")
    loaded = again(adapted, tmp_path)
    assert loaded.model.selector_.selection_ == model.selector_.selection_
    assert [summary.name for summary in loaded.model.domains_] == [2019, 2020]
    np.testing.assert_array_equal(loaded.predict_proba(X), adapted.predict_proba(X))


def test_an_unfitted_model_is_refused_with_the_next_call(tmp_path):
    with pytest.raises(NotFittedError, match="call fit before save"):
        StableFeatureBoosting().save(tmp_path / "model.sfb")
    assert not list(tmp_path.iterdir())


def test_a_function_is_refused_when_saving(tmp_path, training):
    X, y, domain = training
    model = StableFeatureBoosting(lambda X: [0], [1], play=False).fit(X, y, sample_domain=domain)
    with pytest.raises(SavedModelError, match=r"stable_features is a function.*name columns"):
        model.save(tmp_path / "model.sfb")


def test_a_subclass_is_another_type(tmp_path, training):
    X, y, domain = training

    class Mine(StableFeatureBoosting):
        pass

    with pytest.raises(SavedModelError, match="Mine is not one of"):
        Mine([0], [1], play=False).fit(X, y, sample_domain=domain).save(tmp_path / "model.sfb")


def test_a_refused_model_leaves_the_old_file_alone(tmp_path, model, training):
    X, y, domain = training
    model.save(tmp_path / "model.sfb")
    before = (tmp_path / "model.sfb").read_bytes()
    with pytest.raises(SavedModelError):
        StableFeatureBoosting(lambda X: [0], play=False).fit(X, y, domain).save(tmp_path / "model.sfb")
    assert (tmp_path / "model.sfb").read_bytes() == before
    assert len(list(tmp_path.iterdir())) == 1


def test_metadata_requests_come_back(tmp_path, training):
    import sklearn

    X, y, domain = training
    with sklearn.config_context(enable_metadata_routing=True):
        model = StableFeatureBoosting([0], [1], play=False).set_fit_request(
            sample_domain=True, sample_weight="w"
        )
        loaded = again(model.fit(X, y, sample_domain=domain), tmp_path)
        for each in (loaded, clone(loaded)):
            assert str(each.get_metadata_routing()) == str(model.get_metadata_routing())


def test_another_scikit_learn_is_told_and_another_patch_is_not(monkeypatch, model, adaptation):
    data, plain = to_bytes(model), to_bytes(adaptation)
    now = saving.version
    major, minor = now("scikit-learn").split(".")[:2]
    for there, warned in ((f"{major}.{int(minor) + 1}.0", True), (f"{major}.{minor}.99", False)):
        monkeypatch.setattr(saving, "version", lambda name, there=there: there)
        from_bytes(plain)  # nothing of scikit-learn is inside
        if warned:
            with pytest.warns(SavedModelWarning, match=r"saved with scikit-learn .* is loaded with"):
                from_bytes(data)
        else:
            from_bytes(data)


def test_a_missing_file_is_a_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        sfboost.load(tmp_path / "none.sfb")


def test_trusted_must_be_a_list(tmp_path, model):
    for wrong in (True, "sklearn.tree._tree.Tree", None):
        with pytest.raises(TypeError, match="must be a list"):
            model.save(tmp_path / "model.sfb", trusted=wrong)


def test_the_default_model_needs_no_extra():
    code = """
import tempfile, pathlib, numpy as np, sfboost
from sklearn.naive_bayes import GaussianNB
rng = np.random.default_rng(0)
y = rng.integers(0, 2, 400)
X = np.column_stack([y + rng.normal(size=400), -y + rng.normal(size=400)])
path = pathlib.Path(tempfile.mkdtemp()) / "model.sfb"
adapted = sfboost.StableFeatureBoosting([0]).fit(X, y).adapt(X, answer="paper")
adapted.save(path)
print((sfboost.load(path).predict_proba(X) == adapted.predict_proba(X)).all())
try:
    sfboost.StableFeatureBoosting([0], stable=GaussianNB()).fit(X, y).save(path)
except ImportError as error:
    print(error)
"""
    done = run_without(("torch", "pandas", "skops", "safetensors"), code)
    first, second = done.stdout.splitlines()
    assert first == "True"
    assert "pip install 'sfboost[app]'" in second
