"""Pictures that stay on disk until they are looked at, and folders ``root/<domain>/<class>/image`` of them.

An :class:`ImageSequence` knows the files of its pictures and decodes on demand. What it hands out are bytes
(uint8); floats exist only in the batch a network works on.
"""

from __future__ import annotations

import io
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfboost.datasets.contract import Dataset, Domain, as_names

Bytes = NDArray[np.uint8]
PICTURES = (".jpg", ".jpeg", ".png", ".bmp", ".gif", ".webp", ".tif", ".tiff")


@dataclass(frozen=True, eq=False)
class ImageSequence:
    """A sequence of pictures, decoded when one of them is asked for.

    Parameters
    ----------
    root : Path
        The folder that the pictures lie in.
    names : list of str
        Their files below it, in order.
    size : (height, width), optional
        What every picture is resized to.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from PIL import Image
    >>> from sfboost.datasets import ImageSequence
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in ("a.png", "b.png"):
    ...         Image.new("RGB", (8, 6), "red").save(Path(folder, name))
    ...     pictures = ImageSequence(Path(folder), ["a.png", "b.png"])
    ...     len(pictures), pictures[0].shape, pictures.resized(4)[0].shape, len(pictures[:1])
    (2, (3, 6, 8), (3, 4, 4), 1)
    """

    root: Path
    names: list[str]
    size: tuple[int, int] | None = None

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, index: int | slice | ArrayLike) -> Any:
        """Return one decoded picture (channels, height, width), or the sequence of several."""
        if isinstance(index, (int, np.integer)):
            return decode(self.root / self.names[index], self.size)
        rows = np.arange(len(self))[index if isinstance(index, slice) else np.asarray(index)]
        return ImageSequence(self.root, [self.names[row] for row in rows], self.size)

    def __add__(self, other: ImageSequence) -> ImageSequence:
        if other.root == self.root and other.size == self.size:
            return ImageSequence(self.root, [*self.names, *other.names], self.size)
        raise ValueError("Only pictures of one data set and size can be pooled; load them together.")

    @property
    def files(self) -> list[Path]:
        """Where each picture lies: all that another process needs to decode them."""
        return [self.root / name for name in self.names]

    def resized(self, size: int | tuple[int, int]) -> ImageSequence:
        """Return the same pictures, resized when they are decoded."""
        return ImageSequence(self.root, self.names, (size, size) if isinstance(size, int) else size)


def decode(file: Path, size: tuple[int, int] | None = None) -> Bytes:
    """Return a picture as bytes of shape (3, height, width).

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from PIL import Image
    >>> from sfboost.datasets.images import decode
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Image.new("L", (5, 4), 7).save(Path(folder, "grey.png"))
    ...     decode(Path(folder, "grey.png")).shape
    (3, 4, 5)
    """
    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError as error:
        raise ImportError("Reading pictures needs pillow: pip install 'sfboost[data]'.") from error
    try:
        with Image.open(io.BytesIO(file.read_bytes())) as opened:
            image = opened.convert("RGB")
    except (UnidentifiedImageError, Image.DecompressionBombError, OSError, SyntaxError) as error:
        why = "of no known format" if isinstance(error, UnidentifiedImageError) else str(error)
        raise ValueError(
            f"{file} cannot be read as a picture: {why}. Get the file again, or take it out of the folder."
        ) from error
    if size is not None:
        image = image.resize((size[1], size[0]), Image.Resampling.BILINEAR)
    return np.ascontiguousarray(np.asarray(image, dtype=np.uint8).transpose(2, 0, 1))


def decode_all(files: list[Path], size: tuple[int, int] | None) -> Bytes:
    """Return pictures of one size as one array (rows, 3, height, width).

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from PIL import Image
    >>> from sfboost.datasets.images import decode_all
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Image.new("RGB", (5, 4)).save(Path(folder, "a.png"))
    ...     decode_all([Path(folder, "a.png")] * 2, (8, 8)).shape
    (2, 3, 8, 8)
    """
    made = [decode(file, size) for file in files]
    shapes = {array.shape for array in made}
    if len(shapes) > 1:
        raise ValueError(
            f"A batch has pictures of {len(shapes)} sizes, such as {sorted(shapes)[:2]}; "
            "choose one size with resized(size)."
        )
    return np.stack(made)


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
    places = [tuple(picture.split("/")[-3:]) for picture in names]
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
