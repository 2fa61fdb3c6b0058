"""Writing any data set as one Parquet file, for the command line and for other tools.

One row per row: ``domain``, ``label``, then the features.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sfboost.datasets.colored_digits import COLORS
from sfboost.datasets.contract import Dataset, Domain
from sfboost.datasets.images import ImageSequence
from sfboost.whole_files import whole_file
from sfboost_lab.datasets.own_tables import UNLABELLED

if TYPE_CHECKING:
    import pyarrow as pa

DOMAIN, LABEL = "domain", "label"
_ROWS = 1000


def export(dataset: Dataset, path: str | Path) -> Path:
    """Write a data set as Parquet, whole or not at all.

    Matrices and tables become one column per feature; image arrays one column per pixel; pictures on disk
    two columns, ``picture`` (the encoded bytes) and ``name``.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from sfboost_lab.datasets import export, load
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     export(load("gaussian", n_rows=3), Path(folder, "gaussian.parquet")).name
    'gaussian.parquet'
    """
    import pyarrow.parquet as pq

    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(target) as part:
        writer = None
        try:
            for table in _pieces(dataset):
                writer = writer or pq.ParquetWriter(part, table.schema)
                writer.write_table(table)
        finally:
            if writer is not None:
                writer.close()
    return target


def column_names(dataset: Dataset) -> list[str]:
    """Return the name each feature has in the file.

    Examples
    --------
    >>> from sfboost_lab.datasets import load
    >>> from sfboost_lab.datasets.export import column_names
    >>> column_names(load("ac"))
    ['stable_0', 'complementary_0']
    >>> column_names(load("colored_digits", view="table"))[-3:]
    ['pixel_63', 'red', 'green']
    """
    X = dataset.domains[0].X
    if hasattr(X, "columns"):
        return [str(column) for column in X.columns]
    if isinstance(X, ImageSequence):
        return ["picture", "name"]
    n_columns = int(np.prod(X.shape[1:]))
    if dataset.feature_names:
        return list(dataset.feature_names)
    named = {
        str(column): f"{group}_{k}"
        for group, columns in dataset.feature_groups.items()
        for k, column in enumerate(columns)
    }
    if X.ndim == 2 and dataset.unstable_features == [n_columns - 2, n_columns - 1] and not named:
        return [f"pixel_{k}" for k in range(n_columns - 2)] + list(COLORS)
    return [named.get(str(k), f"x_{k}") for k in range(n_columns)]


def _pieces(dataset: Dataset) -> Iterator[pa.Table]:
    names = column_names(dataset)
    clash = sorted({DOMAIN, LABEL} & set(names))
    if clash:
        raise ValueError(f"Features named {clash} would hide the columns of the export; rename them.")
    for domain in dataset.domains:
        for start in range(0, max(len(domain), 1), _ROWS):
            rows = slice(start, min(start + _ROWS, len(domain)))
            yield _table(dataset, domain, rows, names)


def _table(dataset: Dataset, domain: Domain, rows: slice, names: list[str]) -> pa.Table:
    import pyarrow as pa

    n_rows = rows.stop - rows.start
    labels = [None if k == UNLABELLED else dataset.classes[k] for k in domain.y[rows].tolist()]
    kind = pa.string() if any(isinstance(c, str) for c in dataset.classes) else pa.int64()
    columns: dict[str, Any] = {
        DOMAIN: pa.array([domain.name] * n_rows, pa.string()),
        LABEL: pa.array(labels, kind),
    }
    return pa.table(columns | _features(domain.X, rows, names))


def _features(X: Any, rows: slice, names: list[str]) -> dict[str, Any]:
    import pyarrow as pa

    if isinstance(X, ImageSequence):
        chosen = X[rows]
        encoded = [file.read_bytes() for file in chosen.files]
        return {"picture": pa.array(encoded, pa.binary()), "name": pa.array(chosen.names, pa.string())}
    if hasattr(X, "iloc"):
        piece = X.iloc[rows]
        kinds = {c: pa.float64() if X[c].dtype.kind in "biuf" else pa.string() for c in piece.columns}
        return {str(c): pa.array(piece[c], kind, from_pandas=True) for c, kind in kinds.items()}
    flat = X[rows].reshape(rows.stop - rows.start, -1)
    return {name: pa.array(np.ascontiguousarray(flat[:, k])) for k, name in enumerate(names)}
