"""One look at a data set: examples by domain for images, marginals and label rates by domain for tables."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sfboost.datasets.contract import Dataset, Domain
from sfboost.datasets.export import column_names
from sfboost.datasets.images import ImageSequence

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_PANELS = 11
_BINS = 24
_SAMPLE = 5000


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
    >>> from sfboost.datasets import load, write_sheet
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_sheet(load("ac", n_rows=50), Path(folder, "ac.png")).stat().st_size > 1000
    True
    """
    X = dataset.domains[0].X
    is_image = isinstance(X, ImageSequence) or (isinstance(X, np.ndarray) and X.ndim == 4)
    figure = _examples(dataset, n_examples, random_state) if is_image else _marginals(dataset)
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(target, dpi=130)
    return target


def label_rates(dataset: Dataset) -> dict[str, NDArray[np.float64]]:
    """Return the share of each class in each domain, among the rows that have labels.

    Examples
    --------
    >>> from sfboost.datasets import load
    >>> from sfboost.datasets.sheet import label_rates
    >>> label_rates(load("ac", n_rows=1000))["test-0.1"].round(1)
    array([0.5, 0.5])
    """
    n_classes = len(dataset.classes)
    rates = {}
    for domain in dataset.domains:
        counts = np.bincount(domain.y[domain.y >= 0], minlength=n_classes)
        rates[domain.name] = counts / max(counts.sum(), 1)
    return rates


def _figure(width: float, height: float) -> Figure:
    try:
        # The object itself, not pyplot: no window, no global state.
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("Figures need matplotlib: pip install 'sfboost[app]'.") from error
    return Figure(figsize=(width, height), layout="constrained")


def _shown(dataset: Dataset) -> list[Domain]:
    chosen = [n for n in dataset.domain_names if n in dataset.train or n in dataset.test]
    return [dataset.domain(name) for name in chosen or dataset.domain_names]


def _examples(dataset: Dataset, n_examples: int, random_state: int) -> Figure:
    domains = _shown(dataset)
    figure = _figure(1.6 + 0.75 * n_examples, 0.7 + 0.85 * len(domains))
    axes = figure.subplots(len(domains), n_examples, squeeze=False)
    columns = np.arange(n_examples) % len(dataset.classes)
    order = np.sort(columns)
    for row, domain in zip(axes, domains, strict=True):
        rng = np.random.default_rng([random_state, len(domain)])
        for axis, label, example in zip(row, order, _pick(domain, order, rng), strict=True):
            axis.set_axis_off()
            if example is not None:
                axis.imshow(_rgb(domain.X[int(example)]), interpolation="nearest")
            if row is axes[0] and (label not in order[: list(order).index(label)]):
                axis.set_title(str(dataset.classes[label]), fontsize=8, loc="left")
        row[0].text(-0.15, 0.5, domain.name, transform=row[0].transAxes, ha="right", va="center", fontsize=8)
    _entitle(figure, dataset)
    return figure


def _pick(domain: Domain, labels: NDArray[Any], rng: np.random.Generator) -> list[int | None]:
    """Choose one row for each label, none twice while there are others."""
    waiting = {
        label: list(rng.permutation(np.flatnonzero(domain.y == label))) for label in set(labels.tolist())
    }
    return [int(waiting[label].pop()) if waiting[label] else None for label in labels.tolist()]


def _rgb(image: NDArray[Any]) -> NDArray[Any]:
    if len(image) == 3:
        return image.transpose(1, 2, 0)
    # Two channels: red and green, as the papers show them.
    rgb = np.zeros((*image.shape[1:], 3))
    rgb[..., : len(image)] = image.transpose(1, 2, 0)
    return rgb.clip(0, 1)


def _marginals(dataset: Dataset) -> Figure:
    domains = _shown(dataset)
    names = column_names(dataset)
    chosen = _most_shifted(domains, len(names))
    n_rows = -(-(len(chosen) + 1) // 4)
    figure = _figure(12, 0.8 + 2.4 * n_rows)
    axes = figure.subplots(n_rows, 4, squeeze=False).ravel()
    _draw_rates(axes[0], dataset, domains)
    for axis, column in zip(axes[1:], chosen, strict=False):
        _draw_marginal(axis, [_column(domain, column) for domain in domains], names[column])
    for axis in axes[1 + len(chosen) :]:
        axis.set_axis_off()
    handles = [axis for axis in axes[1].containers] if len(chosen) else []
    if handles:
        figure.legend(handles, [d.name for d in domains], loc="outside lower center", ncols=6, fontsize=8)
    more = (
        f"; {len(chosen)} of {len(names)} columns, those that move most" if len(chosen) < len(names) else ""
    )
    _entitle(figure, dataset, more)
    return figure


def _column(domain: Domain, column: int) -> NDArray[Any]:
    values = domain.X.iloc[:, column].to_numpy() if hasattr(domain.X, "iloc") else domain.X[:, column]
    return np.asarray(values[:_SAMPLE])


def _most_shifted(domains: list[Domain], n_columns: int) -> list[int]:
    if n_columns <= _PANELS:
        return list(range(n_columns))
    means, spread = [], []
    for domain in domains:
        numbers = np.stack([_codes(_column(domain, k)) for k in range(n_columns)], axis=1)
        means.append(np.nan_to_num(np.nanmean(numbers, axis=0)))
        spread.append(np.nan_to_num(np.nanstd(numbers, axis=0)))
    shift = np.ptp(means, axis=0) / (np.mean(spread, axis=0) + 1e-9)
    return sorted(np.argsort(-shift)[:_PANELS].tolist())


def _codes(values: NDArray[Any]) -> NDArray[np.float64]:
    if values.dtype.kind in "biuf":
        return values.astype(np.float64)
    return np.array([len(str(value)) for value in values], dtype=np.float64)


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
    width = 0.8 / len(columns)
    if all(column.dtype.kind in "biuf" for column in columns):
        values = np.unique(np.concatenate([c[np.isfinite(c.astype(float))] for c in columns]))
        if len(values) > _BINS:
            edges = np.histogram_bin_edges(values, bins=_BINS)
            for column in columns:
                finite = column[np.isfinite(column)]
                shares = np.histogram(finite, bins=edges)[0] / max(len(finite), 1)
                axis.bar(edges[:-1], shares, width=np.diff(edges), align="edge", alpha=0.4)
            return
        texts = [[f"{value:g}" if np.isfinite(value) else "missing" for value in c] for c in columns]
        order = [f"{value:g}" for value in values]
    else:
        texts = [["missing" if _is_missing(value) else str(value) for value in c] for c in columns]
        order = sorted({text for column in texts for text in column} - {"missing"})[:12]
    order = order + (["missing"] if any("missing" in column for column in texts) else [])
    for k, column in enumerate(texts):
        shares_of = [column.count(text) / max(len(column), 1) for text in order]
        axis.bar(np.arange(len(order)) + (k - len(columns) / 2 + 0.5) * width, shares_of, width=width)
    axis.set_xticks(range(len(order)), order, fontsize=7)


def _is_missing(value: Any) -> bool:
    return value is None or value != value


def _entitle(figure: Figure, dataset: Dataset, more: str = "") -> None:
    roles = f"train: {', '.join(dataset.train)}   test: {', '.join(dataset.test)}{more}"
    figure.suptitle("\n".join([dataset.name, *textwrap.wrap(roles, 110)]), fontsize=9)
