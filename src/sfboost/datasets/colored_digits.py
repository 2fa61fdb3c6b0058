"""ColoredDigits: scikit-learn's 1797 real handwritten digits, coloured. Needs no file and no network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

from sfboost.datasets.coloring import TEST_AGREEMENTS, Agreements, Coloring, choose_view, colored_dataset
from sfboost.datasets.contract import Dataset, check_seed

CITATION = (
    "E. Alpaydin and C. Kaynak (1998), Optical Recognition of Handwritten Digits, UCI; coloured as in "
    "M. Arjovsky et al. (2019), Invariant Risk Minimization, arXiv:1907.02893"
)
LICENCE = "CC BY 4.0"


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
    >>> from sfboost_lab.datasets import load
    >>> load("colored_digits").domain("train-0.9").X.shape
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
    rows = np.split(order, [n_train, n_train + n_validate])
    coloring = Coloring(label_noise, random_state if color_state is None else color_state)
    dataset = colored_dataset(
        "colored_digits",
        grey,
        digits.target,
        (rows[0], rows[1], rows[2]),
        coloring,
        Agreements(agreements, oracle_agreements, test_agreements),
    )
    return choose_view(replace(dataset, citation=CITATION, licence=LICENCE), view)
