"""Writing any data set as one Parquet file, for the command line and for other tools.

One row per row: ``domain``, ``label``, then the features. Roles, classes and known features travel in the
metadata of the file, so that :func:`read_exported` gives the data set back.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sfboost.datasets.coloring import COLORS
from sfboost.datasets.contract import ROLES, Dataset, Domain
from sfboost.datasets.images import ImageSequence
from sfboost.whole_files import whole_file
from sfboost_lab.datasets.own_tables import UNLABELLED, from_table

if TYPE_CHECKING:
    import pyarrow as pa

METADATA_KEY = b"sfboost"
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
    try:
        import pyarrow.parquet as pq
    except ImportError as error:
        raise ImportError("Parquet needs pyarrow: pip install 'sfboost[app]'.") from error
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


def read_exported(path: str | Path) -> Dataset:
    """Return a data set that :func:`export` wrote, with its roles and known features, as a table.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from sfboost_lab.datasets import export, load, read_exported
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = export(load("ac", n_rows=5), Path(folder, "ac.parquet"))
    ...     read_exported(path).train
    ('train-0.95', 'train-0.7')
    """
    import pyarrow.parquet as pq

    schema = pq.read_schema(path)
    metadata = (schema.metadata or {}).get(METADATA_KEY)
    if metadata is None:
        raise ValueError(f"{path} was not written by export; read it with from_table, naming its columns.")
    if "picture" in schema.names:
        raise ValueError(f"{path} holds pictures, not a table; export their features instead (--features).")
    known = json.loads(metadata)
    table = from_table(
        path,
        target=LABEL,
        domain=DOMAIN,
        # Rows without labels are allowed everywhere here: what was written may be read.
        test=known["domains"],
        stable_features=known["stable_features"],
        unstable_features=known["unstable_features"],
        name=known["name"],
    )
    code = {label: k for k, label in enumerate(known["classes"])}
    # The last entry is where -1 points: no label stays no label.
    codes = np.array([*(code[label] for label in table.classes), UNLABELLED])
    return replace(
        table,
        domains=tuple(replace(domain, y=codes[domain.y]) for domain in table.domains),
        train=tuple(known["train"]),
        validate=tuple(known["validate"]),
        oracle=tuple(known["oracle"]),
        test=tuple(known["test"]),
        classes=tuple(known["classes"]),
        citation=known["citation"],
        licence=known["licence"],
    )


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
    metadata = {METADATA_KEY: json.dumps(_known(dataset, names)).encode()}
    for domain in dataset.domains:
        for start in range(0, max(len(domain), 1), _ROWS):
            rows = slice(start, min(start + _ROWS, len(domain)))
            yield _table(dataset, domain, rows, names).replace_schema_metadata(metadata)


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


def _known(dataset: Dataset, names: list[str]) -> dict[str, Any]:
    def named(columns: list[int] | list[str] | None) -> list[str] | None:
        return None if columns is None else [c if isinstance(c, str) else names[c] for c in columns]

    roles = {role: list(getattr(dataset, role)) for role in ROLES}
    return {
        "format": 1,
        "name": dataset.name,
        "domains": list(dataset.domain_names),
        "classes": list(dataset.classes),
        "stable_features": named(dataset.stable_features),
        "unstable_features": named(dataset.unstable_features),
        "citation": dataset.citation,
        "licence": dataset.licence,
        **roles,
    }
