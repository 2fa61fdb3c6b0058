"""ColoredDigits: scikit-learn's 1797 real handwritten digits, coloured. Needs no file and no network.

The recipe is that of the IRM and QRM code, for any images of digits: y = 1{digit < 5} is flipped with
probability ``label_noise``; the colour equals the noisy label with probability ``agreement``; the image is
written into the channel of its colour and the other channel is zero.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits

from sfboost.datasets.contract import Dataset, Domain, check_seed, unique_names

CITATION = (
    "E. Alpaydin and C. Kaynak (1998), Optical Recognition of Handwritten Digits, UCI; coloured as in "
    "M. Arjovsky et al. (2019), Invariant Risk Minimization, arXiv:1907.02893"
)
LICENCE = "CC BY 4.0"
COLORS = ("red", "green")
CLASSES = ("5 to 9", "0 to 4")
TEST_AGREEMENTS = tuple(round(1 - k / 10, 1) for k in range(11))


def colored_digits(
    *,
    view: str = "images",
    agreements: Sequence[float] = (0.9, 0.8),
    test_agreements: Sequence[float] = TEST_AGREEMENTS,
    oracle_agreements: Sequence[float] = (0.5, 0.1),
    label_noise: float = 0.25,
    n_validate: int = 200,
    n_test: int = 597,
    random_state: int = 0,
    color_state: int | None = None,
    data_dir: Path | None = None,
) -> Dataset:
    """Return ColoredDigits: y = 1{digit < 5} with label noise, colour tied to y more in some domains.

    The training images are split evenly among the training domains. One pool of other images makes the
    validation domains (the training agreements) and the oracle ones; a third set makes every test domain.

    Parameters
    ----------
    view : {"images", "table"}
        (n, 2, 8, 8) float32 in [0, 1], or 64 grey pixels (stable) and two colour columns (unstable).
    agreements, test_agreements, oracle_agreements : sequence of float
        Pr[colour = label] of each domain.
    label_noise : float
        Probability that a label is flipped.
    n_validate, n_test : int
        Images in the validation pool and in the test set; the rest trains.
    random_state : int
        Seed of the split of the images.
    color_state : int, optional
        Seed of noise and colours; by default that of the split.
    data_dir : Path, optional
        Not looked at: the digits come with scikit-learn.

    Examples
    --------
    >>> from sfboost.datasets import colored_digits
    >>> colored_digits().domain("train-0.9").X.shape
    (500, 2, 8, 8)
    """
    digits = load_digits()
    grey = (digits.images / 16.0).astype(np.float32)
    order = np.random.default_rng(check_seed(random_state)).permutation(len(grey))
    n_train = len(grey) - n_validate - n_test
    if min(n_validate, n_test, n_train - len(agreements)) < 0:
        raise ValueError(
            f"Got n_validate={n_validate} and n_test={n_test}; together they must leave some of the "
            f"{len(grey)} digits for training. Choose smaller ones."
        )
    made = colored_dataset(
        "colored_digits",
        grey,
        digits.target,
        np.split(order, [n_train, n_train + n_validate]),
        agreements={"train": agreements, "oracle": oracle_agreements, "test": test_agreements},
        label_noise=label_noise,
        seed=random_state if color_state is None else color_state,
        view=view,
    )
    return replace(made, citation=CITATION, licence=LICENCE)


def colored_dataset(
    name: str,
    grey: NDArray[np.float32],
    digits: NDArray[np.int_],
    rows: Sequence[NDArray[np.intp]],
    *,
    agreements: dict[str, Sequence[float]],
    label_noise: float = 0.25,
    seed: int = 0,
    view: str = "images",
) -> Dataset:
    """Return the coloured data set made from images for training, validation and test.

    The training rows are dealt alternately to the training domains. The validation pool is coloured with
    the training agreements (role ``validate``) and with those that look like a test domain (``oracle``).

    Parameters
    ----------
    rows : sequence of three arrays
        Places of the images for training, validation and test.
    agreements : dict
        Pr[colour = label] of the domains of the roles "train", "oracle" and "test".
    seed : int
        Of noise and colours alone; the choice of images has its own.

    Examples
    --------
    >>> rows = np.arange(4), np.arange(4, 6), np.arange(6, 8)
    >>> few = {"train": (0.9, 0.8), "oracle": (0.5,), "test": (0.1,)}
    >>> ink = np.ones((8, 8, 8), np.float32)
    >>> colored_dataset("few", ink, np.arange(8), rows, agreements=few).domain_names
    ('train-0.9', 'train-0.8', 'validate-0.9', 'validate-0.8', 'oracle-0.5', 'test-0.1')
    """
    if view not in ("images", "table"):
        raise ValueError(f"Got view={view!r}; the views are 'images' and 'table'.")
    check_probability("label_noise", label_noise)
    train, pool, held_out = rows
    first = agreements["train"]
    plan = [("train", a, train[k :: len(first)]) for k, a in enumerate(first)]
    if len(pool):
        plan += [("validate", a, pool) for a in first]
        plan += [("oracle", a, pool) for a in agreements["oracle"]]
    plan += [("test", a, held_out) for a in agreements["test"]]
    names = unique_names(f"{role}-{agreement}" for role, agreement, _ in plan)

    def colored(domain: str, agreement: float, part: NDArray[np.intp]) -> Domain:
        check_probability("agreement", agreement)
        # The name is part of the seed: adding a domain changes no other one.
        rng = np.random.default_rng([check_seed(seed), zlib.crc32(domain.encode())])
        y = (np.asarray(digits[part]) < 5).astype(np.int64)
        y ^= rng.random(len(y)) < label_noise
        color = y ^ (rng.random(len(y)) >= agreement)
        X = np.zeros((len(y), len(COLORS), *grey.shape[1:]), dtype=np.float32)
        X[np.arange(len(y)), color] = grey[part]
        return Domain(domain, X, y, {"agreement": float(agreement)})

    domains = tuple(
        colored(domain, agreement, part) for domain, (_, agreement, part) in zip(names, plan, strict=True)
    )

    def of(role: str) -> tuple[str, ...]:
        return tuple(domain for domain, (mine, _, _) in zip(names, plan, strict=True) if mine == role)

    made = Dataset(name, domains, of("train"), of("test"), of("validate"), of("oracle"), CLASSES)
    return table_view(made) if view == "table" else made


def table_view(dataset: Dataset) -> Dataset:
    """Return a coloured image set as a table: grey pixels (stable), then one column per colour (unstable).

    Examples
    --------
    >>> from sfboost.datasets import colored_digits, table_view
    >>> table = table_view(colored_digits())
    >>> table.domain("train-0.9").X.shape
    (500, 66)
    >>> table.unstable_features
    [64, 65]
    """
    domains = tuple(replace(d, X=_pixels_and_color(d.X)) for d in dataset.domains)
    n_pixels = int(domains[0].X.shape[1]) - len(COLORS)
    unstable = list(range(n_pixels, n_pixels + len(COLORS)))
    return replace(
        dataset, domains=domains, stable_features=list(range(n_pixels)), unstable_features=unstable
    )


def check_probability(name: str, value: float) -> None:
    """Say which number is no probability."""
    if not 0 <= value <= 1:
        raise ValueError(f"Got {name}={value!r}; it is a probability: give a number from 0 to 1.")


def _pixels_and_color(X: NDArray[np.float32]) -> NDArray[np.float32]:
    flat = X.reshape(len(X), len(COLORS), -1)
    # Every digit has ink, so the brighter channel is the coloured one.
    color = np.eye(len(COLORS), dtype=X.dtype)[flat.sum(axis=2).argmax(axis=1)]
    return np.concatenate([flat.sum(axis=1), color], axis=1)
