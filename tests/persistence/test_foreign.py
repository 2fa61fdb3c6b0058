"""scikit-learn estimators through skops: which come back, which are refused, and what is never run."""

import io
import json
import os
import zipfile

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.model_selection import LeaveOneGroupOut
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    OneHotEncoder,
    PolynomialFeatures,
    SplineTransformer,
    StandardScaler,
)

import sfboost
from sfboost import SavedModelError, StableFeatureBoosting
from sfboost.persistence.foreign import TRUSTED, load_foreign
from sfboost.persistence.saving import from_bytes

skops_io = pytest.importorskip("skops.io", reason="needs the app extra")

TREE = "sklearn.tree._tree.Tree"
HIST_TREE = "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor"


def fitted(training, stable, **options):
    X, y, domain = training
    return StableFeatureBoosting([0], [1], stable=stable, **options).fit(X, y, sample_domain=domain)


@pytest.mark.parametrize(
    "stable",
    [
        GaussianNB(),
        SGDClassifier(loss="log_loss", random_state=0),
        MLPClassifier(4, max_iter=300, tol=1e-2, learning_rate_init=0.03, random_state=0),
        CalibratedClassifierCV(LogisticRegression()),
        FrozenEstimator(GaussianNB().fit(np.array([[-1.0], [1.0], [-1.1], [1.1]]), [0, 1, 0, 1])),
        make_pipeline(PolynomialFeatures(), StandardScaler(), LogisticRegression(class_weight="balanced")),
        make_pipeline(SplineTransformer(3, knots=np.array([[-1.0], [0.0], [1.0]])), LogisticRegression()),
        make_pipeline(FunctionTransformer(np.tanh), LogisticRegression()),
    ],
    ids=lambda stable: type(stable[0] if hasattr(stable, "steps") else stable).__name__,
)
def test_estimators_come_back_bit_for_bit(tmp_path, training, new, stable):
    model = fitted(training, stable, cv=LeaveOneGroupOut())
    model.save(tmp_path / "model.sfb")
    loaded = sfboost.load(tmp_path / "model.sfb")
    np.testing.assert_array_equal(loaded.predict_proba(new), model.predict_proba(new))
    assert str(loaded) == str(model)
    ours, theirs = loaded.adapt(new, answer="paper"), model.adapt(new, answer="paper")
    np.testing.assert_array_equal(ours.predict_proba(new), theirs.predict_proba(new))


@pytest.mark.parametrize(
    ("stable", "trusted"),
    [
        (GradientBoostingClassifier(n_estimators=5), [TREE]),
        (RandomForestClassifier(5, random_state=0), [TREE]),
        (HistGradientBoostingClassifier(max_iter=5), [HIST_TREE]),
    ],
    ids=lambda x: type(x).__name__,
)
def test_trees_come_back_only_if_they_are_trusted_both_times(tmp_path, training, new, stable, trusted):
    model = fitted(training, stable)
    with pytest.raises(SavedModelError, match="crash the process") as refused:
        model.save(tmp_path / "model.sfb")
    assert f"pass trusted={trusted} to save and to load" in str(refused.value)
    assert not list(tmp_path.iterdir())
    model.save(tmp_path / "model.sfb", trusted=trusted)
    with pytest.raises(SavedModelError, match="trusted="):
        sfboost.load(tmp_path / "model.sfb")
    loaded = sfboost.load(tmp_path / "model.sfb", trusted=trusted)
    np.testing.assert_array_equal(loaded.predict_proba(new), model.predict_proba(new))


def test_a_forest_as_head_comes_back(tmp_path, training, new):
    X, y, domain = training
    head = RandomForestClassifier(5, max_depth=2, random_state=0)
    model = StableFeatureBoosting([0], [1], unstable=head).fit(X, y, sample_domain=domain)
    adapted = model.adapt(new, answer="paper")
    adapted.save(tmp_path / "model.sfb", trusted=[TREE])
    loaded = sfboost.load(tmp_path / "model.sfb", trusted=[TREE])
    np.testing.assert_array_equal(loaded.predict_proba(new), adapted.predict_proba(new))


def test_a_table_of_words_and_numbers_comes_back(tmp_path):
    pd = pytest.importorskip("pandas", reason="needs the app extra")
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 600)
    X = pd.DataFrame(
        {
            "age": y + rng.normal(size=600),
            "ward": np.where(rng.random(600) < 0.8, y, 1 - y),
            "sex": pd.Categorical(rng.choice(["f", "m"], 600)),
            "drug": rng.choice(["a", "bé", None], 600),
        }
    ).astype({"drug": object})
    X.loc[3, "age"] = np.nan
    words = make_pipeline(
        SimpleImputer(strategy="most_frequent"),
        OneHotEncoder(handle_unknown="infrequent_if_exist", min_frequency=3),
    )
    columns = make_column_transformer(
        (SimpleImputer(add_indicator=True), make_column_selector(dtype_include=["number"])),
        (OneHotEncoder(handle_unknown="ignore", dtype=np.float32), ["sex"]),
        (words, ["drug"]),
    )
    labels = np.array(["ill", "well"], dtype=object)[y]
    model = StableFeatureBoosting(
        X.columns[[0, 2, 3]], ["ward"], stable=make_pipeline(columns, LogisticRegression())
    ).fit(X, labels, sample_domain=np.repeat([1, 2], 300))
    adapted = model.adapt(X)
    adapted.save(tmp_path / "model.sfb")
    loaded = sfboost.load(tmp_path / "model.sfb")
    np.testing.assert_array_equal(loaded.predict_proba(X), adapted.predict_proba(X))
    np.testing.assert_array_equal(loaded.predict(X), adapted.predict(X))
    with pytest.raises(ValueError, match="feature names"):
        loaded.predict_proba(X.rename(columns={"age": "years"}))


class OwnClassifier(ClassifierMixin, BaseEstimator):
    """A user's own type."""

    def fit(self, X, y):
        self.classes_, self.share_ = np.unique(y), float(np.mean(y))
        return self

    def predict_proba(self, X):
        return np.tile([1 - self.share_, self.share_], (len(X), 1))


def test_a_users_own_type_must_be_named(tmp_path, training, new, monkeypatch):
    import sys
    import types

    monkeypatch.setitem(sys.modules, "users_own", types.SimpleNamespace(OwnClassifier=OwnClassifier))
    monkeypatch.setattr(OwnClassifier, "__module__", "users_own")
    model = fitted(training, OwnClassifier())
    with pytest.raises(SavedModelError, match=r"trusted=\['users_own.OwnClassifier'\]"):
        model.save(tmp_path / "model.sfb")
    for trusted in ([OwnClassifier], ["users_own.OwnClassifier"]):
        model.save(tmp_path / "model.sfb", trusted=trusted)
        loaded = sfboost.load(tmp_path / "model.sfb", trusted=trusted)
        np.testing.assert_array_equal(loaded.predict_proba(new), model.predict_proba(new))


@pytest.mark.filterwarnings("ignore:Persisting input arguments")  # joblib, where the disk is slow
def test_a_cache_of_pickles_is_refused(tmp_path, training):
    pipeline = make_pipeline(StandardScaler(), LogisticRegression(), memory=str(tmp_path / "cache"))
    for stable in (pipeline, CalibratedClassifierCV(pipeline)):
        with pytest.raises(SavedModelError, match="a cache of pickles"):
            fitted(training, stable).save(tmp_path / "model.sfb")


# -- forged parts -----------------------------------------------------------------------------------


class Payload:
    """What pickle would run on loading."""

    def __reduce__(self):
        return (os.system, ("touch executed",))


def forged(estimator=None, **changes):
    """skops bytes, with the schema changed."""
    source = zipfile.ZipFile(io.BytesIO(skops_io.dumps(estimator or GaussianNB())))
    schema = json.loads(source.read("schema.json"))
    schema.update(changes)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in source.namelist():
            archive.writestr(name, json.dumps(schema) if name == "schema.json" else source.read(name))
    return buffer.getvalue()


@pytest.mark.parametrize(
    "data",
    [
        forged(FunctionTransformer(os.system)),
        forged(FunctionTransformer(Payload())),
        forged(FunctionTransformer(eval)),
        forged(__class__="system", __module__="os", __loader__="FunctionNode"),
        forged(__class__="Popen", __module__="subprocess"),
        forged(__class__="methodcaller", __module__="operator", __loader__="OperatorFuncNode", attrs={}),
        forged(__loader__="NoSuchNode"),
    ],
    ids=["function", "reduce", "eval", "loader", "class", "operator", "unknown loader"],
)
def test_a_payload_is_refused_and_not_run(tmp_path, monkeypatch, forger, data):
    monkeypatch.chdir(tmp_path)
    forger.tree["state"]["guard"] = {"skops": forger.add("parts/99.skops", data)}
    with pytest.raises(SavedModelError):
        from_bytes(forger.write())
    assert not list(tmp_path.iterdir())


def test_a_module_named_by_a_part_is_not_imported(forger):
    import sys

    data = forged(__class__="Anything", __module__="antigravity")
    forger.tree["state"]["guard"] = {"skops": forger.add("parts/99.skops", data)}
    with pytest.raises(SavedModelError, match=r"trusted=\['antigravity.Anything'\]"):
        from_bytes(forger.write())
    assert "antigravity" not in sys.modules


@pytest.mark.parametrize("protocol", [0, 1, -1, True, None, "2", 2.0])
def test_a_part_cannot_choose_an_older_reader(protocol):
    with pytest.raises(SavedModelError, match="old format of skops"):
        load_foreign(forged(protocol=protocol), ())


def test_a_part_of_a_newer_skops_is_refused(forger):
    forger.tree["state"]["guard"] = {"skops": forger.add("parts/99.skops", forged(protocol=99))}
    with pytest.raises(SavedModelError, match="update skops"):
        from_bytes(forger.write())


def test_a_part_that_swells_is_refused():
    with pytest.raises(SavedModelError, match="compressed"):
        load_foreign(skops_io.dumps(GaussianNB(), compression=zipfile.ZIP_DEFLATED), ())


def test_an_array_in_a_part_that_claims_more_memory_is_refused(training):
    X, y, _ = training
    source = zipfile.ZipFile(io.BytesIO(skops_io.dumps(GaussianNB().fit(X, y))))
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in source.namelist():
            content = source.read(name)
            archive.writestr(name, content.replace(b"(2, 2), }", b"(9, 9), }"))
    with pytest.raises(SavedModelError, match=r"shape \(9, 9\)"):
        load_foreign(buffer.getvalue(), ())


def test_a_part_that_reads_one_array_over_and_over_is_refused(training):
    X, y, _ = training
    source = zipfile.ZipFile(io.BytesIO(skops_io.dumps(GaussianNB().fit(X, y))))
    schema = json.loads(source.read("schema.json"))
    attributes = schema["content"]["content"]
    entry = {key: value for key, value in attributes["theta_"].items() if key != "__id__"}
    attributes["var_"]["type"], attributes["var_"]["content"] = "json", [entry] * 1000
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in source.namelist():
            archive.writestr(name, json.dumps(schema) if name == "schema.json" else source.read(name))
    with pytest.raises(SavedModelError, match="more than once"):
        load_foreign(buffer.getvalue(), ())


def test_a_forged_cache_of_pickles_is_refused():
    with pytest.raises(SavedModelError, match="a cache of pickles"):
        load_foreign(skops_io.dumps(make_pipeline(GaussianNB(), memory="/tmp/cache")), ())


def test_an_old_skops_is_refused(monkeypatch):
    import skops

    monkeypatch.setattr(skops, "__version__", "0.14.0")
    with pytest.raises(ImportError, match=r"has known holes: install 0\.15"):
        load_foreign(skops_io.dumps(GaussianNB()), ())


def test_trees_and_functions_are_not_trusted_by_default():
    assert not {TREE, HIST_TREE} & set(TRUSTED)
    assert all(name.startswith(("sklearn.", "numpy.dtype")) for name in TRUSTED)


COLLIDING = [i * (2**61 - 1) for i in range(1001)]


@pytest.mark.parametrize("many", [dict.fromkeys(COLLIDING, 0), set(COLLIDING)], ids=["dict", "set"])
def test_keys_that_share_a_hash_are_refused_in_a_part_too(many):
    with pytest.raises(SavedModelError, match="more than 1000 keys that are no text"):
        load_foreign(skops_io.dumps(many), ())


def test_keys_cannot_pass_for_text_under_the_identity_of_a_number():
    data = skops_io.dumps({"first": {1: 0}, "second": {"a": 0}})
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        schema = json.loads(archive.read("schema.json"))
    first, second = (schema["content"][name]["key_types"]["content"][0] for name in ("first", "second"))
    second["__id__"] = first["__id__"]
    members = io.BytesIO()
    with zipfile.ZipFile(members, "w") as archive:
        archive.writestr("schema.json", json.dumps(schema))
    with pytest.raises(SavedModelError, match="two things of one identity"):
        load_foreign(members.getvalue(), ())


def test_a_large_vocabulary_is_no_attack():
    words = {f"word{i}": i for i in range(5000)}
    assert load_foreign(skops_io.dumps(words), ()) == words
    assert load_foreign(skops_io.dumps(set(words)), ()) == set(words)
