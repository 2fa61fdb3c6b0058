"""Pictures that stay on disk until they are looked at.

An :class:`ImageSequence` knows where the encoded bytes of each picture lie (a file, or a stretch of a tar)
and decodes on demand, one batch at a time, in worker processes when asked. What it hands out are bytes
(uint8); floats exist only in the batch a network works on.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike, NDArray

Bytes = NDArray[np.uint8]


@dataclass(frozen=True)
class Picture:
    """Where the encoded bytes of one picture lie.

    Examples
    --------
    >>> from pathlib import Path
    >>> from sfboost.datasets.images import Picture
    >>> Picture(Path("a.jpg")).offset
    0
    """

    path: Path
    offset: int = 0
    size: int = -1

    def read(self) -> bytes:
        """Return the encoded bytes."""
        with self.path.open("rb") as source:
            source.seek(self.offset)
            return source.read(self.size)


@dataclass(frozen=True, eq=False)
class PictureStore:
    """Names of pictures and where they lie: below a folder, or at offsets of a tar.

    Examples
    --------
    >>> from pathlib import Path
    >>> from sfboost.datasets.images import PictureStore
    >>> PictureStore(Path("photos"), ["dog/1.jpg"]).picture(0).path.as_posix()
    'photos/dog/1.jpg'
    """

    root: Path
    names: list[str]
    offsets: NDArray[np.int64] | None = None
    sizes: NDArray[np.int64] | None = None

    def picture(self, row: int) -> Picture:
        """Return where one picture lies."""
        if self.offsets is None or self.sizes is None:
            return Picture(self.root / self.names[row])
        return Picture(self.root, int(self.offsets[row]), int(self.sizes[row]))


@dataclass(frozen=True, eq=False)
class ImageSequence:
    """A sequence of pictures, decoded when one of them is asked for.

    Parameters
    ----------
    store : PictureStore
        Where the pictures lie.
    rows : ndarray of int
        Which of them, in which order.
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
    ...     pictures = ImageSequence.of_files(Path(folder), ["a.png", "b.png"])
    ...     len(pictures), pictures[0].shape, pictures.resized(4)[0].shape, len(pictures[:1])
    (2, (3, 6, 8), (3, 4, 4), 1)
    """

    store: PictureStore
    rows: NDArray[np.intp]
    size: tuple[int, int] | None = None

    @classmethod
    def of_files(cls, root: Path, names: Iterable[str]) -> ImageSequence:
        """Return the sequence of these files below a folder."""
        store = PictureStore(root, list(names))
        return cls(store, np.arange(len(store.names)))

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int | slice | ArrayLike) -> Any:
        """Return one decoded picture (channels, height, width), or the sequence of several."""
        if isinstance(index, (int, np.integer)):
            return decode(self.store.picture(int(self.rows[index])), self.size)
        rows = self.rows[index] if isinstance(index, slice) else self.rows[np.asarray(index)]
        return ImageSequence(self.store, rows, self.size)

    def __add__(self, other: ImageSequence) -> ImageSequence:
        if other.store is self.store and other.size == self.size:
            return ImageSequence(self.store, np.concatenate([self.rows, other.rows]), self.size)
        raise ValueError("Only pictures of one data set and size can be pooled; load them together.")

    @property
    def names(self) -> list[str]:
        """The name of each picture within its data set."""
        return [self.store.names[row] for row in self.rows]

    def encoded(self, index: int) -> bytes:
        """Return the bytes of one picture as they lie on disk."""
        return self.store.picture(int(self.rows[index])).read()

    def places(self) -> list[Picture]:
        """Return where each picture lies: all that another process needs to decode them."""
        return [self.store.picture(int(row)) for row in self.rows]

    def resized(self, size: int | tuple[int, int]) -> ImageSequence:
        """Return the same pictures, resized when they are decoded."""
        return ImageSequence(self.store, self.rows, (size, size) if isinstance(size, int) else size)

    def batches(self, batch_size: int = 64, *, n_jobs: int = 1) -> Iterator[Bytes]:
        """Yield decoded batches (rows, channels, height, width) in order, decoded by ``n_jobs`` processes."""
        parts = (self[start : start + batch_size] for start in range(0, len(self), batch_size))
        return decoded(parts, n_jobs=n_jobs)


def decoded(parts: Iterable[ImageSequence], *, n_jobs: int = 1) -> Iterator[Bytes]:
    """Yield each part as one array, in order; only a few parts are in memory at a time.

    Examples
    --------
    >>> from sfboost.datasets.images import decoded
    >>> list(decoded([]))
    []
    """
    # A task carries the places of its pictures, not the whole store: that may hold half a million names.
    tasks = (delayed(decode_all)(part.places(), part.size) for part in parts)
    results = Parallel(n_jobs=n_jobs, return_as="generator", pre_dispatch="2*n_jobs", batch_size=1)(tasks)
    try:
        for result in results:  # noqa: UP028 - not `yield from`: that would close `results` before we can hush it
            yield result
    finally:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # whoever stops early knows that tasks are cancelled
            results.close()


def decode(picture: Picture, size: tuple[int, int] | None = None) -> Bytes:
    """Return a picture as bytes of shape (3, height, width).

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from PIL import Image
    >>> from sfboost.datasets.images import Picture, decode
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Image.new("L", (5, 4), 7).save(Path(folder, "grey.png"))
    ...     decode(Picture(Path(folder, "grey.png"))).shape
    (3, 4, 5)
    """
    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError as error:
        raise ImportError("Reading pictures needs pillow: pip install 'sfboost[data]'.") from error
    try:
        with Image.open(io.BytesIO(picture.read())) as opened:
            image = opened.convert("RGB")
    except (UnidentifiedImageError, Image.DecompressionBombError, OSError, SyntaxError) as error:
        raise ValueError(
            f"{picture.path} (at byte {picture.offset}) cannot be read as a picture: {error}. "
            "Get the file again."
        ) from error
    if size is not None:
        image = image.resize((size[1], size[0]), Image.Resampling.BILINEAR)
    return np.ascontiguousarray(np.asarray(image, dtype=np.uint8).transpose(2, 0, 1))


def decode_all(pictures: list[Picture], size: tuple[int, int] | None) -> Bytes:
    """Return pictures of one size as one array (rows, 3, height, width).

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from PIL import Image
    >>> from sfboost.datasets.images import Picture, decode_all
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Image.new("RGB", (5, 4)).save(Path(folder, "a.png"))
    ...     decode_all([Picture(Path(folder, "a.png"))] * 2, (8, 8)).shape
    (2, 3, 8, 8)
    """
    made = [decode(picture, size) for picture in pictures]
    shapes = {array.shape for array in made}
    if len(shapes) > 1:
        raise ValueError(
            f"A batch has pictures of {len(shapes)} sizes, such as {sorted(shapes)[:2]}; "
            "choose one size with resized(size)."
        )
    return np.stack(made)
