"""scikit-learn estimators through skops: which come back, which are refused, and what is never run."""

import io
import json
import os
import sys
import types
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
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.model_selection import LeaveOneGroupOut
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
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
from sfboost import SavedModelError, Settings, StableFeatureBoosting
from sfboost.persistence.foreign import dump_foreign, load_foreign

skops_io = pytest.importorskip("skops.io", reason="needs the app extra")

TREE = "sklearn.tree._tree.Tree"


def fitted(training, stable, **options):
    X, y, domain = training
    model = StableFeatureBoosting([0], [1], stable=stable, **options)
    return model.fit(X, y, sample_domain=domain)


@pytest.mark.parametrize(
    "stable",
    [
        GaussianNB(),
        SGDClassifier(loss="log_loss", random_state=0),
        MLPClassifier(4, max_iter=300, tol=1e-2, learning_rate_init=0.03, random_state=0),
        HistGradientBoostingClassifier(max_iter=5),
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
    ours, theirs = loaded.adapt(new, settings=Settings("paper")), model.adapt(new, settings=Settings("paper"))
    np.testing.assert_array_equal(ours.predict_proba(new), theirs.predict_proba(new))


@pytest.mark.parametrize(
    ("options", "stable"),
    [
        ({}, GradientBoostingClassifier(n_estimators=5)),
        ({}, RandomForestClassifier(5, random_state=0)),
        ({"unstable": RandomForestClassifier(5, max_depth=2, random_state=0)}, None),
    ],
    ids=["boosting", "forest", "head"],
)
def test_trees_come_back_only_if_they_are_trusted_both_times(tmp_path, training, new, options, stable):
    model, path = (
        fitted(training, stable, **options).adapt(new, settings=Settings("paper")),
        tmp_path / "model.sfb",
    )
    with pytest.raises(SavedModelError, match="crash the process") as refused:
        model.save(path)
    assert f"pass trusted={[TREE]} to save and to load" in str(refused.value)
    assert not path.exists()
    model.save(path, trusted=[TREE])
    with pytest.raises(SavedModelError, match="trusted="):
        sfboost.load(path)
    loaded = sfboost.load(path, trusted=[TREE])
    np.testing.assert_array_equal(loaded.predict_proba(new), model.predict_proba(new))


@pytest.mark.parametrize("stable", [KNeighborsClassifier(), make_pipeline(TfidfVectorizer(), GaussianNB())])
def test_an_estimator_that_is_not_in_the_list_must_be_named(stable):
    with pytest.raises(SavedModelError, match=r"trusted=\['sklearn\."):
        dump_foreign(CalibratedClassifierCV(stable), (), "stable")


def test_a_table_of_words_and_numbers_comes_back(tmp_path):
    pd = pytest.importorskip("pandas", reason="needs the app extra")
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 600)
    columns = {
        "age": y + rng.normal(size=600),
        "ward": np.where(rng.random(600) < 0.8, y, 1 - y),
        "sex": pd.Categorical(rng.choice(["f", "m"], 600)),
        "drug": rng.choice(["a", "bé", None], 600),
    }
    X = pd.DataFrame(columns).astype({"drug": object})
    X.loc[3, "age"] = np.nan
    words = make_pipeline(
        SimpleImputer(strategy="most_frequent"),
        OneHotEncoder(handle_unknown="infrequent_if_exist", min_frequency=3),
    )
    encode = make_column_transformer(
        (SimpleImputer(add_indicator=True), make_column_selector(dtype_include=["number"])),
        (OneHotEncoder(handle_unknown="ignore", dtype=np.float32), ["sex"]),
        (words, ["drug"]),
    )
    stable = make_pipeline(encode, LogisticRegression())
    model = StableFeatureBoosting(X.columns[[0, 2, 3]], ["ward"], stable=stable)
    labels = np.array(["ill", "well"], dtype=object)[y]
    adapted = model.fit(X, labels, sample_domain=np.repeat([1, 2], 300)).adapt(X)
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


def test_an_old_skops_is_refused(monkeypatch):
    import skops

    monkeypatch.setattr(skops, "__version__", "0.14.0")
    with pytest.raises(ImportError, match=r"has known holes: install 0\.15"):
        load_foreign(skops_io.dumps(GaussianNB()), ())


# -- forged parts -----------------------------------------------------------------------------------------


def forged(estimator, lie=lambda schema: None, changed=()):
    """skops bytes with a lie in the description, and bytes in other members replaced."""
    buffer = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(skops_io.dumps(estimator))) as source,
        zipfile.ZipFile(buffer, "w") as to,
    ):
        schema = json.loads(source.read("schema.json"))
        lie(schema)
        for name in source.namelist():
            content = source.read(name)
            for old, new in changed:
                content = content.replace(old, new)
            to.writestr(name, json.dumps(schema) if name == "schema.json" else content)
    return buffer.getvalue()


class Payload:
    """What pickle would run on loading."""

    def __reduce__(self):
        return (os.system, ("touch executed",))


@pytest.mark.parametrize(
    "lie",
    [
        FunctionTransformer(os.system),
        pytest.param(FunctionTransformer(Payload()), id="payload"),
        FunctionTransformer(eval),
        {"__class__": "system", "__module__": "os", "__loader__": "FunctionNode"},
        {"__class__": "Popen", "__module__": "subprocess"},
        {
            "__class__": "methodcaller",
            "__module__": "operator",
            "__loader__": "OperatorFuncNode",
            "attrs": {},
        },
        {
            "__class__": "Pipeline",
            "__module__": "sklearn.pipeline",
            "__loader__": "ConstructorFromReduceNode",
        },
        {"__loader__": "NoSuchNode"},
        {"__class__": "Anything", "__module__": "antigravity"},
        {"protocol": 99},
    ],
    ids=str,
)
def test_a_payload_is_refused_and_not_run(tmp_path, monkeypatch, forger, lie):
    monkeypatch.chdir(tmp_path)
    data = forged(GaussianNB(), lambda s: s.update(lie)) if isinstance(lie, dict) else forged(lie)
    (tmp_path / "model").write_bytes(forger.put("skops", data).write())
    with pytest.raises(SavedModelError):
        sfboost.load(tmp_path / "model")
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
    assert "antigravity" not in sys.modules


@pytest.mark.parametrize("protocol", [0, 1, -1, True, None, "2", 2.0])
def test_a_part_cannot_choose_an_older_reader(protocol):
    with pytest.raises(SavedModelError, match="old format of skops"):
        load_foreign(forged(GaussianNB(), lambda schema: schema.update(protocol=protocol)), ())


def _one_array_a_thousand_times(schema):
    attributes = schema["content"]["content"]
    attributes["var_"] |= {
        "type": "json",
        "content": [attributes["theta_"] | {"__id__": i + 1} for i in range(1000)],
    }


def _text_in_place_of_numbers(schema):
    """Keys that are checked as text, and made of the type that another entry has."""
    first, second = (schema["content"][name]["key_types"]["content"][0] for name in ("first", "second"))
    second["__id__"] = first["__id__"]


COLLIDING = [i * (2**61 - 1) for i in range(1001)]
BAYES = GaussianNB().fit(np.arange(8.0).reshape(4, 2), [0, 1, 0, 1])


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (skops_io.dumps(GaussianNB(), compression=zipfile.ZIP_DEFLATED), "compressed"),
        (forged(BAYES, changed=[(b"(2, 2), }", b"(9, 9), }")]), r"shape \(9, 9\)"),
        (forged(BAYES, _one_array_a_thousand_times), "more than once"),
        (skops_io.dumps(dict.fromkeys(COLLIDING, 0)), "more than 1000 keys that are no text"),
        (skops_io.dumps(set(COLLIDING)), "more than 1000 keys that are no text"),
        (forged({"first": {1: 0}, "second": {"a": 0}}, _text_in_place_of_numbers), "two things of one"),
        (forged(BAYES, lambda schema: schema.update(__id__=2**61)), "identity that is none"),
        (
            forged(BAYES, lambda schema: schema["content"]["content"]["theta_"].pop("__id__")),
            "identity that is none",
        ),
    ],
)
def test_a_part_that_takes_more_than_it_brings_is_refused(data, said):
    with pytest.raises(SavedModelError, match=said):
        load_foreign(data, ())


def test_a_large_vocabulary_is_no_attack():
    words = {f"word{i}": i for i in range(5000)}
    assert load_foreign(skops_io.dumps(words), ()) == words
    assert load_foreign(skops_io.dumps(set(words)), ()) == set(words)


def _graph(levels, loader):
    """Lists of two things each, the second of which has the identity of the first: 2^levels paths."""
    plain = {"__class__": "list", "__module__": "builtins"}
    node = plain | {"__loader__": "ListNode", "content": [], "__id__": 1}
    for identity in range(2, levels):
        again = node | {"__loader__": loader, "content": {}}
        node = plain | {"__loader__": "ListNode", "content": [node, again], "__id__": identity}
    return node | {"protocol": 2}


@pytest.mark.parametrize("loader", ["SliceNode", "ListNode", "ObjectNode", "CachedNode"])
def test_a_graph_that_is_walked_as_a_tree_is_refused(loader):
    """Each level would double the time; no entry may point at one that says something else."""
    data = forged([], lambda schema: (schema.clear(), schema.update(_graph(40, loader))))
    assert len(data) < 20_000
    with pytest.raises(SavedModelError, match=r"two things of one identity|which no estimator needs"):
        load_foreign(data, ())


def test_no_more_is_walked_than_is_written(monkeypatch):
    """An estimator that is there several times: skops meets its entries by identity, and each once."""
    from skops.io import _audit

    shared = GaussianNB().fit(np.arange(8.0).reshape(4, 2), [0, 1, 0, 1])
    data, walked, ask = skops_io.dumps([[shared, shared], [shared] * 3]), [], _audit.Node.get_unsafe_set
    monkeypatch.setattr(_audit.Node, "get_unsafe_set", lambda self: walked.append(self) or ask(self))
    first, second = load_foreign(data, ())
    assert all(one is first[0] for one in (*first, *second))
    assert (
        0 < len(walked) / 2 <= data.count(b"__loader__")
    )  # asked twice: which types, and whether all are trusted


# -- boosted trees ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def boosted():
    rng = np.random.default_rng(0)
    X, y = rng.random((200, 2)), rng.integers(0, 3, 200)
    return HistGradientBoostingClassifier(max_iter=3).fit(X, y), X


@pytest.mark.parametrize(
    ("field", "value"),
    [("left", 0), ("right", 10**6), ("feature_idx", 2), ("feature_idx", -1), ("is_categorical", 1)],
)
def test_a_boosted_tree_must_lead_down_to_features_that_are_there(boosted, field, value):
    model, X = boosted
    again = load_foreign(dump_foreign(model, (), "model"), ())
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    again._predictors[-1][-1].nodes[field][0] = value
    with pytest.raises(SavedModelError, match="nodes lead nowhere"):
        load_foreign(skops_io.dumps([again]), ())


@pytest.mark.parametrize("lie", [{"n_features_in_": "2"}, {"_in_fit": True}, {"_preprocess_X": None}])
def test_what_checks_the_rows_of_boosted_trees_cannot_be_replaced(boosted, lie):
    model = load_foreign(dump_foreign(boosted[0], (), "model"), ())
    vars(model).update(lie)
    with pytest.raises(SavedModelError, match="is forged"):
        load_foreign(skops_io.dumps({"deep": [model]}), ())
