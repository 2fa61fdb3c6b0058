"""From what a user passes to rows that can be trained on, with every refusal as a sentence."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, column_or_1d
from torch import Tensor
from torch.utils.data import Dataset, default_collate

from sfboost.torch.batches import ArraySource, DatasetSource, Source, scan_dataset


@dataclass(frozen=True, eq=False)
class Rows:
    """Labelled rows: a tensor or a dataset, with labels and domains as they were given."""

    x: Tensor | Any
    y: npt.NDArray[Any]
    domain: npt.NDArray[Any]

    @property
    def lazy(self) -> bool:
        """Whether x is read row by row."""
        return not isinstance(self.x, Tensor)

    def shape(self) -> tuple[int, ...]:
        """Shape of one row of x."""
        return tuple(self.x[0][0].shape) if self.lazy else tuple(self.x.shape[1:])

    def take(self, rows: npt.NDArray[np.intp]) -> Rows:
        """Return some of the rows, in this order."""
        if isinstance(self.x, Tensor):
            return Rows(self.x[torch.from_numpy(rows)], self.y[rows], self.domain[rows])
        x = torch.utils.data.Subset(self.x, rows.tolist())
        return Rows(x, self.y[rows], self.domain[rows])


def read_x(X: Any, dtype: torch.dtype) -> Tensor:
    """Copy an array, data frame or tensor into a tensor of finite numbers.

    Examples
    --------
    >>> import torch
    >>> read_x([[1, 2]], torch.float32)
    tensor([[1., 2.]])
    """
    if isinstance(X, Tensor):
        X = X.detach().cpu().numpy()
    name = "float64" if dtype == torch.float64 else "float32"
    # Copied: the user's array may be read-only, and torch would share its memory.
    return torch.from_numpy(check_array(X, dtype=name, allow_nd=True, copy=True, input_name="X"))


def read_rows(X: Any, y: Any, domain: Any, dtype: torch.dtype) -> Rows:
    """Check labelled rows; a ``Dataset`` of (x, y, domain) brings its own labels.

    Examples
    --------
    >>> read_rows([[1.0], [2.0]], ["a", "b"], None, torch.float32).domain
    array([0, 0])
    """
    if isinstance(X, Dataset):
        if y is not None or domain is not None:
            raise ValueError("A Dataset of (x, y, domain) brings its labels and domains: pass it alone.")
        labels, domains = scan_dataset(X)
        return Rows(X, labels, domains)
    if y is None:
        raise ValueError("fit needs labels: pass y, or a Dataset of (x, y, domain).")
    x = read_x(X, dtype)
    labels = column_or_1d(y.detach().cpu().numpy() if isinstance(y, Tensor) else y, warn=True)
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
) -> Source:
    """Serve labelled rows in batches.

    Examples
    --------
    >>> rows = read_rows([[1.0], [2.0]], ["a", "b"], None, torch.float32)
    >>> make_source(rows, np.array(["a", "b"]), np.array([0]), torch.device("cpu"), torch.float32).sizes
    (2,)
    """
    y, d = np.searchsorted(classes, rows.y), np.searchsorted(domains, rows.domain)
    if rows.lazy:
        return DatasetSource(rows.x, y, d, len(classes), len(domains), device, dtype)
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


def chunks(X: Any, size: int, dtype: torch.dtype) -> list[Tensor] | Any:
    """Yield x in pieces, from an array, a tensor or a Dataset whose items are x or begin with x.

    Examples
    --------
    >>> [len(part) for part in chunks([[1.0], [2.0], [3.0]], 2, torch.float32)]
    [2, 1]
    """
    if not isinstance(X, Dataset):
        yield from read_x(X, dtype).split(size)
        return
    for start in range(0, len(X), size):  # type: ignore[arg-type]
        items = [X[i] for i in range(start, min(start + size, len(X)))]  # type: ignore[arg-type]
        rows = [item[0] if isinstance(item, (tuple, list)) else item for item in items]
        yield default_collate([torch.as_tensor(row) for row in rows]).to(dtype)


def fingerprint(rows: Rows, parameters: dict[str, Any]) -> str:
    """Name a run by its data and parameters, so that a checkpoint of another run is not continued.

    Examples
    --------
    >>> rows = read_rows([[1.0], [2.0]], ["a", "b"], None, torch.float32)
    >>> fingerprint(rows, {"steps": 1}) == fingerprint(rows, {"steps": 2})
    False
    """
    text = hashlib.sha256(repr(sorted(parameters.items(), key=lambda item: item[0])).encode())
    for values in (rows.y, rows.domain):
        text.update(np.asarray(values).astype(str).tobytes())
    if not rows.lazy:
        text.update(repr((tuple(rows.x.shape), float(rows.x.double().sum()))).encode())
    return text.hexdigest()
