"""Views: what of a row the stable part is allowed to see.

A view is a guess about what is unstable: colour, fine texture, slow changes of light, some columns. It keeps
the shape of a row, so that any network can stand behind it, and has no weights to train. Which view is right
the search asks the data (`sfboost.torch.search`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from scipy.stats import chi2
from torch import Tensor, nn
from torch.nn import functional

# A column that is seen at this level to follow the guess, or to drift, is not shown to the stable part.
_LEVEL = 0.01
_FEWEST = 5


class Whole(nn.Identity):
    """The row as it is."""


class Grey(nn.Module):
    """The mean of the channels, in every channel: without colour.

    Examples
    --------
    >>> Grey()(torch.tensor([[[[2.0]], [[0.0]]]])).flatten().tolist()
    [1.0, 1.0]
    """

    def forward(self, x: Tensor) -> Tensor:
        """Return a batch of the same shape."""
        return x.mean(1, keepdim=True).expand_as(x)


class Coarse(nn.Module):
    """Means of two by two pixels: without fine texture.

    Examples
    --------
    >>> Coarse()(torch.arange(4.0).view(1, 1, 2, 2)).flatten().tolist()
    [1.5, 1.5, 1.5, 1.5]
    """

    def forward(self, x: Tensor) -> Tensor:
        """Return a batch of the same shape."""
        return functional.interpolate(functional.avg_pool2d(x, 2, ceil_mode=True), size=x.shape[2:])


class Edges(nn.Module):
    """What differs from the mean of the neighbourhood: without slow changes of light and background.

    Examples
    --------
    >>> Edges()(torch.ones(1, 1, 5, 5)).abs().sum().item()
    0.0
    """

    def forward(self, x: Tensor) -> Tensor:
        """Return a batch of the same shape."""
        return x - functional.avg_pool2d(x, 3, 1, 1, count_include_pad=False)


class ColumnPart(nn.Module):
    """Some columns; the others are zero.

    Parameters
    ----------
    n_columns : int
        Numbers per row. Which are kept is the buffer ``kept``, all at first.

    Examples
    --------
    >>> view = ColumnPart(2)
    >>> view.kept[1] = 0
    >>> view(torch.ones(1, 2)).tolist()
    [[1.0, 0.0]]
    """

    kept: Tensor

    def __init__(self, n_columns: int) -> None:
        super().__init__()
        self.register_buffer("kept", torch.ones(n_columns))

    def forward(self, x: Tensor) -> Tensor:
        """Return a batch of the same shape."""
        return x * self.kept


VIEWS: dict[str, Callable[[Sequence[int]], nn.Module]] = {
    "whole": lambda shape: Whole(),
    "grey": lambda shape: Grey(),
    "coarse": lambda shape: Coarse(),
    "edges": lambda shape: Edges(),
    "columns": lambda shape: ColumnPart(shape[0]),
    "steady": lambda shape: ColumnPart(shape[0]),
}
"""Every view by its name."""


def views_of(shape: Sequence[int]) -> list[str]:
    """Return the names of the views that rows of a shape can have.

    Examples
    --------
    >>> views_of((2, 8, 8)), views_of((5,)), views_of((5, 7))
    (['whole', 'grey', 'coarse', 'edges'], ['whole', 'columns', 'steady'], ['whole'])
    """
    if len(shape) == 1 and shape[0] > 1:
        return ["whole", "columns", "steady"]
    if len(shape) != 3 or min(shape[1:]) < 4:
        return ["whole"]
    return ["whole", *(["grey"] if shape[0] > 1 else []), "coarse", "edges"]


def silent_columns(X: np.ndarray, y: np.ndarray, guess: np.ndarray, domain: np.ndarray) -> np.ndarray:
    """Return which columns are not seen to follow the guess within a class of a domain (chi-square, 1 %).

    Given the label, stable and unstable features are independent: a column that follows the guess there is
    not stable.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y, guess = rng.integers(0, 2, (2, 500))
    >>> silent_columns(np.c_[rng.normal(size=500) + y, guess], y, guess, np.zeros(500)).tolist()
    [True, False]
    """
    total, freedom = np.zeros(X.shape[1]), 0
    for name in np.unique(domain):
        for label in np.unique(y):
            rows = (domain == name) & (y == label)
            for value in np.unique(guess[rows])[1:]:
                inside, outside = X[rows & (guess == value)], X[rows & (guess != value)]
                if min(len(inside), len(outside)) < _FEWEST:
                    continue
                error = inside.var(0, ddof=1) / len(inside) + outside.var(0, ddof=1) / len(outside)
                gap = inside.mean(0) - outside.mean(0)
                total += np.where(error > 0, gap**2 / np.maximum(error, 1e-12), 1e6 * (gap != 0))
                freedom += 1
    return np.asarray(chi2.sf(total, max(freedom, 1)) > _LEVEL)


def steady_columns(X: np.ndarray, y: np.ndarray, domain: np.ndarray) -> np.ndarray:
    """Return which columns are not seen to drift between domains (chi-square, 1 %).

    A column drifts if its mean in a class is not as far from that in the others in every domain.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y, domain = rng.integers(0, 2, 500), np.repeat([0, 1], 250)
    >>> turned = np.where(domain == 0, y, 1 - y)
    >>> steady_columns(np.c_[y, turned] + rng.normal(size=(500, 2)), y, domain).tolist()
    [True, False]
    """
    total, freedom = np.zeros(X.shape[1]), 0
    for label in np.unique(y)[1:]:
        gaps, errors = [], []
        for name in np.unique(domain):
            inside, outside = (X[(domain == name) & part] for part in (y == label, y != label))
            if min(len(inside), len(outside)) < _FEWEST:
                continue
            gaps.append(inside.mean(0) - outside.mean(0))
            error = inside.var(0, ddof=1) / len(inside) + outside.var(0, ddof=1) / len(outside)
            errors.append(np.maximum(error, 1e-12))
        if len(gaps) > 1:
            weight = 1.0 / np.array(errors)
            mean = (weight * gaps).sum(0) / weight.sum(0)
            total += (weight * (np.array(gaps) - mean) ** 2).sum(0)
            freedom += len(gaps) - 1
    return np.asarray(chi2.sf(total, max(freedom, 1)) > _LEVEL)
