"""Amazon reviews: is a review good? Four kinds of products, 400 features, MATLAB files."""

from __future__ import annotations

import zlib
from pathlib import Path

import numpy as np
from scipy.io import loadmat
from scipy.io.matlab import MatReadError

from sfboost.datasets.contract import Dataset, Domain
from sfboost_lab.datasets.sources import File, fetch

CITATION = (
    "J. Blitzer, M. Dredze and F. Pereira (2007), Biographies, Bollywood, Boom-boxes and Blenders, ACL; "
    "400 features as in M. Chen et al. (2012), Marginalized Denoising Autoencoders, ICML"
)
LICENCE = "for research; the authors state no licence"


def _product(name: str, size: int, sha256: str) -> File:
    return File(f"tables/amazon_review_400/{name}_400.mat", sha256, size)


FILES = {
    "books": _product("books", 356_724, "7a53b54f0c0e81e7ee4774d762a927399cede9a802a2409732ba00cc1c23a17a"),
    "dvd": _product("dvd", 360_255, "13a71d399f9c7ae57064952979c830455057ffd0a8da73f2c9075338d64d98ce"),
    "elec": _product("elec", 316_867, "f1dd6e01c1eed956d3abe6493a6bb5efc95e6585b8b9b2d856c0c07e12893a35"),
    "kitchen": _product(
        "kitchen", 287_938, "b1f4e5ddfbd7b37ad2638fccbf83bd8558abf63b3e8d69a9d5bca77b1a49fed5"
    ),
}


def amazon_reviews(*, test: str = "kitchen", random_state: int = 0, data_dir: Path | None = None) -> Dataset:
    """Return Amazon reviews; one kind of product tests, the others train.

    Parameters
    ----------
    test : {"books", "dvd", "elec", "kitchen"}
        The products that are left out.
    random_state : int
        Not used: nothing is drawn.
    data_dir : Path, optional
        Folder with ``tables/amazon_review_400/books_400.mat`` and so on.

    Examples
    --------
    >>> from sfboost_lab.datasets import load
    >>> load("amazon_reviews").domain("books").X.shape  # doctest: +SKIP
    (2000, 400)
    """
    domains = tuple(_domain(name, fetch(file, data_dir)) for name, file in FILES.items())
    n_words = domains[0].X.shape[1]
    return Dataset(
        name="amazon_reviews",
        domains=domains,
        train=tuple(name for name in FILES if name != test),
        test=(test,),
        classes=("negative", "positive"),
        # The words have no names, so nobody can say which are stable: every second one is called so.
        stable_features=list(range(0, n_words, 2)),
        unstable_features=list(range(1, n_words, 2)),
        feature_names=[f"word_{k}" for k in range(n_words)],
        citation=CITATION,
        licence=LICENCE,
    )


def _domain(name: str, path: Path) -> Domain:
    try:
        content = loadmat(path, variable_names=["fts", "labels"])
        X, labels = np.asarray(content["fts"], dtype=np.float64), np.asarray(content["labels"]).ravel()
    except (MatReadError, zlib.error, KeyError, ValueError, TypeError, NotImplementedError, OSError) as error:
        raise ValueError(
            f"{path} is no MATLAB 5 file with 'fts' and 'labels' ({error}); get the file again."
        ) from error
    if X.ndim != 2 or not np.isin(labels, (0, 1)).all():
        raise ValueError(f"{path} holds labels {np.unique(labels)[:5]}; they need to be 0 or 1.")
    return Domain(name, X, labels.astype(np.int64))
