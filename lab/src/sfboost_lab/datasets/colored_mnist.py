"""ColoredMNIST, as in the code behind the published numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfboost.datasets.colored_digits import TEST_AGREEMENTS, colored_dataset
from sfboost.datasets.contract import Dataset, check_seed
from sfboost_lab.datasets.idx import read_idx
from sfboost_lab.datasets.sources import File, fetch

CITATION = (
    "Y. LeCun et al. (1998), Gradient-based learning applied to document recognition; coloured as in "
    "M. Arjovsky et al. (2019), Invariant Risk Minimization, arXiv:1907.02893"
)
LICENCE = "CC BY-SA 3.0"

_MIRRORS = (
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
)


def _mnist(name: str, size: int, sha256: str) -> File:
    return File(f"mnist/{name}", sha256, size, tuple(f"{mirror}{name}.gz" for mirror in _MIRRORS))


FILES = (
    _mnist(
        "train-images-idx3-ubyte",
        47_040_016,
        "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
    ),
    _mnist(
        "train-labels-idx1-ubyte",
        60_008,
        "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
    ),
    _mnist(
        "t10k-images-idx3-ubyte",
        7_840_016,
        "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
    ),
    _mnist(
        "t10k-labels-idx1-ubyte",
        10_008,
        "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
    ),
)


def colored_mnist(
    *,
    view: str = "images",
    size: int = 14,
    agreements: Sequence[float] = (0.9, 0.8),
    test_agreements: Sequence[float] = TEST_AGREEMENTS,
    oracle_agreements: Sequence[float] = (0.5, 0.1),
    label_noise: float = 0.25,
    random_state: int = 0,
    color_state: int | None = None,
    data_dir: Path | None = None,
) -> Dataset:
    """Return ColoredMNIST: y = 1{digit < 5} with label noise, colour tied to y more in some domains.

    The 60 000 training images are permuted by the seed. The last sixth is the validation pool; the others are
    dealt alternately to the training domains. Every test domain is made from the 10 000 test images. The
    grey-oracle of the papers is ``agreements=(0.5, 0.5)``: coloured at random.

    Parameters
    ----------
    view : {"images", "table"}
        (n, 2, size, size) float32 in [0, 1], or grey pixels (stable) and two colour columns (unstable).
    size : {14, 28}
        14 keeps every second pixel of every second line, as the papers do.
    agreements, test_agreements, oracle_agreements : sequence of float
        Pr[colour = label] of each domain.
    label_noise : float
        Probability that a label is flipped.
    random_state : int
        Seed of the permutation of the images.
    color_state : int, optional
        Seed of noise and colours; by default that of the permutation.
    data_dir : Path, optional
        Folder with ``mnist/train-images-idx3-ubyte`` and so on, plain or ``.gz``.

    Examples
    --------
    >>> from sfboost_lab.datasets import load
    >>> load("colored_mnist").domain("train-0.9").X.shape  # doctest: +SKIP
    (25000, 2, 14, 14)
    """
    if size not in (14, 28):
        raise ValueError(f"Got size={size!r}; ColoredMNIST comes in 14 and 28.")
    images, digits, n_first = _read(data_dir)
    step = 28 // size
    grey = np.divide(images[:, ::step, ::step], 255, dtype=np.float32)
    order = np.random.default_rng(check_seed(random_state)).permutation(n_first)
    n_pool = n_first // 6
    rows = order[: n_first - n_pool], order[n_first - n_pool :], np.arange(n_first, len(grey))
    dataset = colored_dataset(
        "colored_mnist",
        grey,
        digits,
        rows,
        agreements={"train": agreements, "oracle": oracle_agreements, "test": test_agreements},
        label_noise=label_noise,
        seed=random_state if color_state is None else color_state,
        view=view,
    )
    return replace(dataset, citation=CITATION, licence=LICENCE)


def _read(data_dir: Path | None) -> tuple[NDArray[Any], NDArray[Any], int]:
    train_images, train_labels, test_images, test_labels = (read_idx(fetch(file, data_dir)) for file in FILES)
    for images, labels in ((train_images, train_labels), (test_images, test_labels)):
        if images.ndim != 3 or images.shape[1:] != (28, 28) or labels.shape != images.shape[:1]:
            raise ValueError(
                f"Got images of shape {images.shape} and labels of shape {labels.shape}; MNIST has "
                "28x28 images with one label each. Check the files."
            )
    digits = np.concatenate([train_labels, test_labels]).astype(np.int64)
    return np.concatenate([train_images, test_images]), digits, len(train_images)
