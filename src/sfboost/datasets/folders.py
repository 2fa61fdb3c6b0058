"""Any folder of pictures laid out as ``root/<domain>/<class>/image``."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from sfboost.datasets.contract import Dataset, Domain, as_names
from sfboost.datasets.images import ImageSequence

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
        The folder.
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
    names = _pictures_in(Path(root))
    places = [tuple(picture.split("/")[-_LEVELS:]) for picture in names]
    domains, classes = (sorted({place[k] for place in places}) for k in (0, 1))
    code = {label: k for k, label in enumerate(classes)}
    labels = np.array([code[place[1]] for place in places], dtype=np.int64)
    belongs = np.array([place[0] for place in places])
    held = as_names(test), as_names(validate)
    made, every = [], ImageSequence(Path(root), names)
    for domain in domains:
        rows = np.flatnonzero(belongs == domain)
        pictures = every[rows]
        made.append(Domain(domain, pictures.resized(size) if size else pictures, labels[rows]))
    return Dataset(
        name=name,
        domains=tuple(made),
        train=tuple(d for d in domains if d not in (*held[0], *held[1])),
        validate=held[1],
        test=held[0],
        classes=tuple(classes),
    )


def _pictures_in(root: Path) -> list[str]:
    if not root.is_dir():
        raise FileNotFoundError(f"{root} is no folder: name one that is there, and unpack an archive first.")
    # The pictures may lie one folder deeper, as when an archive was unpacked with its own top folder.
    for pattern in ("*/*/*", "*/*/*/*"):
        found = sorted(
            path.relative_to(root).as_posix() for path in root.glob(pattern) if _is_picture(path.name)
        )
        if found:
            return found
    raise ValueError(
        f"{root} holds no pictures laid out as <domain>/<class>/<picture>; the endings read are "
        f"{', '.join(PICTURES)}."
    )


def _is_picture(name: str) -> bool:
    return name.lower().endswith(PICTURES) and not name.startswith(".")
