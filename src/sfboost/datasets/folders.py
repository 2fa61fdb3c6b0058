"""Any ``root/<domain>/<class>/image``: a folder, a tar read in place, or an archive that is unpacked once."""

from __future__ import annotations

import tarfile
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from sfboost.datasets.archives import Member, UnsafeArchiveError, content_hash, members, unpack
from sfboost.datasets.cache import cache_folder
from sfboost.datasets.contract import Dataset, Domain, as_names
from sfboost.datasets.images import ImageSequence, PictureStore

PICTURES = (".jpg", ".jpeg", ".png", ".bmp", ".gif", ".webp", ".tif", ".tiff")
_LEVELS = 3


def image_folder(
    root: Path,
    *,
    name: str = "pictures",
    test: str | Iterable[str] = (),
    validate: str | Iterable[str] = (),
    size: int | None = None,
) -> Dataset:
    """Return a data set of pictures laid out as ``root/<domain>/<class>/image``.

    Parameters
    ----------
    root : Path
        A folder, a plain tar (read in place), or a zip or packed tar (unpacked into the cache once).
    name : str
        Name of the data set.
    test, validate : str or iterable of str
        Domains of these roles; all others train.
    size : int, optional
        What every picture is resized to, height and width.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from PIL import Image
    >>> from sfboost.datasets import image_folder
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for place in ("day/cat", "day/dog", "night/cat"):
    ...         Path(folder, place).mkdir(parents=True)
    ...         Image.new("RGB", (4, 4)).save(Path(folder, place, "1.png"))
    ...     pictures = image_folder(Path(folder), test="night")
    ...     pictures.train, pictures.classes, pictures.domain("day").y
    (('day',), ('cat', 'dog'), array([0, 1]))
    """
    store = _store(Path(root))
    places = [tuple(picture.split("/")[-_LEVELS:]) for picture in store.names]
    domains, classes = (sorted({place[k] for place in places}) for k in (0, 1))
    code = {label: k for k, label in enumerate(classes)}
    labels = np.array([code[place[1]] for place in places], dtype=np.int64)
    belongs = np.array([place[0] for place in places])
    held = as_names(test), as_names(validate)
    made = []
    for domain in domains:
        rows = np.flatnonzero(belongs == domain)
        pictures = ImageSequence(store, rows)
        made.append(Domain(domain, pictures.resized(size) if size else pictures, labels[rows]))
    return Dataset(
        name=name,
        domains=tuple(made),
        train=tuple(d for d in domains if d not in (*held[0], *held[1])),
        validate=held[1],
        test=held[0],
        classes=tuple(classes),
    )


def unpacked(archive: Path) -> Path:
    """Return the folder an archive was unpacked into, doing so the first time.

    The folder is named by the content of the archive, so a changed archive is never mistaken for the old one.

    Examples
    --------
    >>> import os, tempfile, zipfile
    >>> from pathlib import Path
    >>> from sfboost.datasets.archives import unpack  # what this function calls
    >>> unpack.__name__
    'unpack'
    """
    target = cache_folder() / "unpacked" / content_hash(archive)[:32]
    return target if target.is_dir() else unpack(archive, target)


def _store(root: Path) -> PictureStore:
    if root.is_dir():
        names = _in_folder(root)
        store = PictureStore(root, names)
    elif root.is_file() and _is_plain_tar(root):
        found = _in_tar(root)
        names = [member.name for member in found]
        offsets = np.array([member.offset for member in found], dtype=np.int64)
        store = PictureStore(
            root, names, offsets, np.array([member.size for member in found], dtype=np.int64)
        )
    elif root.is_file():
        return _store(unpacked(root))
    else:
        raise FileNotFoundError(f"{root} is neither a folder nor an archive; name one that is there.")
    if not names:
        raise ValueError(
            f"{root} holds no pictures laid out as <domain>/<class>/<picture>; the endings read are "
            f"{', '.join(PICTURES)}."
        )
    return store


def _in_folder(root: Path) -> list[str]:
    # The pictures may lie one folder deeper, as when an archive was unpacked with its own top folder.
    for pattern in ("*/*/*", "*/*/*/*"):
        found = sorted(
            path.relative_to(root).as_posix() for path in root.glob(pattern) if _is_picture(path.name)
        )
        if found:
            return found
    return []


def _in_tar(path: Path) -> list[Member]:
    found = [m for m in members(path) if _is_picture(m.name) and m.name.count("/") >= _LEVELS - 1]
    return sorted(found, key=lambda member: member.name)


def _is_picture(name: str) -> bool:
    return name.lower().endswith(PICTURES) and not name.rsplit("/", 1)[-1].startswith(".")


def _is_plain_tar(path: Path) -> bool:
    try:
        with tarfile.open(path, "r:"):
            return True
    except tarfile.ReadError:
        return False
    except tarfile.TarError as error:
        raise UnsafeArchiveError(f"{path.name} cannot be read as a tar archive: {error}") from error
