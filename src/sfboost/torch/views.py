"""Views: what of a row the stable part is allowed to see.

A view is a guess about what is unstable: colour, fine texture, slow changes of light, some columns. It keeps
the shape of a row, so that any network can stand behind it, and has no weights to train. Which view is right
the search asks the data (`sfboost.torch.search`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence

import numpy as np
import torch
from scipy.stats import chi2, f
from sklearn.covariance import ledoit_wolf
from torch import Tensor, nn
from torch.nn import functional

# A column that is seen at this level to follow the guess, or to drift, is not shown to the stable part.
_LEVEL = 0.01
_FEWEST = 5
# Numbers in a row beyond which their covariance is too large to be worth it.
_MOST_ERASED = 4096


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


class Levelled(nn.Module):
    """The picture with mean zero and spread one: without brightness and contrast.

    Examples
    --------
    >>> Levelled()(torch.tensor([[[[2.0, 4.0]]], [[[1.0, 2.0]]]])).round().flatten().tolist()
    [-1.0, 1.0, -1.0, 1.0]
    """

    def forward(self, x: Tensor) -> Tensor:
        """Return a batch of the same shape."""
        return functional.layer_norm(x, x.shape[1:])


class Part(nn.Module):
    """Some columns, or pixels; the others are zero.

    Parameters
    ----------
    shape : sequence of int
        Of a row. What is kept is the buffer ``kept``, all at first.

    Examples
    --------
    >>> view = Part([2])
    >>> view.kept[1] = 0
    >>> view(torch.ones(1, 2)).tolist()
    [[1.0, 0.0]]
    """

    kept: Tensor

    def __init__(self, shape: Sequence[int]) -> None:
        super().__init__()
        self.register_buffer("kept", torch.ones(*shape))

    def forward(self, x: Tensor) -> Tensor:
        """Return a batch of the same shape."""
        return x * self.kept


class Erased(nn.Module):
    """The row without what a linear score reads, moved along one direction: nothing at first.

    Parameters
    ----------
    shape : sequence of int
        Of a row. The buffers ``score`` and ``direction`` have a column and a row for each score.
    n_scores : int

    Examples
    --------
    >>> view = Erased([2], 1)
    >>> view.score[0], view.direction[0, 0] = 1.0, 1.0
    >>> view(torch.tensor([[3.0, 5.0]])).tolist()
    [[0.0, 5.0]]
    """

    score: Tensor
    direction: Tensor

    def __init__(self, shape: Sequence[int], n_scores: int) -> None:
        super().__init__()
        self.register_buffer("score", torch.zeros(math.prod(shape), n_scores))
        self.register_buffer("direction", torch.zeros(n_scores, math.prod(shape)))

    def forward(self, x: Tensor) -> Tensor:
        """Return a batch of the same shape."""
        return x - (x.flatten(1) @ self.score @ self.direction).view_as(x)


VIEWS: dict[str, Callable[[Sequence[int], int], nn.Module]] = {
    "whole": lambda shape, n_classes: Whole(),
    "grey": lambda shape, n_classes: Grey(),
    "coarse": lambda shape, n_classes: Coarse(),
    "edges": lambda shape, n_classes: Edges(),
    "levelled": lambda shape, n_classes: Levelled(),
    "grey levelled": lambda shape, n_classes: nn.Sequential(Grey(), Levelled()),
    "columns": lambda shape, n_classes: Part(shape),
    "steady": lambda shape, n_classes: Part(shape),
    "apart": lambda shape, n_classes: Part(shape),
    "pixels": lambda shape, n_classes: Part(shape),
    "erased": lambda shape, n_classes: Erased(shape, n_classes - 1),
}
"""Every view by its name, of rows of a shape and a number of classes."""


def views_of(shape: Sequence[int]) -> list[str]:
    """Return the names of the views that rows of a shape can have.

    Examples
    --------
    >>> views_of((2, 8, 8))
    ['whole', 'grey', 'grey levelled', 'coarse', 'edges', 'levelled', 'pixels', 'erased']
    >>> views_of((5,)), views_of((5, 7))
    (['whole', 'columns', 'steady', 'apart'], ['whole', 'erased'])
    """
    if len(shape) == 1 and shape[0] > 1:
        # Columns that are left out leave nothing behind; of codes an erased direction does.
        return ["whole", "columns", "steady", "apart"]
    erased = ["erased"] if 1 < math.prod(shape) <= _MOST_ERASED else []
    if len(shape) != 3 or min(shape[1:]) < 4:
        return ["whole", *erased]
    # Two colours are rarely as bright as each other, and grey pictures show which it was.
    grey = ["grey", "grey levelled"] if shape[0] > 1 else []
    return ["whole", *grey, "coarse", "edges", "levelled", "pixels", *erased]


def depends_on_rows(name: str) -> bool:
    """Return whether a view is found from labelled rows (`found_views`).

    Examples
    --------
    >>> depends_on_rows("grey"), depends_on_rows("erased")
    (False, True)
    """
    return name == "erased" or name in _KEPT


def found_views(
    X: np.ndarray, y: np.ndarray, guess: np.ndarray, domain: np.ndarray, names: Collection[str]
) -> dict[str, dict[str, np.ndarray]]:
    """Return the buffers of those views that depend on the rows; of one that hides all or nothing none.

    Parameters
    ----------
    X : array of shape (n, ...)
    y, guess, domain : arrays of shape (n,)
        Class, first guess and domain of each row.
    names : collection of str
        Views that are asked for.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y, guess = rng.integers(0, 2, (2, 500))
    >>> X = np.c_[rng.normal(size=500) + y, guess]
    >>> found_views(X, y, guess, np.zeros(500), ["whole", "columns"])
    {'columns': {'kept': array([ True, False])}}
    """
    flat, found = X.reshape(len(X), -1), {}
    for name in names:
        if name == "erased":
            found[name] = erasure(flat, y, guess, domain)
        elif name in _KEPT:
            kept = _KEPT[name](flat, y, guess, domain)
            if kept.any() and not kept.all():
                found[name] = {"kept": kept.reshape(X.shape[1:])}
    return found


def erasure(X: np.ndarray, y: np.ndarray, guess: np.ndarray, domain: np.ndarray) -> dict[str, np.ndarray]:
    """Return the buffers of `Erased` after which no linear score of a row follows the guess within a class.

    Least-squares concept erasure of Û within each class of each domain: with C the covariance of the row and
    Û there, and S that of the row, x − C (C'S⁻¹C)⁻¹ C'S⁻¹ x. S is shrunk, since pixels are many.

    References
    ----------
    Belrose et al., LEACE: Perfect linear concept erasure in closed form, 2023.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y, guess = rng.integers(0, 2, (2, 500))
    >>> X = np.c_[rng.normal(size=500) + guess, rng.normal(size=500) - guess]
    >>> parts = erasure(X, y, guess, np.zeros(500))
    >>> left = X - X @ parts["score"] @ parts["direction"]
    >>> [round(abs(float(np.corrcoef(x, guess)[0, 1])), 1) for x in (X.T[0], left.T[0])]
    [0.4, 0.0]
    """
    cell = np.unique(np.c_[y, domain], axis=0, return_inverse=True)[1].reshape(-1)
    named = np.eye(int(max(y.max(), guess.max())) + 1)[guess][:, 1:]
    inner, follows = (_without_means(part.astype(np.float64), cell) for part in (X, named))
    spread, _ = ledoit_wolf(inner, assume_centered=True)
    together = inner.T @ follows / len(X)
    read = np.linalg.solve(spread + 1e-9 * np.trace(spread) / len(spread) * np.eye(len(spread)), together)
    return {"score": read @ np.linalg.pinv(together.T @ read), "direction": together.T}


def _without_means(values: np.ndarray, cell: np.ndarray) -> np.ndarray:
    count = np.bincount(cell)[:, None]
    sums = np.zeros((len(count), values.shape[1]))
    np.add.at(sums, cell, values)
    return np.asarray(values - (sums / count)[cell])


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
                # The spread of all of them, as if they were alike: that of a handful of codes may be zero.
                error = X[rows].var(0, ddof=1) * (1 / len(inside) + 1 / len(outside))
                gap = inside.mean(0) - outside.mean(0)
                total += gap**2 / np.maximum(error, 1e-12)
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


def columns_apart(X: np.ndarray, y: np.ndarray, domain: np.ndarray) -> np.ndarray:
    """Return which columns neither drift nor are seen to follow, within a class, those that do (F-test, 1 %).

    Given the label, stable and unstable features are independent. A column that says too little for its
    drift to be seen is found by those which say more of the same.

    Examples
    --------
    >>> rng = np.random.default_rng(3)
    >>> y, domain = rng.integers(0, 2, 1000), np.repeat([0, 1], 500)
    >>> cue = np.where(domain == 0, y, rng.integers(0, 2, 1000)) + rng.normal(0, 0.3, 1000)
    >>> X = np.c_[y + rng.normal(size=1000), cue, cue + rng.normal(0, 3, 1000)]
    >>> steady_columns(X, y, domain).tolist(), columns_apart(X, y, domain).tolist()
    ([True, False, True], [True, False, False])
    """
    kept = steady_columns(X, y, domain)
    cell = np.unique(np.c_[y, domain], axis=0, return_inverse=True)[1].reshape(-1)
    inner = _without_means(X.astype(np.float64), cell)
    basis, sizes, _ = np.linalg.svd(inner[:, ~kept], full_matrices=False)
    basis = basis[:, sizes > 1e-9 * sizes.max(initial=0.0)]  # columns may say the same
    n_drifting, freedom = basis.shape[1], len(X) - cell.max() - 1 - basis.shape[1]
    if not n_drifting or freedom <= 0:
        return kept
    explained = ((basis.T @ inner) ** 2).sum(0)
    rest = np.maximum((inner**2).sum(0) - explained, 1e-12)
    return kept & (f.sf(explained / n_drifting / (rest / freedom), n_drifting, freedom) >= _LEVEL)


_KEPT: dict[str, Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray], np.ndarray]] = {
    "columns": silent_columns,
    "pixels": silent_columns,
    "steady": lambda X, y, guess, domain: steady_columns(X, y, domain),
    "apart": lambda X, y, guess, domain: columns_apart(X, y, domain),
}
"""Which parts of a row a view keeps, of labelled rows and a guess."""
