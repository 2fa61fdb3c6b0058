"""Saving and loading: the manifest, and the two calls that users see."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from contextlib import AbstractContextManager, nullcontext
from importlib.metadata import version
from pathlib import Path
from reprlib import repr as shortened
from typing import Any

from sklearn.utils.validation import check_is_fitted

from sfboost.notices import warn
from sfboost.persistence.archive import HEAD, pack, unpack
from sfboost.persistence.decode import Decoder
from sfboost.persistence.encode import ModelEncoder
from sfboost.persistence.errors import SavedModelError, SavedModelWarning
from sfboost.persistence.foreign import type_names
from sfboost.persistence.registry import KINDS, name_of
from sfboost.persistence.trees import parse
from sfboost.whole_files import write_whole

FORMAT = "sfboost-model"
#: Version of the format. A reader knows this one and all before it.
SCHEMA = 1
_MANIFEST, _TREE = "manifest.json", "model.json"


class Savable:
    """Gives a model `save`."""

    def save(self, path: str | Path, *, trusted: Collection[Any] = ()) -> None:
        """Save to one file, for `sfboost.load`. Nothing in it can run code.

        Parameters
        ----------
        path : path
            Usually ends in ``.sfb``. An existing file is replaced whole, or not at all, and keeps its mode;
            a link is followed.
        trusted : list of types or of their full names
            What may be saved beyond the default list; `load` has to be told the same. See
            ``docs/saved-models.md``.
        """
        if hasattr(self, "fit"):
            name = type(self).__name__
            check_is_fitted(self, msg=f"This {name} is not fitted yet: call fit before save.")
        names = type_names(trusted)
        try:
            data = to_bytes(self, names)
            with self._with_own():
                from_bytes(data, names)  # what is saved can be loaded
        except SavedModelError as error:
            raise SavedModelError(f"The model cannot be saved: {error}.") from error.__cause__
        write_whole(path, data)

    def _with_own(self) -> AbstractContextManager[Any]:
        """What of the user's own must be at hand to load this again: that of the model within."""
        model = getattr(self, "model", None)
        return model._with_own() if isinstance(model, Savable) else nullcontext()


def load(path: str | Path, *, trusted: Collection[Any] = ()) -> Any:
    """Load a model that `save` wrote.

    Parameters
    ----------
    path : path
    trusted : list of types or of their full names
        Types beyond the default list that the file may hold. Name only what you know.

    Returns
    -------
    The model, which predicts as it did, bit for bit.

    Examples
    --------
    >>> import tempfile, pathlib, numpy as np, sfboost
    >>> y = np.tile([0, 1], 500)
    >>> right = np.random.default_rng(0).random(1000) < 0.8
    >>> stable = np.where(y == right, 0.8, 0.2)
    >>> adaptation = sfboost.adapt(stable, y[:, None] + 0.1)
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "adaptation.sfb"
    >>> adaptation.save(path)
    >>> sfboost.load(path).decision.kind
    'adapted'
    """
    names = type_names(trusted)
    try:
        return from_bytes(_bytes_of(path), names)
    except SavedModelError as error:
        raise SavedModelError(f"{path} is not loaded: {error}.") from error.__cause__


def read_manifest(path: str | Path) -> dict[str, Any]:
    """What a file says of itself: its kind, and the versions that wrote it. Nothing in it is made."""
    try:
        return _take_manifest(unpack(_bytes_of(path)))
    except SavedModelError as error:
        raise SavedModelError(f"{path} is not read: {error}.") from error.__cause__


def to_bytes(model: Any, trusted: Collection[str] = ()) -> bytes:
    """The file of a model."""
    kind = name_of(type(model))
    if kind not in KINDS:
        raise SavedModelError(f"{type(model).__qualname__} is not one of {list(KINDS)}")
    encoder = ModelEncoder(trusted)
    tree = _to_json(encoder.encode(model, kind))
    parts = {_TREE: tree, **encoder.parts}
    manifest = {
        "format": FORMAT,
        "schema": SCHEMA,
        "kind": kind,
        "versions": {name: version(name) for name in ("sfboost", "numpy", *sorted(encoder.libraries))},
        "parts": _listed(parts),
    }
    return pack({_MANIFEST: _to_json(manifest), **parts})


def from_bytes(data: bytes, trusted: Collection[str] = ()) -> Any:
    """The model of a file."""
    try:
        parts = unpack(data)
        manifest = _take_manifest(parts)
        tree = parse(parts.pop(_TREE), _TREE)
        if not isinstance(tree, dict) or tree.get("object") != manifest["kind"]:
            raise SavedModelError(f"it holds something else than the {manifest['kind']} that it says")
        decoder = Decoder(parts, trusted)
        model = decoder.decode(tree)
        if decoder.unused:
            raise SavedModelError(f"nothing in it uses its parts {shortened(list(decoder.unused))}")
    except (SavedModelError, ImportError):
        raise
    except Exception as error:  # whatever a forged file makes go wrong is told as one thing
        raise SavedModelError(f"it is malformed ({type(error).__name__}: {str(error)[:200]})") from error
    _warn_of_versions(manifest["versions"])
    return model


def _bytes_of(path: str | Path) -> bytes:
    """All bytes of a file that begins like ours; of any other, which may have no end, a few."""
    with Path(path).open("rb") as file:
        head = file.read(len(HEAD))
        return head + file.read() if head == HEAD else head


def _take_manifest(parts: dict[str, bytes]) -> dict[str, Any]:
    manifest = parse(parts.pop(_MANIFEST, b"{}"), _MANIFEST)
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise SavedModelError("it is no saved model: there is no manifest of sfboost in it")
    schema, written = manifest["schema"], manifest["versions"]
    if type(schema) is not int or schema < 1:
        raise SavedModelError(f"its format version is {shortened(schema)}")
    if not isinstance(written, dict) or not all(isinstance(number, str) for number in written.values()):
        raise SavedModelError("it does not say which versions wrote it")
    if schema > SCHEMA:
        raise SavedModelError(
            f"it has format {schema}, written by sfboost {written.get('sfboost')}, and this version reads "
            f"formats up to {SCHEMA}: install a newer sfboost"
        )
    if manifest["kind"] not in KINDS:
        raise SavedModelError(f"it holds a {shortened(manifest['kind'])}, which this version does not know")
    listed = manifest["parts"]
    found = _listed(parts)
    if listed != found:
        wrong = sorted(name for name in {*listed, *found} if listed.get(name) != found.get(name))
        raise SavedModelError(f"its parts {shortened(wrong)} are not those that its manifest lists")
    return manifest


def _warn_of_versions(written: Mapping[str, str]) -> None:
    """Between minor versions scikit-learn promises nothing; our own types are ours to keep."""
    then = written.get("scikit-learn")
    if then is None:
        return
    now = version("scikit-learn")
    if then.split(".")[:2] != now.split(".")[:2]:
        warn(
            f"The model was saved with scikit-learn {then} and is loaded with {now}: scikit-learn does not "
            "promise the same predictions. Check some, or fit again.",
            SavedModelWarning,
        )


def _listed(parts: Mapping[str, bytes]) -> dict[str, dict[str, Any]]:
    return {
        name: {"sha256": hashlib.sha256(part).hexdigest(), "size": len(part)} for name, part in parts.items()
    }


def _to_json(tree: Any) -> bytes:
    return json.dumps(tree, allow_nan=False, separators=(",", ":")).encode("ascii")
