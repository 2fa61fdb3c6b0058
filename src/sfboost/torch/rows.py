"""Rows: from what a user passes to batches with the same number of steps for every domain.

Every refusal is a sentence. Which rows a step sees is a pure function of (seed, domain, step).
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import torch
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, column_or_1d
from torch import Tensor

from sfboost.registry import unknown


class Batch(NamedTuple):
    """Rows of all domains, one domain after the other."""

    x: Tensor
    target: Tensor
    sizes: tuple[int, ...]
    rows: Tensor | slice
    """Positions in the source."""


def domain_rows(seed: int, domain: int, step: int, size: int, n_rows: int) -> Tensor:
    """Return the rows of one domain that a step sees: consecutive pieces of an endless row of permutations.

    Examples
    --------
    >>> sorted(domain_rows(0, 0, 0, 2, 4).tolist() + domain_rows(0, 0, 1, 2, 4).tolist())
    [0, 1, 2, 3]
    """
    first, last = step * size, (step + 1) * size
    pieces = []
    for epoch in range(first // n_rows, (last - 1) // n_rows + 1):
        order = epoch_order(seed, domain, epoch, n_rows)
        pieces.append(order[max(first - epoch * n_rows, 0) : last - epoch * n_rows])
    return torch.cat(pieces)


def apportion(total: int, shares: Sequence[float]) -> list[int]:
    """Divide a number of rows by shares, to whole rows that add up to it (largest remainders).

    Examples
    --------
    >>> apportion(10, [0.26, 0.26, 0.48])
    [3, 2, 5]
    """
    exact = np.asarray(shares) / np.sum(shares) * total
    counts = np.floor(exact).astype(int)
    for k in np.argsort(counts - exact, kind="stable")[: total - counts.sum()]:
        counts[k] += 1
    return [int(count) for count in counts]


@functools.lru_cache(maxsize=512)
def epoch_order(seed: int, domain: int, epoch: int, n_rows: int) -> Tensor:
    """Return the order in which one pass over a domain takes its rows. Cached: not to be written to.

    Examples
    --------
    >>> sorted(epoch_order(0, 0, 0, 3).tolist())
    [0, 1, 2]
    """
    state = np.random.SeedSequence([seed, domain, epoch]).generate_state(1, np.uint64)
    generator = torch.Generator().manual_seed(int(state[0] >> np.uint64(1)))
    return torch.randperm(n_rows, generator=generator)


# A pair (label, guess) of few rows is not weighted up without end.
_LARGEST_WEIGHT = 20.0


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
        here = np.flatnonzero(domain == name)
        for members, share in cells(y, guess, here):
            weight[members] = min(share * len(here) / len(members), _LARGEST_WEIGHT)
    return np.asarray(weight / weight.mean())


def cells(y: np.ndarray, guess: np.ndarray, rows: np.ndarray) -> list[tuple[np.ndarray, float]]:
    """Of some rows those of each label and guess, and the share wanted of them, Pr[label]·Pr[guess]."""
    found, labels, guesses = [], y[rows], guess[rows]
    for label in np.unique(labels):
        for value in np.unique(guesses):
            of_label, of_value = labels == label, guesses == value
            members = rows[of_label & of_value]
            if len(members):
                found.append((members, float(of_label.mean() * of_value.mean())))
    return found


class ArraySource:
    """Labelled rows of all domains, one domain after the other, served in batches.

    Parameters
    ----------
    x : Tensor
        Rows, on the device they are trained on. Not changed.
    labels, domains : ndarray of int
        Class and domain of each row, counted from zero.
    n_classes, n_domains : int
        How many there are.

    Examples
    --------
    >>> import numpy as np, torch
    >>> source = ArraySource(torch.arange(4.0)[:, None], np.array([0, 1, 0, 1]), np.array([1, 0, 0, 1]), 2, 2)
    >>> source.batch(None, 0, 0).x.flatten().tolist()
    [1.0, 2.0, 0.0, 3.0]
    """

    def __init__(
        self, x: Tensor, labels: np.ndarray, domains: np.ndarray, n_classes: int, n_domains: int
    ) -> None:
        order = np.argsort(domains, kind="stable")
        self.labels, self.n_classes = labels[order], n_classes
        self.domain_rows = [np.flatnonzero(domains[order] == e) for e in range(n_domains)]
        self.sizes = tuple(len(rows) for rows in self.domain_rows)
        self.strata: list[list[tuple[np.ndarray, float]]] | None = None
        self.x = x[torch.from_numpy(order).to(x.device)]
        one_hot = torch.from_numpy(np.eye(n_classes)[self.labels])
        self.target = one_hot.to(x.device, x.dtype if x.is_floating_point() else torch.float32)

    def log_prior(self) -> Tensor:
        """Log of the label frequencies of each domain, of shape (domains, K)."""
        counts = np.array(
            [np.bincount(self.labels[rows], minlength=self.n_classes) for rows in self.domain_rows]
        )
        # A class that a domain never shows would make the combination infinite; half a row stands for it.
        counts = np.maximum(counts, 0.5)
        return torch.from_numpy(np.log(counts / counts.sum(1, keepdims=True)))

    def chance_risk(self) -> float:
        """Mean over domains of the entropy of the labels: the risk of knowing the prior alone."""
        log_prior = self.log_prior()
        return float(-(log_prior.exp() * log_prior).sum(1).mean())

    def balance(self, guess: np.ndarray | None) -> None:
        """From now on draw rows so that label and `guess` are independent within each domain (None: undo).

        Every pair (label, guess) then has the share Pr[label]·Pr[guess] of the domain; rare pairs come
        round more often.
        """
        self.strata = None
        if guess is not None:
            self.strata = [cells(self.labels, guess, rows) for rows in self.domain_rows]

    def batch_rows(
        self, batch_size: int | None, seed: int, step: int
    ) -> tuple[Tensor, tuple[int, ...]] | None:
        """Rows of a step and their number per domain; None for all rows."""
        if self.strata is None and batch_size is None:
            return None
        chosen = []
        for e, rows in enumerate(self.domain_rows):
            parts = [(rows, 1.0)] if self.strata is None else self.strata[e]
            stream = e if self.strata is None else (e + 1) * 1_000_000  # apart from those of whole domains
            counts = apportion(min(batch_size or len(rows), len(rows)), [share for _, share in parts])
            chosen.append(
                torch.cat(
                    [
                        torch.from_numpy(members)[domain_rows(seed, stream + k, step, count, len(members))]
                        for k, ((members, _), count) in enumerate(zip(parts, counts, strict=True))
                        if count
                    ]
                )
            )
        return torch.cat(chosen), tuple(len(rows) for rows in chosen)

    def batch(self, batch_size: int | None, seed: int, step: int) -> Batch:
        """Return the rows of a step (all of them for ``batch_size=None``)."""
        chosen = self.batch_rows(batch_size, seed, step)
        if chosen is None:
            return Batch(self.x, self.target, self.sizes, slice(None))
        rows, sizes = chosen
        rows = rows.to(self.x.device)
        return Batch(self.x[rows], self.target[rows], sizes, rows)

    def rows(self, positions: np.ndarray) -> Tensor:
        """Return x of some rows."""
        return self.x[torch.from_numpy(positions).to(self.x.device)]


@dataclass(frozen=True, eq=False)
class Rows:
    """Labelled rows, with labels and domains as they were given."""

    x: Tensor
    y: npt.NDArray[Any]
    domain: npt.NDArray[Any]

    def shape(self) -> tuple[int, ...]:
        """Shape of one row of x."""
        return tuple(self.x.shape[1:])

    def take(self, rows: npt.NDArray[np.intp]) -> Rows:
        """Return some of the rows, in this order."""
        return Rows(self.x[torch.from_numpy(rows)], self.y[rows], self.domain[rows])


def number_type(precision: str) -> torch.dtype:
    """Return the type of this name.

    Examples
    --------
    >>> number_type("float64")
    torch.float64
    """
    types = {"float32": torch.float32, "float64": torch.float64}
    if precision not in types:
        raise ValueError(unknown("precision", precision, types))
    return types[precision]


def read_x(X: Any, dtype: torch.dtype) -> Tensor:
    """Copy an array, data frame or tensor into a tensor of finite numbers.

    Examples
    --------
    >>> import torch
    >>> read_x([[1, 2]], torch.float32)
    tensor([[1., 2.]])
    """
    name = "float64" if dtype == torch.float64 else "float32"
    # Copied: the user's array may be read-only, and torch would share its memory.
    return torch.from_numpy(check_array(_numpy(X), dtype=name, allow_nd=True, copy=True, input_name="X"))


def read_rows(X: Any, y: Any, domain: Any, dtype: torch.dtype) -> Rows:
    """Check labelled rows.

    Examples
    --------
    >>> read_rows([[1.0], [2.0]], ["a", "b"], None, torch.float32).domain
    array([0, 0])
    """
    if y is None:
        raise ValueError("fit needs labels: pass y.")
    x = read_x(X, dtype)
    labels = column_or_1d(_numpy(y), warn=True)
    check_classification_targets(labels)
    domains = np.zeros(len(labels), dtype=int) if domain is None else column_or_1d(_numpy(domain))
    if not len(x) == len(labels) == len(domains):
        raise ValueError(
            f"X, y and sample_domain need the same number of rows, got {len(x)}, {len(labels)} and "
            f"{len(domains)}."
        )
    return Rows(x, labels, domains)


def _numpy(values: Any) -> Any:
    return values.detach().cpu().numpy() if isinstance(values, Tensor) else values


def check_training(rows: Rows, *, penalised: bool, batch_size: int | None) -> None:
    """Refuse what cannot be learned from.

    Examples
    --------
    >>> rows = read_rows([[1.0], [2.0]], [0, 1], [0, 0], torch.float32)
    >>> check_training(rows, penalised=False, batch_size=None)
    """
    classes, domains = np.unique(rows.y), np.unique(rows.domain)
    if len(classes) < 2:
        raise ValueError(f"The labels have one class only, {classes[0]}; a classifier needs two or more.")
    if penalised and len(domains) < 2:
        raise ValueError(
            f"A stability penalty compares domains, and there is one only ({domains[0]}). Pass "
            "sample_domain "
            "with two or more domains, or penalty='none'."
        )
    for name in domains:
        present = np.unique(rows.y[rows.domain == name])
        if len(present) < 2:
            raise ValueError(
                f"Domain {name} has one class only ({present[0]}): nothing can be learned about what its "
                "features mean. Leave it out, or join it with another domain."
            )
    if batch_size is not None and batch_size < len(classes):
        raise ValueError(
            f"batch_size={batch_size} rows per domain is smaller than the number of classes, {len(classes)}. "
            "Use a larger one, or None for all rows."
        )


def make_source(
    rows: Rows, classes: npt.NDArray[Any], domains: npt.NDArray[Any], device: torch.device, dtype: torch.dtype
) -> ArraySource:
    """Serve labelled rows in batches.

    Examples
    --------
    >>> rows = read_rows([[1.0], [2.0]], ["a", "b"], None, torch.float32)
    >>> make_source(rows, np.array(["a", "b"]), np.array([0]), torch.device("cpu"), torch.float32).sizes
    (2,)
    """
    y, d = np.searchsorted(classes, rows.y), np.searchsorted(domains, rows.domain)
    return ArraySource(rows.x.to(device, dtype), y, d, len(classes), len(domains))


def hold_out(rows: Rows, fraction: float, seed: int) -> tuple[Rows, Rows | None]:
    """Split off a share of every class of every domain, for calibration.

    Examples
    --------
    >>> rows = read_rows(np.zeros((20, 1)), [0, 1] * 10, None, torch.float32)
    >>> kept, held = hold_out(rows, 0.2, 0)
    >>> len(kept.y), len(held.y)
    (16, 4)
    """
    if not 0 <= fraction < 1:
        raise ValueError(f"validation_fraction must be at least 0 and below 1, got {fraction}.")
    rng = np.random.default_rng(seed)
    held = np.zeros(len(rows.y), dtype=bool)
    for domain in np.unique(rows.domain):
        for label in np.unique(rows.y):
            members = np.flatnonzero((rows.domain == domain) & (rows.y == label))
            held[rng.permutation(members)[: int(fraction * len(members))]] = True
    if not held.any():
        return rows, None
    return rows.take(np.flatnonzero(~held)), rows.take(np.flatnonzero(held))


# Numbers that spread by less or by more than this are not what networks are made for.
_LEAST, _MOST = 0.01, 10.0


@dataclass(frozen=True, eq=False)
class Scaling:
    """(x − shift) · factor: of a table each column by itself, of all else one number, without a shift.

    Parameters
    ----------
    shift, factor : list of float
        One for each column; one in all if rows are no table.

    Examples
    --------
    >>> scaling = Scaling.of(torch.tensor([[2010.0, 0.5], [2030.0, -0.5]]))
    >>> scaling.apply(torch.tensor([[2030.0, 0.5]])).tolist()
    [[1.0, 0.5]]
    >>> Scaling.of(torch.tensor([[1.0, 0.5], [-1.0, -0.5]])) is None
    True
    """

    shift: list[float]
    factor: list[float]

    @classmethod
    def of(cls, x: Tensor) -> Self | None:
        """Find what rows need; None if that is nothing, which most rows need.

        Parameters
        ----------
        x : Tensor of shape (n, ...)
        """
        rows = x.double()
        if x.ndim > 2:  # a picture says something by where it is dark: it is not shifted
            size = float(rows.square().mean().sqrt())
            return None if size == 0.0 or _LEAST <= size <= _MOST else cls([0.0], [1.0 / size])
        mean, spread = rows.mean(0), rows.std(0, correction=0)
        off = mean.abs() > _MOST * spread.clamp(min=1.0)
        far = ((spread > _MOST) | (spread < _LEAST) | off) & (spread > 0.0)
        if not (far | off).any():
            return None
        shift = torch.where(far | off, mean, torch.zeros_like(mean))  # one value throughout is shifted alone
        return cls(shift.tolist(), torch.where(far, 1.0 / spread, torch.ones_like(mean)).tolist())

    def apply(self, x: Tensor) -> Tensor:
        """Return a tensor of the same shape and type."""
        shift, factor = (x.new_tensor(values) for values in (self.shift, self.factor))
        return (x - shift) * factor
