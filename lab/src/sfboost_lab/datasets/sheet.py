"""One look at a data set: examples by domain for images, marginals and label rates by domain for tables."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sfboost.datasets.contract import Dataset, Domain
from sfboost.datasets.images import ImageSequence
from sfboost.figures import new_figure
from sfboost.whole_files import whole_file
from sfboost_lab.datasets.export import column_names

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_PANELS = 15
_BINS = 24
_SAMPLE = 5000
_SIDE = 112
_VALUES = 12
_MISSING = "missing"


def write_sheet(dataset: Dataset, path: str | Path, *, n_examples: int = 10, random_state: int = 0) -> Path:
    """Write a page of examples (images) or of marginals and label rates (tables), by domain.

    Parameters
    ----------
    dataset : Dataset
        What to show.
    path : path
        ``.png``, ``.pdf`` or ``.svg``.
    n_examples : int
        Images in each row of a sheet; they are shared out among the classes.
    random_state : int
        Seed of the choice of examples.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from sfboost_lab.datasets import load, write_sheet
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_sheet(load("ac", n_rows=50), Path(folder, "ac.png")).stat().st_size > 1000
    True
    """
    X = dataset.domains[0].X
    is_image = isinstance(X, ImageSequence) or (isinstance(X, np.ndarray) and X.ndim == 4)
    figure = _examples(dataset, n_examples, random_state) if is_image else _marginals(dataset)
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(target) as part:
        figure.savefig(part, dpi=130)
    return target


def label_rates(dataset: Dataset) -> dict[str, NDArray[np.float64]]:
    """Return the share of each class in each domain, among the rows that have labels.

    Examples
    --------
    >>> from sfboost_lab.datasets import load
    >>> from sfboost_lab.datasets.sheet import label_rates
    >>> label_rates(load("ac", n_rows=1000))["test-0.1"].round(1)
    array([0.5, 0.5])
    """
    n_classes = len(dataset.classes)
    rates = {}
    for domain in dataset.domains:
        counts = np.bincount(domain.y[domain.y >= 0], minlength=n_classes)
        rates[domain.name] = counts / max(counts.sum(), 1)
    return rates


def _shown(dataset: Dataset) -> list[Domain]:
    chosen = [n for n in dataset.domain_names if n in dataset.train or n in dataset.test]
    return [dataset.domain(name) for name in chosen or dataset.domain_names]


def _examples(dataset: Dataset, n_examples: int, random_state: int) -> Figure:
    domains = _shown(dataset)
    labels = np.sort(np.arange(n_examples) % len(dataset.classes))
    rows = [_strip(domain, labels, np.random.default_rng([random_state, len(domain)])) for domain in domains]
    figure = new_figure((1.6 + 0.75 * n_examples, 0.9 + 0.75 * len(domains)))
    # One picture of all examples: an axis for each would take seconds to lay out.
    axis = figure.subplots()
    axis.imshow(np.concatenate(rows), interpolation="nearest")
    side = rows[0].shape[0]
    starts = [int(np.flatnonzero(labels == label)[0]) for label in np.unique(labels)]
    axis.set_yticks(side * (np.arange(len(domains)) + 0.5), [d.name for d in domains], fontsize=8)
    axis.set_xticks([side * (k + 0.5) for k in starts], [str(dataset.classes[labels[k]]) for k in starts])
    axis.tick_params(top=True, labeltop=True, bottom=False, labelbottom=False, length=0, labelsize=8)
    axis.spines[:].set_visible(False)
    _entitle(figure, dataset)
    return figure


def _strip(domain: Domain, labels: NDArray[Any], rng: np.random.Generator) -> NDArray[Any]:
    """Return examples of these labels side by side, each with a white margin."""
    X = domain.X.resized(_SIDE) if isinstance(domain.X, ImageSequence) else domain.X
    margin = max(X[0].shape[-1] // 14, 1)
    framed = []
    for example in _pick(domain, labels, rng):
        image = _rgb(X[example]) if example is not None else np.ones((*X[0].shape[1:], 3))
        framed.append(np.pad(image, ((margin, margin), (margin, margin), (0, 0)), constant_values=1.0))
    return np.concatenate(framed, axis=1)


def _pick(domain: Domain, labels: NDArray[Any], rng: np.random.Generator) -> list[int | None]:
    """Choose one row for each label, none twice while there are others."""
    waiting = {
        label: list(rng.permutation(np.flatnonzero(domain.y == label))) for label in set(labels.tolist())
    }
    return [int(waiting[label].pop()) if waiting[label] else None for label in labels.tolist()]


def _rgb(image: NDArray[Any]) -> NDArray[Any]:
    """Return an image as floats (height, width, red-green-blue); two channels are red and green."""
    scaled = image / 255 if image.dtype == np.uint8 else image
    rgb = np.zeros((*image.shape[1:], 3))
    rgb[..., : len(image)] = scaled.transpose(1, 2, 0)
    return rgb.clip(0, 1)


def _marginals(dataset: Dataset) -> Figure:
    domains = _shown(dataset)
    names = column_names(dataset)
    chosen = _most_shifted(domains, len(names))
    n_columns = min(4, len(chosen) + 1)
    n_rows = -(-(len(chosen) + 1) // n_columns)
    figure = new_figure((3 * n_columns, 0.8 + 2.4 * n_rows))
    axes = figure.subplots(n_rows, n_columns, squeeze=False).ravel()
    _draw_rates(axes[0], dataset, domains)
    for axis, column in zip(axes[1:], chosen, strict=False):
        _draw_marginal(axis, [_column(domain, column) for domain in domains], names[column])
    for axis in axes[1 + len(chosen) :]:
        axis.set_axis_off()
    handles = list(axes[1].containers) if chosen else []
    if handles:
        figure.legend(handles, [d.name for d in domains], loc="outside lower center", ncols=6, fontsize=8)
    part = f"; {len(chosen)} of {len(names)} columns, those that move most"
    _entitle(figure, dataset, part if len(chosen) < len(names) else "")
    return figure


def _column(domain: Domain, column: int) -> NDArray[Any]:
    values = domain.X.iloc[:, column].to_numpy() if hasattr(domain.X, "iloc") else domain.X[:, column]
    return np.asarray(values[:_SAMPLE])


def _most_shifted(domains: list[Domain], n_columns: int) -> list[int]:
    if n_columns <= _PANELS:
        return list(range(n_columns))
    shifts = [_shift([_column(domain, k) for domain in domains]) for k in range(n_columns)]
    return sorted(np.argsort(shifts)[::-1][:_PANELS].tolist())


def _shift(columns: list[NDArray[Any]]) -> float:
    """How far the domains lie apart: in spreads for numbers, in shares of a value for words."""
    if all(column.dtype.kind in "biuf" for column in columns):
        known = [np.ma.masked_invalid(column.astype(np.float64)) for column in columns]
        means = [float(np.ma.filled(column.mean(), 0.0)) for column in known]
        spread = float(np.ma.filled(np.ma.concatenate(known).std(), 0.0))
        return float(np.ptp(means)) / (spread or 1.0)
    words = [column.astype(str) for column in columns]
    values = np.unique(np.concatenate(words))
    return float(max(np.ptp([np.mean(column == value) for column in words]) for value in values))


def _draw_rates(axis: Axes, dataset: Dataset, domains: list[Domain]) -> None:
    rates = label_rates(dataset)
    bottom = np.zeros(len(domains))
    for k, label in enumerate(dataset.classes):
        heights = np.array([rates[d.name][k] for d in domains])
        axis.bar(range(len(domains)), heights, bottom=bottom, label=str(label), alpha=0.8)
        bottom += heights
    axis.set_xticks(range(len(domains)), [d.name for d in domains], rotation=45, ha="right", fontsize=7)
    axis.set_title("label rates", fontsize=9)
    axis.legend(fontsize=6, loc="lower left")


def _draw_marginal(axis: Axes, columns: list[NDArray[Any]], name: str) -> None:
    axis.set_title(name, fontsize=9)
    axis.tick_params(labelsize=7)
    finite = [column[np.isfinite(column)] for column in columns if column.dtype.kind in "biuf"]
    values = np.unique(np.concatenate(finite)) if len(finite) == len(columns) else np.array([])
    if len(values) > _BINS:
        edges = np.histogram_bin_edges(values, bins=_BINS)
        for column in finite:
            shares = np.histogram(column, bins=edges)[0] / max(len(column), 1)
            axis.bar(edges[:-1], shares, width=np.diff(edges), align="edge", alpha=0.4)
        return
    _draw_values(axis, [[_word(value) for value in column.tolist()] for column in columns])


def _draw_values(axis: Axes, columns: list[list[str]]) -> None:
    seen = {word for column in columns for word in column}
    numeric = all(_is_number(word) for word in seen - {_MISSING})
    order = sorted(seen - {_MISSING}, key=float if numeric else str)[:_VALUES] + sorted(seen & {_MISSING})
    width = 0.8 / len(columns)
    for k, column in enumerate(columns):
        shares = [column.count(word) / max(len(column), 1) for word in order]
        axis.bar(np.arange(len(order)) + (k - len(columns) / 2 + 0.5) * width, shares, width=width)
    axis.set_xticks(range(len(order)), order, fontsize=7)


def _word(value: Any) -> str:
    # Only NaN differs from itself.
    if value is None or value != value:
        return _MISSING
    return f"{value:g}" if isinstance(value, (int, float)) else str(value)


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def _entitle(figure: Figure, dataset: Dataset, more: str = "") -> None:
    roles = f"train: {', '.join(dataset.train)}   test: {', '.join(dataset.test)}{more}"
    figure.suptitle("\n".join([dataset.name, *textwrap.wrap(roles, 110)]), fontsize=9)
