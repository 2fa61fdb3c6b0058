"""Saving and loading: the manifest, and the calls that users see."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from importlib.metadata import version
from pathlib import Path
from reprlib import repr as shortened
from typing import Any

from sklearn.utils.validation import check_is_fitted

from sfboost.notices import warn
from sfboost.persistence.archive import (
    HEAD,
    SavedModelError,
    SavedModelWarning,
    from_json,
    pack,
    to_json,
    unpack,
)
from sfboost.persistence.foreign import type_names
from sfboost.persistence.registry import KINDS, name_of
from sfboost.persistence.trees import Decoder, ModelEncoder
from sfboost.whole_files import write_whole

FORMAT = "sfboost-model"
#: Version of the format.
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
                from_bytes(data, names, "it could not be loaded again")
        except SavedModelError as error:
            raise SavedModelError(
                f"The model cannot be saved: {str(error).rstrip('.')}."
            ) from error.__cause__
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
    >>> sfboost.load(path).decision_
    'adapted'
    """
    return from_bytes(_bytes_of(path), type_names(trusted), f"{path} is not loaded")


def read_manifest(path: str | Path) -> dict[str, Any]:
    """What a file says of itself: its kind, and the versions that wrote it. Nothing in it is made."""
    data = _bytes_of(path)
    with _told(f"{path} is not read"):
        return _take_manifest(unpack(data))


def to_bytes(model: Any, trusted: Collection[str] = ()) -> bytes:
    """The file of a model."""
    kind = name_of(type(model))
    if kind not in KINDS:
        raise SavedModelError(f"{type(model).__qualname__} is not one of {list(KINDS)}")
    encoder = ModelEncoder(trusted)
    tree = to_json(encoder.encode(model, kind))
    versions = {name: version(name) for name in ("sfboost", "numpy", *sorted(encoder.libraries))}
    manifest = {"format": FORMAT, "schema": SCHEMA, "kind": kind, "versions": versions}
    return pack({_MANIFEST: to_json(manifest), _TREE: tree, **encoder.parts})


def from_bytes(data: bytes, trusted: Collection[str] = (), what: str = "The file is not loaded") -> Any:
    """The model of a file; `what` begins the sentence if there is none."""
    with _told(what):
        parts = unpack(data)
        manifest = _take_manifest(parts)
        tree = from_json(parts.pop(_TREE), _TREE)
        if not isinstance(tree, dict) or tree.get("object") != manifest["kind"]:
            raise SavedModelError(f"it holds something else than the {manifest['kind']} that it says")
        decoder = Decoder(parts, trusted)
        model = decoder.decode(tree)
        if decoder.unused:
            raise SavedModelError(f"nothing in it uses its parts {shortened(list(decoder.unused))}")
    _warn_of_versions(manifest["versions"])
    return model


@contextmanager
def _told(what: str) -> Iterator[None]:
    """Whatever a damaged or forged file makes go wrong is told as one thing."""
    try:
        yield
    except SavedModelError as error:
        raise SavedModelError(f"{what}: {error}.") from error.__cause__
    except ImportError:
        raise
    except Exception as error:
        told = f"{type(error).__name__}: {str(error)[:200]}"
        raise SavedModelError(f"{what}: it is malformed ({told}).") from error


def _bytes_of(path: str | Path) -> bytes:
    """All bytes of a file that begins like ours; of any other, which may have no end, a few."""
    with Path(path).open("rb") as file:
        head = file.read(len(HEAD))
        return head + file.read() if head == HEAD else head


def _take_manifest(parts: dict[str, bytes]) -> dict[str, Any]:
    manifest = from_json(parts.pop(_MANIFEST, b"{}"), _MANIFEST)
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
