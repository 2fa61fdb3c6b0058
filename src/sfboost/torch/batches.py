"""Rows of the training domains, served in batches with the same number of steps for every domain.

Which rows a step sees is a pure function of (seed, domain, step): nothing has to be saved to continue a run.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import default_collate


class Batch(NamedTuple):
    """Rows of all domains, one domain after the other."""

    x: Tensor
    target: Tensor
    sizes: tuple[int, ...]
    rows: Tensor | None
    """Positions in the source; None for all of them."""


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


class _RowSource:
    """What both kinds of source share: labels, domains and the choice of rows."""

    def __init__(self, labels: np.ndarray, domains: np.ndarray, n_classes: int, n_domains: int) -> None:
        self.labels = labels
        self.domain_rows = [np.flatnonzero(domains == e) for e in range(n_domains)]
        self.sizes = tuple(len(rows) for rows in self.domain_rows)
        self.n_classes = n_classes
        self.strata: list[list[tuple[np.ndarray, float]]] | None = None

    def log_prior(self) -> Tensor:
        """Log of the label frequencies of each domain, of shape (domains, K)."""
        counts = np.array(
            [np.bincount(self.labels[rows], minlength=self.n_classes) for rows in self.domain_rows]
        )
        # A class that a domain never shows would make the combination infinite; half a row stands for it.
        counts = np.maximum(counts, 0.5)
        return torch.from_numpy(np.log(counts / counts.sum(1, keepdims=True)))

    def balance(self, guess: np.ndarray | None) -> None:
        """From now on draw rows so that label and `guess` are independent within each domain (None: undo).

        Every pair (label, guess) then has the share Pr[label]·Pr[guess] of the domain; rare pairs come
        round more often.
        """
        if guess is None:
            self.strata = None
            return
        self.strata = []
        for rows in self.domain_rows:
            cells = []
            for label in np.unique(self.labels[rows]):
                for value in np.unique(guess[rows]):
                    of_label, of_value = self.labels[rows] == label, guess[rows] == value
                    members = rows[of_label & of_value]
                    if len(members):
                        cells.append((members, float(of_label.mean() * of_value.mean())))
            self.strata.append(cells)

    def _balanced_rows(self, batch_size: int | None, seed: int, step: int) -> tuple[Tensor, tuple[int, ...]]:
        assert self.strata is not None
        chosen = []
        for e, cells in enumerate(self.strata):
            size = min(batch_size or self.sizes[e], self.sizes[e])
            counts = apportion(size, [share for _, share in cells])
            parts = []
            for k, ((members, _), count) in enumerate(zip(cells, counts, strict=True)):
                stream = (e + 1) * 1_000_000 + k  # apart from the streams of whole domains
                if count:
                    picked = domain_rows(seed, stream, step, count, len(members))
                    parts.append(torch.from_numpy(members)[picked])
            chosen.append(torch.cat(parts))
        return torch.cat(chosen), tuple(len(rows) for rows in chosen)

    def batch_rows(
        self, batch_size: int | None, seed: int, step: int
    ) -> tuple[Tensor, tuple[int, ...]] | None:
        """Rows of a step and their number per domain; None for all rows."""
        if self.strata is not None:
            return self._balanced_rows(batch_size, seed, step)
        if batch_size is None:
            return None
        chosen = []
        for e, rows in enumerate(self.domain_rows):
            picked = domain_rows(seed, e, step, min(batch_size, len(rows)), len(rows))
            chosen.append(torch.from_numpy(rows)[picked])
        return torch.cat(chosen), tuple(len(rows) for rows in chosen)


class ArraySource(_RowSource):
    """Rows that are in memory.

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
        super().__init__(labels[order], domains[order], n_classes, n_domains)
        self.x = x[torch.from_numpy(order).to(x.device)]
        one_hot = np.eye(n_classes)[self.labels]
        self.target = torch.from_numpy(one_hot).to(
            x.device, x.dtype if x.is_floating_point() else torch.float32
        )

    def batch(self, batch_size: int | None, seed: int, step: int) -> Batch:
        """Return the rows of a step (all of them for ``batch_size=None``)."""
        chosen = self.batch_rows(batch_size, seed, step)
        if chosen is None:
            return Batch(self.x, self.target, self.sizes, None)
        rows, sizes = chosen
        rows = rows.to(self.x.device)
        return Batch(self.x[rows], self.target[rows], sizes, rows)

    def rows(self, positions: np.ndarray) -> Tensor:
        """Return x of some rows."""
        return self.x[torch.from_numpy(positions).to(self.x.device)]


class DatasetSource(_RowSource):
    """Rows of a ``torch.utils.data.Dataset`` of (x, y, domain), read when a batch needs them and not kept.

    Parameters
    ----------
    dataset : Dataset
        With ``__len__`` and ``__getitem__``.
    labels, domains : ndarray of int
        Class and domain of each row, counted from zero.
    n_classes, n_domains : int
        How many there are.
    device, dtype
        Where the rows go.

    Examples
    --------
    >>> import numpy as np, torch
    >>> rows = [(torch.tensor([float(i)]), i % 2, 0) for i in range(4)]
    >>> y, d, cpu = np.arange(4) % 2, np.zeros(4, int), torch.device("cpu")
    >>> source = DatasetSource(rows, y, d, 2, 1, cpu, torch.float32)
    >>> source.batch(2, 0, 0).x.shape
    torch.Size([2, 1])
    """

    def __init__(
        self,
        dataset: Any,
        labels: np.ndarray,
        domains: np.ndarray,
        n_classes: int,
        n_domains: int,
        device: torch.device,
        dtype: torch.dtype,
    ) -> None:
        super().__init__(labels, domains, n_classes, n_domains)
        self.dataset = dataset
        self.device, self.dtype = device, dtype

    def batch(self, batch_size: int | None, seed: int, step: int) -> Batch:
        """Read the rows of a step."""
        chosen = self.batch_rows(batch_size, seed, step)
        if chosen is None or batch_size is None:
            raise ValueError("A Dataset is read in minibatches: pass batch_size (rows per domain and step).")
        rows, sizes = chosen
        target = torch.eye(self.n_classes, dtype=self.dtype)[torch.from_numpy(self.labels)[rows]]
        return Batch(self.rows(rows.numpy()), target.to(self.device), sizes, rows)

    def rows(self, positions: np.ndarray) -> Tensor:
        """Read x of some rows."""
        x = default_collate([torch.as_tensor(self.dataset[int(i)][0]) for i in positions])
        return x.to(self.device, self.dtype)


Source = ArraySource | DatasetSource


def scan_dataset(dataset: Any) -> tuple[np.ndarray, np.ndarray]:
    """Read labels and domains of a dataset row by row, keeping no x.

    Parameters
    ----------
    dataset : Dataset
        Its items are (x, y, domain).

    Returns
    -------
    y, domain : ndarray

    Examples
    --------
    >>> y, d = scan_dataset([([0.0], "a", "north"), ([1.0], "b", "south")])
    >>> d.tolist()
    ['north', 'south']
    """
    labels: list[Any] = []
    domains: list[Any] = []
    for i in range(len(dataset)):
        item: Sequence[Any] = dataset[i]
        if len(item) != 3:
            raise ValueError(f"Item {i} of the dataset has {len(item)} parts; (x, y, domain) is needed.")
        labels.append(_plain(item[1]))
        domains.append(_plain(item[2]))
    return np.asarray(labels), np.asarray(domains)


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, Tensor) else value
