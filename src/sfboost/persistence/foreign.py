"""scikit-learn estimators outside our own list: through skops, of a closed list of types.

A part is a zip whose `schema.json` describes each object by an entry: its class, what loads it (a node of
skops), and what is in it. Before skops makes anything, every entry is looked at here; after it, the nodes of
boosted trees are, because compiled code follows them without looking. Those of other trees are not looked at:
they need the caller's word (`trusted`), and so does any other type.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from io import BytesIO
from itertools import chain
from typing import Any
from zipfile import ZipFile, ZipInfo

import numpy as np

from sfboost.persistence.archive import SavedModelError, check_header, check_keys, from_json, read_stored

#: By module: the estimators that a part may hold, and what they keep.
ESTIMATORS = {
    "numpy": "dtype",
    "sklearn._loss.link": "HalfLogitLink IdentityLink Interval LogLink LogitLink MultinomialLogit",
    "sklearn._loss.loss": "HalfBinomialLoss HalfMultinomialLoss",
    "sklearn.calibration": """CalibratedClassifierCV _CalibratedClassifier _SigmoidCalibration
        _TemperatureScaling""",
    "sklearn.compose._column_transformer": "ColumnTransformer make_column_selector",
    "sklearn.decomposition._pca": "PCA",
    "sklearn.discriminant_analysis": "LinearDiscriminantAnalysis QuadraticDiscriminantAnalysis",
    "sklearn.dummy": "DummyClassifier",
    "sklearn.ensemble._forest": "ExtraTreesClassifier RandomForestClassifier",
    "sklearn.ensemble._gb": "GradientBoostingClassifier",
    "sklearn.ensemble._hist_gradient_boosting.binning": "_BinMapper",
    "sklearn.ensemble._hist_gradient_boosting.gradient_boosting": "HistGradientBoostingClassifier",
    "sklearn.ensemble._hist_gradient_boosting.predictor": "TreePredictor",
    "sklearn.ensemble._voting": "VotingClassifier",
    "sklearn.frozen._frozen": "FrozenEstimator",
    "sklearn.impute._base": "MissingIndicator SimpleImputer",
    "sklearn.isotonic": "IsotonicRegression",
    "sklearn.linear_model._logistic": "LogisticRegression LogisticRegressionCV",
    "sklearn.linear_model._ridge": "RidgeClassifier RidgeClassifierCV",
    "sklearn.linear_model._stochastic_gradient": "SGDClassifier",
    "sklearn.metrics._scorer": "_PassthroughScorer",
    "sklearn.model_selection._search": "GridSearchCV",
    "sklearn.model_selection._split": """GroupKFold KFold LeaveOneGroupOut StratifiedGroupKFold
        StratifiedKFold""",
    "sklearn.naive_bayes": "BernoulliNB ComplementNB GaussianNB MultinomialNB",
    "sklearn.neural_network._multilayer_perceptron": "MLPClassifier",
    "sklearn.neural_network._stochastic_optimizers": "AdamOptimizer SGDOptimizer",
    "sklearn.pipeline": "FeatureUnion Pipeline",
    "sklearn.preprocessing._data": """MaxAbsScaler MinMaxScaler Normalizer
        PowerTransformer QuantileTransformer RobustScaler StandardScaler""",
    "sklearn.preprocessing._discretization": "KBinsDiscretizer",
    "sklearn.preprocessing._encoders": "OneHotEncoder OrdinalEncoder",
    "sklearn.preprocessing._function_transformer": "FunctionTransformer",
    "sklearn.preprocessing._label": "LabelBinarizer LabelEncoder",
    "sklearn.preprocessing._polynomial": "PolynomialFeatures SplineTransformer",
    "sklearn.preprocessing._target_encoder": "TargetEncoder",
    "sklearn.svm._classes": "LinearSVC",
    "sklearn.tree._classes": """DecisionTreeClassifier DecisionTreeRegressor ExtraTreeClassifier
        ExtraTreeRegressor""",
    "sklearn.utils._bunch": "Bunch",
}
#: Their full names. Names that this scikit-learn does not have do no harm.
ALLOWED = frozenset(f"{module}.{name}" for module, names in ESTIMATORS.items() for name in names.split())
_TREE = "sklearn.tree._tree.Tree"
# What loads an entry. skops has more: nodes that call methods, operators and constructors.
_LOADERS = (
    *("DTypeNode", "DictNode", "FunctionNode", "JsonNode", "ListNode", "LossNode", "MaskedArrayNode"),
    *("NdArrayNode", "ObjectNode", "RandomGeneratorNode", "RandomStateNode", "SetNode", "SliceNode"),
    *("TreeNode", "TupleNode", "TypeNode"),
)

# 0.15 closed the last known hole: a bit generator's name could be that of any function of numpy.random.
_OLDEST = (0, 15)
# skops keeps its older readers for older files. Ours never had them, so a file must not ask for them.
_OLDEST_PROTOCOL = 2
_MEMBER = re.compile(r"schema\.json|[0-9a-f-]+\.(npy|npz|bin)")
# Identities are addresses. Larger numbers could all share one hash, and n such keys take n² steps.
_LARGEST_IDENTITY = 2**61 - 2


def type_names(types: Iterable[Any]) -> tuple[str, ...]:
    """Full names of types given by name or as classes.

    Examples
    --------
    >>> type_names(["sklearn.tree._tree.Tree", dict])
    ('sklearn.tree._tree.Tree', 'builtins.dict')
    """
    if isinstance(types, str | bool) or not isinstance(types, Iterable):
        raise TypeError(f"trusted={types!r} must be a list of types or of their full names.")
    return tuple(t if isinstance(t, str) else f"{t.__module__}.{t.__qualname__}" for t in types)


def dump_foreign(value: Any, trusted: Collection[str], where: str) -> bytes:
    """Bytes by skops of an estimator, refused if it could not be loaded with the same `trusted`."""
    skops_io = _skops()
    try:
        data = _canonical(bytes(skops_io.dumps(value)))
        _check(data, trusted)
    except SavedModelError as error:
        raise SavedModelError(f"{where}: {error}") from None
    except Exception as error:
        raise SavedModelError(f"{where}, a {type(value).__name__}, cannot be saved ({error})") from error
    return data


def _canonical(data: bytes) -> bytes:
    """The same part with identities and names of arrays in order: equal estimators are equal bytes."""
    with ZipFile(BytesIO(data)) as parts:
        members = {name: parts.read(name) for name in parts.namelist()}
    order: dict[str, str] = {}

    def renamed(found: re.Match[str]) -> str:
        return order.setdefault(found[0], str(len(order) + 1) + found[0][len(found[1]) :])

    schema = members.pop("schema.json").decode()
    schema = re.sub(r'(?<="__id__": )(\d+)', renamed, schema)
    schema = re.sub(r'(?<=")([0-9a-f-]+)\.(?:npy|npz|bin)(?=")', renamed, schema)
    made = BytesIO()
    with ZipFile(made, "w") as parts:
        for name in sorted(members, key=lambda name: int(order[name].partition(".")[0])):
            parts.writestr(ZipInfo(order[name]), members[name])
        parts.writestr(ZipInfo("schema.json"), schema)
    return made.getvalue()


def load_foreign(data: bytes, trusted: Collection[str]) -> Any:
    """The estimator of skops bytes, made only if every type in it is allowed."""
    _check(data, trusted)
    value = _skops().loads(data, trusted=[*ALLOWED, *trusted])
    _check_boosted_trees(value)
    return value


# -- before anything is made -----------------------------------------------------------------------------


def _check(data: bytes, trusted: Collection[str]) -> None:
    members = read_stored(data, _MEMBER)
    schema = from_json(members["schema.json"], "scikit-learn part")
    if type(schema["protocol"]) is not int or schema["protocol"] < _OLDEST_PROTOCOL:
        raise SavedModelError("a scikit-learn part is in an old format of skops")
    for name, content in members.items():
        if name.endswith(".npy"):
            check_header(content)
        if name.endswith(".npz"):
            raise SavedModelError("a scikit-learn part holds a sparse matrix, which is stored compressed")
    made = _check_entries(
        schema, {name: hashlib.sha256(content).digest() for name, content in members.items()}
    )
    _refuse_types({*made, *_skops().get_untrusted_types(data=data)} - {*ALLOWED, *trusted})


def _check_entry(entry: dict[str, Any]) -> None:
    """Refuse unknown loaders, large dicts and sets of numbers, and caches of pickles."""
    loader, content = entry.get("__loader__"), entry.get("content")
    if "__loader__" in entry and loader not in _LOADERS:
        raise SavedModelError(f"a scikit-learn part holds a {loader}, which no estimator needs")
    if loader == "SetNode":
        check_keys(None if not _is_text(item) else "" for item in content or ())
    if loader == "DictNode":
        types = entry["key_types"]["content"]
        texts = sum(item["__class__"] in ("str", "str_") for item in types)
        check_keys([None] * (len(content or ()) - texts))
        if content and content.get("memory", {}).get("content", "null") != "null":
            raise SavedModelError(
                "an estimator has memory=, a cache of pickles, which scikit-learn would unpickle: set "
                "memory=None"
            )


def _is_text(entry: Any) -> bool:
    return entry.get("__loader__") == "JsonNode" and str(entry.get("content")).startswith('"')


def _check_entries(schema: Any, files: Mapping[str, bytes]) -> set[str]:
    """Look at each entry of a description; return the types that are made without their constructors.

    Refused are two things of one identity, and two identities of one array. skops takes an entry whose
    identity it has met for the first one, whatever it says. Where all entries of one identity are equal but
    for identities, what is walked is what is written: never more than the file.
    """
    known: dict[int, bytes] = {}
    readers: dict[str, int] = {}
    made = set()

    def digest(value: Any, key: str = "") -> bytes:
        parts = value
        if isinstance(value, dict):
            _check_entry(value)
            parts = [(name, digest(item, name)) for name, item in value.items() if name != "__id__"]
        elif isinstance(value, list):
            parts = [digest(item) for item in value]
        elif key == "file":
            parts = files[value]
        found = hashlib.blake2b(repr(parts).encode("utf-8", "surrogatepass"), digest_size=16).digest()
        if isinstance(value, dict) and ("__id__" in value or isinstance(value.get("file"), str)):
            identity = value.get("__id__")
            if type(identity) is not int or not 0 < identity <= _LARGEST_IDENTITY:
                raise SavedModelError("a scikit-learn part has an identity that is none")
            if known.setdefault(identity, found) != found:
                raise SavedModelError("a scikit-learn part has two things of one identity")
            if "file" in value and readers.setdefault(str(value["file"]), identity) != identity:
                raise SavedModelError("a scikit-learn part reads an array more than once")
        if isinstance(value, dict) and value.get("__loader__") == "ObjectNode":
            made.add(f"{value['__module__']}.{value['__class__']}")
        return found

    digest(schema)
    return made


def _refuse_types(missing: set[str]) -> None:
    if not missing:
        return
    why = ""
    if _TREE in missing:
        why = (
            " The node indices of trees, forests and GradientBoosting are followed without a check, so that "
            "a forged model can crash the process."
        )
    raise SavedModelError(
        f"it needs types that are not trusted by default.{why} If you know where the model comes from, pass "
        f"trusted={sorted(missing)} to save and to load"
    )


# -- before anything is used -----------------------------------------------------------------------------


def _check_boosted_trees(value: Any) -> None:
    """Refuse a `HistGradientBoostingClassifier` whose trees lead anywhere but down, to features it checks."""
    for model in _parts_of(value):
        if type(model).__name__ != "HistGradientBoostingClassifier" or not hasattr(model, "_predictors"):
            continue  # not fitted
        shadowed = [name for name in vars(model) if callable(getattr(type(model), name, None))]
        unusual = model._preprocessor is not None or getattr(model, "_in_fit", False)
        if shadowed or unusual or type(model.n_features_in_) is not int:
            raise SavedModelError(
                "a HistGradientBoostingClassifier has categorical features, or is forged: encode them in a "
                "step before it"
            )
        for tree in chain.from_iterable(model._predictors):
            _check_nodes(tree.nodes, model.n_features_in_)


def _check_nodes(nodes: Any, n_features: int) -> None:
    inner = nodes["is_leaf"] == 0
    place, split = np.flatnonzero(inner), nodes[inner]
    down = (split["left"] > place) & (split["right"] > place)
    inside = np.maximum(split["left"], split["right"]) < len(nodes)
    known = (split["feature_idx"] >= 0) & (split["feature_idx"] < n_features) & (split["is_categorical"] == 0)
    if nodes.ndim != 1 or not len(nodes) or not (down & inside & known).all():
        raise SavedModelError("a HistGradientBoostingClassifier has a tree whose nodes lead nowhere")


def _parts_of(value: Any) -> Iterator[Any]:
    """The object and every one in it, each once."""
    stack, seen = [value], set()
    while stack:
        part = stack.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        yield part
        if isinstance(part, Mapping):
            stack.extend(part.values())
        elif isinstance(part, list | tuple | set):
            stack.extend(part)
        elif isinstance(part, np.ndarray):
            stack.extend(part.ravel().tolist() if part.dtype == object else ())
        elif hasattr(part, "__dict__") and not isinstance(part, type):
            stack.extend(vars(part).values())


def _skops() -> Any:
    import skops
    import skops.io

    if tuple(int(part) for part in skops.__version__.split(".")[:2]) < _OLDEST:
        raise ImportError(
            f"skops {skops.__version__} has known holes: install 0.15 or newer (pip install -U skops)."
        )
    return skops.io
