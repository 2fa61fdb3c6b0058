"""A small data set for the contract checks: Gaussian classes, two training domains, one that is shifted."""

from __future__ import annotations

import numpy as np

from sfboost.datasets.contract import Dataset, Domain
from sfboost_lab.baselines.contract import LabelledRows

N_FEATURES = 6


def example(n_classes: int = 2, n_rows: int = 120, seed: int = 0) -> Dataset:
    """Return a data set whose arrays cannot be written to.

    Three columns are stable. In the other three the class means are weaker in the second domain, and those of
    other classes in the test domain.

    Parameters
    ----------
    n_classes, n_rows, seed : int
        Classes; rows of each domain; seed.

    Examples
    --------
    >>> example(5).domain("test").X.shape
    (120, 6)
    """
    rng = np.random.default_rng([seed, n_classes])
    stable = rng.normal(size=(n_classes, 3))
    unstable = 2.0 * rng.normal(size=(n_classes, 3))
    domains = []
    for shift, name in enumerate(("first", "second", "test")):
        y = np.arange(n_rows) % n_classes
        means = np.hstack([stable[y], np.roll(unstable, shift // 2, axis=0)[y] * (1.0 - 0.5 * (shift == 1))])
        X = means + rng.normal(size=(n_rows, N_FEATURES)) * (1.0 + 0.5 * shift)
        X.setflags(write=False)
        y.setflags(write=False)
        domains.append(Domain(name, X, y))
    return Dataset(
        "example",
        tuple(domains),
        ("first", "second"),
        ("test",),
        classes=tuple(range(n_classes)),
        stable_features=[0, 1, 2],
        unstable_features=[3, 4, 5],
    )


def named_rows(dataset: Dataset) -> LabelledRows:
    """Return the training rows with words for labels.

    Examples
    --------
    >>> named_rows(example()).y[:2]
    array(['class 0', 'class 1'], dtype='<U7')
    """
    X, y, domain = dataset.pooled("train")
    labels = np.array([f"class {k}" for k in dataset.classes])[y]
    for values in (X, labels, domain):
        values.setflags(write=False)
    return LabelledRows(X, labels, domain)
