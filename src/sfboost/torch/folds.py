"""Rows that are trained on and rows that are held out, and what is asked of the latter."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from sfboost.torch.rows import ArraySource
from sfboost.torch.split_network import SplitNetwork

# A class of a domain with as many rows has enough of them in one held-out fifth.
_MANY = 1000
_FOLDS = 5
# A pair (label, guess) of few rows is not weighted up without end.
_LARGEST_WEIGHT = 20.0


@dataclass(frozen=True, eq=False)
class Fold:
    """Positions of rows, in ascending order."""

    train: np.ndarray
    held: np.ndarray


def make_folds(y: np.ndarray, domain: np.ndarray, seed: int) -> list[Fold]:
    """Divide the rows so that every class of every domain is in each part.

    With few rows there are five folds, and every row is held out of one; with many one fifth is held out.

    Examples
    --------
    >>> y = np.tile([0, 1], 50)
    >>> folds = make_folds(y, np.zeros(100, int), 0)
    >>> len(folds), sorted(np.concatenate([fold.held for fold in folds]).tolist()) == list(range(100))
    (5, True)
    """
    rng, number = np.random.default_rng(seed), np.zeros(len(y), dtype=int)
    smallest = len(y)
    for name in np.unique(domain):
        for label in np.unique(y[domain == name]):
            rows = np.flatnonzero((domain == name) & (y == label))
            smallest = min(smallest, len(rows))
            # Where a fold gets one row more is drawn, so that folds are of a size.
            number[rng.permutation(rows)] = (np.arange(len(rows)) + rng.integers(_FOLDS)) % _FOLDS
    folds = [Fold(np.flatnonzero(number != k), np.flatnonzero(number == k)) for k in range(_FOLDS)]
    return folds[:1] if smallest >= _MANY else folds


def balancing_weights(y: np.ndarray, guess: np.ndarray, domain: np.ndarray) -> np.ndarray:
    """Weights under which label and guess are independent within each domain, with mean one.

    The risk with these weights is the risk in a domain where the guess says nothing: what reads the same
    feature as the guess is punished there, what does not is not.

    Examples
    --------
    >>> y, guess = np.array([0, 0, 0, 1, 1, 1]), np.array([0, 0, 1, 1, 1, 0])
    >>> balancing_weights(y, guess, np.zeros(6)).tolist()
    [0.75, 0.75, 1.5, 0.75, 0.75, 1.5]
    """
    weight = np.ones(len(y))
    for name in np.unique(domain):
        here = domain == name
        for label in np.unique(y[here]):
            for value in np.unique(guess[here]):
                pair = here & (y == label) & (guess == value)
                if pair.any():
                    wanted = (y[here] == label).mean() * (guess[here] == value).mean() * here.sum()
                    weight[pair] = min(wanted / pair.sum(), _LARGEST_WEIGHT)
    return np.asarray(weight / weight.mean())


def row_losses(logits: Tensor, target: Tensor) -> Tensor:
    """Return the cross-entropy of each row."""
    return -(target * logits.log_softmax(1)).sum(1)


def stable_logits(network: SplitNetwork, x: Tensor) -> Tensor:
    """Return the logits of f_S, without gradients."""
    with torch.no_grad():
        return network.stable_logits(network.stable_features(x))


def unstable_logits(network: SplitNetwork, source: ArraySource) -> Tensor:
    """Return the logits of h_U^e, each row by the head of its domain, without gradients."""
    with torch.no_grad():
        return network.unstable_logits(network.unstable_features(source.x), source.sizes)


def difference_between_domains(y: np.ndarray, guess: np.ndarray, domain: np.ndarray) -> float:
    """Return chi-square over its degrees of freedom: how much the guess is right more often in some domains.

    A feature of the same meaning everywhere has about one.

    Examples
    --------
    >>> y, domain = np.zeros(200, int), np.repeat([0, 1], 100)
    >>> often = np.where(np.arange(200) % 100 < np.where(domain == 0, 10, 30), 1, 0)
    >>> round(difference_between_domains(y, often, domain), 1)
    12.5
    """
    names = np.unique(domain)
    if len(names) < 2:
        return 0.0
    right = [(guess == y)[domain == name] for name in names]
    share = np.array([part.mean() for part in right])
    count = np.array([len(part) for part in right])
    pooled = np.average(share, weights=count)
    if pooled in (0.0, 1.0):
        return 0.0
    return float((count * (share - pooled) ** 2).sum() / (pooled * (1 - pooled)) / (len(names) - 1))
