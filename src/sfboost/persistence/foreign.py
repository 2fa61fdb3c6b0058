"""scikit-learn estimators outside our own list: through skops, with an explicit list of trusted types.

skops makes an object only of types that it trusts by default (scikit-learn's public estimators, numpy's
numbers), that stand in `TRUSTED`, or that the caller names. Trees are in neither list: their node indices are
followed by compiled code that does not check them, so that a forged tree can crash the process.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from typing import Any

from sklearn.base import BaseEstimator

from sfboost.persistence.archive import read_stored
from sfboost.persistence.arrays import check_header
from sfboost.persistence.errors import SavedModelError
from sfboost.persistence.objects import check_state
from sfboost.persistence.trees import check_keys, parse

#: Types that skops does not trust by itself: private parts of public estimators, in plain Python, that only
#: hold what those were given. Names that this scikit-learn does not have do no harm.
TRUSTED = (
    "numpy.dtype",
    "sklearn.calibration._CalibratedClassifier",
    "sklearn.calibration._SigmoidCalibration",
    "sklearn.calibration._TemperatureScaling",
    "sklearn.compose._column_transformer.make_column_selector",
    "sklearn.metrics._scorer._PassthroughScorer",
    "sklearn.model_selection._split.GroupKFold",
    "sklearn.model_selection._split.KFold",
    "sklearn.model_selection._split.LeaveOneGroupOut",
    "sklearn.model_selection._split.StratifiedGroupKFold",
    "sklearn.model_selection._split.StratifiedKFold",
    "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
    "sklearn.neural_network._stochastic_optimizers.SGDOptimizer",
    "sklearn.utils._bunch.Bunch",
)

# 0.15 closed the last known hole: a bit generator's name could be that of any function of numpy.random.
_OLDEST = (0, 15)
# skops keeps its older readers for older files. Ours never had them, so a file must not ask for them.
_OLDEST_PROTOCOL = 2
_MEMBER = re.compile(r"schema\.json|[0-9a-f-]+\.(npy|npz|bin)")
_TREES = {
    "sklearn.tree._tree.Tree": "trees, forests and GradientBoosting",
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor": "HistGradientBoosting",
}


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
        data = bytes(skops_io.dumps(value))
        _check(data, trusted)
    except SavedModelError as error:
        raise SavedModelError(f"{where}: {error}") from None
    except Exception as error:
        raise SavedModelError(f"{where}, a {type(value).__name__}, cannot be saved ({error})") from error
    return data


def load_foreign(data: bytes, trusted: Collection[str]) -> Any:
    """The estimator of skops bytes, made only if every type in it is trusted."""
    _check(data, trusted)
    value = _skops().loads(data, trusted=[*TRUSTED, *trusted])
    if isinstance(value, BaseEstimator):
        for name, parameter in value.get_params(deep=True).items():
            check_state(type(value), {name.rpartition("__")[2]: parameter})
    return value


def _check(data: bytes, trusted: Collection[str]) -> None:
    members = read_stored(data, _MEMBER)
    skops_io, schema = _skops(), parse(members["schema.json"], "scikit-learn part")
    if type(schema["protocol"]) is not int or schema["protocol"] < _OLDEST_PROTOCOL:
        raise SavedModelError("a scikit-learn part is in an old format of skops")
    for name, content in members.items():
        if name.endswith(".npy"):
            check_header(content)
        if name.endswith(".npz"):
            raise SavedModelError("a scikit-learn part holds a sparse matrix, which is stored compressed")
    entries = list(_entries(schema))
    _check_reads(entries, {name: len(content) for name, content in members.items()})
    _check_keys(entries)
    missing = sorted(set(skops_io.get_untrusted_types(data=data)) - {*TRUSTED, *trusted})
    if missing:
        trees = [_TREES[name] for name in missing if name in _TREES]
        why = (
            f" The node indices of {' and '.join(trees)} are followed without a check, so that a forged "
            "model can crash the process."
        )
        raise SavedModelError(
            f"it needs types that are not trusted by default.{why if trees else ''} If you know where the "
            f"model comes from, pass trusted={missing} to save and to load"
        )


def _entries(schema: Any) -> Iterator[dict[str, Any]]:
    """Every object in the description of a part."""
    stack = [schema]
    while stack:
        entry = stack.pop()
        if isinstance(entry, dict):
            yield entry
            stack.extend(entry.values())
        elif isinstance(entry, list):
            stack.extend(entry)


def _check_reads(entries: Iterable[dict[str, Any]], sizes: dict[str, int]) -> None:
    """Refuse a part that reads one array over and over: skops does so for entries without an identity."""
    seen, left = set(), sum(sizes.values())
    for entry in entries:
        identity = entry.get("__id__") or id(entry)
        if "file" in entry and identity not in seen:
            left -= sizes[entry["file"]]
            seen.add(identity)
    if left < 0:
        raise SavedModelError("a scikit-learn part reads an array more than once")


def _check_keys(entries: Iterable[dict[str, Any]]) -> None:
    """Refuse large dicts and sets of numbers, and key types that skops would take from another entry."""
    kinds: dict[Any, Any] = {}
    for entry in entries:
        loader, content = entry.get("__loader__"), entry.get("content")
        if loader in ("TypeNode", "JsonNode", "ListNode") and "__id__" in entry:
            inside = [item.get("__class__") for item in content] if isinstance(content, list) else content
            kind = (entry.get("__class__"), loader, inside)
            if kinds.setdefault(entry["__id__"], kind) != kind:
                raise SavedModelError("a scikit-learn part has two things of one identity")
        if loader == "SetNode":
            check_keys(None if not _is_text(item) else "" for item in content or ())
        if loader == "DictNode":
            types = entry["key_types"]["content"]
            texts = sum(item["__class__"] in ("str", "str_") for item in types)
            check_keys([None] * (len(content or ()) - texts))


def _is_text(entry: Any) -> bool:
    return entry.get("__loader__") == "JsonNode" and str(entry.get("content")).startswith('"')


def _skops() -> Any:
    try:
        import skops
        import skops.io
    except ImportError:
        raise ImportError(
            "Saving or loading this scikit-learn estimator needs skops. Install it with: "
            "pip install 'sfboost[app]'."
        ) from None
    if tuple(int(part) for part in skops.__version__.split(".")[:2]) < _OLDEST:
        raise ImportError(
            f"skops {skops.__version__} has known holes: install 0.15 or newer (pip install -U skops)."
        )
    return skops.io
