"""The colouring shared by ColoredMNIST and ColoredDigits: label noise, colours, and the view as a table.

The recipe is that of the IRM and QRM code: y = 1{digit < 5} is flipped with probability ``label_noise``; the
colour equals the noisy label with probability ``agreement``; the image is written into the channel of its
colour and the other channel is zero.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sfboost.datasets.contract import ROLES, Dataset, Domain, check_seed, unique_names

COLORS = ("red", "green")
CLASSES = ("5 to 9", "0 to 4")
TEST_AGREEMENTS = tuple(round(1 - k / 10, 1) for k in range(11))


@dataclass(frozen=True)
class Coloring:
    """How images become coloured, noisily labelled domains.

    Parameters
    ----------
    label_noise : float
        Probability that the label of an image is flipped.
    seed : int
        Seed of noise and colours alone; the choice of images has its own.

    Examples
    --------
    >>> import numpy as np
    >>> from sfboost.datasets.coloring import Coloring
    >>> grey = np.ones((4, 8, 8), np.float32)
    >>> domain = Coloring(label_noise=0.0).domain("all", grey, np.array([1, 2, 8, 9]), agreement=1.0)
    >>> domain.y
    array([1, 1, 0, 0])
    >>> domain.X[:, :, 0, 0].argmax(axis=1)
    array([1, 1, 0, 0])
    """

    label_noise: float = 0.25
    seed: int = 0

    def domain(
        self, name: str, grey: NDArray[np.float32], digits: NDArray[np.int_], agreement: float
    ) -> Domain:
        """Return grey images as a domain whose colour agrees with the label as often as asked."""
        agreement = check_probability("agreement", agreement)
        noise = check_probability("label_noise", self.label_noise)
        # The name is part of the seed: adding a domain changes no other one.
        rng = np.random.default_rng([check_seed(self.seed), zlib.crc32(name.encode())])
        y = (np.asarray(digits) < 5).astype(np.int64)
        y ^= rng.random(len(y)) < noise
        color = y ^ (rng.random(len(y)) >= agreement)
        X = np.zeros((len(grey), len(COLORS), *grey.shape[1:]), dtype=np.float32)
        X[np.arange(len(grey)), color] = grey
        return Domain(name, X, y, {"agreement": agreement})


@dataclass(frozen=True)
class Agreements:
    """Pr[colour = label] of the domains of each role.

    Examples
    --------
    >>> from sfboost.datasets.coloring import Agreements
    >>> Agreements().train
    (0.9, 0.8)
    """

    train: Sequence[float] = (0.9, 0.8)
    oracle: Sequence[float] = (0.5, 0.1)
    test: Sequence[float] = TEST_AGREEMENTS


def colored_dataset(
    name: str,
    grey: NDArray[np.float32],
    digits: NDArray[np.int_],
    rows: tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]],
    coloring: Coloring,
    agreements: Agreements,
) -> Dataset:
    """Return the coloured data set made from images for training, validation and test.

    The training rows are dealt alternately to the training domains. The validation pool is coloured with
    the training agreements (role ``validate``) and with those that look like a test domain (``oracle``).

    Examples
    --------
    >>> import numpy as np
    >>> from sfboost.datasets.coloring import Agreements, Coloring, colored_dataset
    >>> rows = np.arange(4), np.arange(4, 6), np.arange(6, 8)
    >>> few = Agreements(test=(0.1,))
    >>> made = colored_dataset("few", np.ones((8, 8, 8), np.float32), np.arange(8), rows, Coloring(), few)
    >>> made.domain_names  # doctest: +NORMALIZE_WHITESPACE
    ('train-0.9', 'train-0.8', 'validate-0.9', 'validate-0.8', 'oracle-0.5', 'oracle-0.1', 'test-0.1')
    """
    train, pool, held_out = rows
    n_domains = len(agreements.train)
    plan = [("train", a, train[k::n_domains]) for k, a in enumerate(agreements.train)]
    if len(pool):
        plan += [("validate", a, pool) for a in agreements.train]
        plan += [("oracle", a, pool) for a in agreements.oracle]
    plan += [("test", a, held_out) for a in agreements.test]
    names = unique_names(f"{role}-{agreement}" for role, agreement, _ in plan)
    domains = tuple(
        coloring.domain(domain, grey[part], digits[part], agreement)
        for domain, (_, agreement, part) in zip(names, plan, strict=True)
    )
    roles = {
        wanted: tuple(domain for domain, (role, _, _) in zip(names, plan, strict=True) if role == wanted)
        for wanted in ROLES
    }
    return Dataset(
        name=name,
        domains=domains,
        train=roles["train"],
        validate=roles["validate"],
        oracle=roles["oracle"],
        test=roles["test"],
        classes=CLASSES,
    )


def table_view(dataset: Dataset) -> Dataset:
    """Return a coloured image set as a table: grey pixels (stable), then one column per colour (unstable).

    Examples
    --------
    >>> from sfboost.datasets import table_view
    >>> from sfboost_lab.datasets import load
    >>> table = table_view(load("colored_digits"))
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


def check_probability(name: str, value: float) -> float:
    """Return the probability, or say which number is none.

    Examples
    --------
    >>> from sfboost.datasets.coloring import check_probability
    >>> check_probability("agreement", 0.9)
    0.9
    """
    if not 0 <= value <= 1:
        raise ValueError(f"Got {name}={value!r}; it is a probability: give a number from 0 to 1.")
    return float(value)


def choose_view(dataset: Dataset, view: str) -> Dataset:
    """Return the images, or the table made from them.

    Examples
    --------
    >>> from sfboost_lab.datasets import load
    >>> from sfboost.datasets.coloring import choose_view
    >>> choose_view(load("colored_digits"), "images").domain("test-0.5").X.shape
    (597, 2, 8, 8)
    """
    if view == "images":
        return dataset
    if view == "table":
        return table_view(dataset)
    raise ValueError(f"Got view={view!r}; the views are 'images' and 'table'.")


def _pixels_and_color(X: NDArray[np.float32]) -> NDArray[np.float32]:
    flat = X.reshape(len(X), len(COLORS), -1)
    # Every digit has ink, so the brighter channel is the coloured one.
    color = np.eye(len(COLORS), dtype=X.dtype)[flat.sum(axis=2).argmax(axis=1)]
    return np.concatenate([flat.sum(axis=1), color], axis=1)
