"""Tables: CSV, Parquet, Arrow or a DataFrame with a target column and a domain column.

As the command does, ``from_table`` reads files (`sfboost.frames`) and ``encode`` turns columns into numbers
(`sfboost.frames`), decided on the training domains alone.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from sfboost.datasets.contract import Dataset, Domain, as_names
from sfboost.frames import Encoder, EncodingWarning, is_frame
from sfboost.frames.cells import refuse_twin_names
from sfboost.notices import left_out, warn

if TYPE_CHECKING:
    import pandas as pd

UNLABELLED = -1


def from_table(
    source: str | Path | pd.DataFrame,
    *,
    target: str,
    domain: str,
    test: str | Iterable[str] = (),
    validate: str | Iterable[str] = (),
    stable_features: Iterable[str] | None = None,
    unstable_features: Iterable[str] | None = None,
    drop: Iterable[str] = (),
    name: str = "table",
) -> Dataset:
    """Return a table as a data set with one domain for each value of its domain column.

    Parameters
    ----------
    source : path or frame
        CSV, Parquet or Arrow, read as the command reads it: delimiter, decimal comma and encoding are found.
        Or the frame itself (pandas, polars, pyarrow), which is not changed.
    target, domain : str
        The columns that hold label and domain.
    test, validate : str or iterable of str
        Domains of these roles; all others train. Their rows may lack labels: y is then -1.
    stable_features, unstable_features : iterable of str, optional
        Columns known to be stable or unstable.
    drop : iterable of str
        Columns to leave out, such as an identity.
    name : str
        Name of the data set.

    Notes
    -----
    Rows without a domain, and rows of training domains that lack a label, are left out with a warning.
    Numbers and truth values stay numbers; all else becomes text, and codes that look like numbers stay codes
    in a categorical column. Dates are refused: which part of a date matters is not ours to guess.

    Examples
    --------
    >>> import pandas as pd
    >>> from sfboost_lab.datasets.own_tables import from_table
    >>> rows = pd.DataFrame({"age": [40, 50, 60], "sick": ["no", "yes", "yes"], "town": ["A", "A", "B"]})
    >>> made = from_table(rows, target="sick", domain="town", test="B", stable_features=["age"])
    >>> made.train, made.classes, made.domain("A").y
    (('A',), ('no', 'yes'), array([0, 1]))
    """
    stable, unstable = _optional_list(stable_features), _optional_list(unstable_features)
    dropped = list(drop)
    named = [target, domain, *dropped, *(stable or []), *(unstable or [])]
    table = _read(source, domain, named)
    _check_columns(table, named)
    table = _with_domain(table, domain)
    features = table.drop(columns=list(dict.fromkeys([target, domain, *dropped])))
    _check_apart(features, stable, unstable)
    for column in features.columns:  # `assign` would take a column named "self" for itself
        features[column] = _plain(features[column])
    where = table[domain].astype(str).to_numpy(dtype=object)
    y, classes = _labels(table[target])
    names = list(dict.fromkeys(where.tolist()))
    held = as_names(test), as_names(validate)
    train = tuple(n for n in names if n not in (*held[0], *held[1]))
    without = [n for n in train if (y[where == n] == UNLABELLED).all()]
    if without:
        raise ValueError(
            f"Training domains {without} have no row with {target!r}; training needs labels. Leave these "
            "domains out, or name them as test domains."
        )
    unlabelled = np.isin(where, train) & (y == UNLABELLED)
    if unlabelled.any():
        warn(left_out(int(unlabelled.sum()), target), EncodingWarning)
        features, y, where = features[~unlabelled], y[~unlabelled], where[~unlabelled]
    domains = tuple(Domain(n, features[where == n].reset_index(drop=True), y[where == n]) for n in names)
    return Dataset(
        name=name,
        domains=domains,
        train=train,
        validate=held[1],
        test=held[0],
        classes=classes,
        stable_features=stable,
        unstable_features=unstable,
        feature_names=[str(c) for c in features.columns],
    )


def encode(dataset: Dataset) -> Dataset:
    """Return the data set as numbers, by `sfboost.frames.Encoder` fitted on its training domains.

    Known stable and unstable columns become positions in the matrix, ready for
    ``StableFeatureBoosting(stable_features=..., unstable_features=...)``. Cells that are
    missing are filled in, and an `EncodingWarning` says where.

    Examples
    --------
    >>> import pandas as pd
    >>> from sfboost_lab.datasets.own_tables import encode, from_table
    >>> rows = pd.DataFrame({"age": [40, 50, 60], "sex": ["f", "m", "x"],
    ...                      "sick": [0, 1, 1], "town": ["A", "A", "B"]})
    >>> made = encode(from_table(rows.iloc[:2], target="sick", domain="town", stable_features=["sex"]))
    >>> made.feature_names, made.stable_features, made.domain("A").X
    (['age', 'sex=m'], [1], array([[40.,  0.],
           [50.,  1.]]))
    """
    X = dataset.pooled("train")[0]
    if not hasattr(X, "columns"):
        raise TypeError(f"Data set {dataset.name!r} holds {type(X).__name__}, not a table: use it as it is.")
    encoder = Encoder.fit(X, [str(name) for name in X.columns])
    others = [domain for domain in dataset.domains if domain.name not in dataset.train]
    remarks = encoder.remarks(X, "training rows")
    remarks += [remark for domain in others for remark in encoder.remarks(domain.X, f"{domain.name} rows")]
    if remarks:
        warn(" ".join(remarks), EncodingWarning)

    def places(names: Sequence[Any] | None) -> list[int] | None:
        return None if names is None else [encoder.names.index(name) for name in encoder.outputs_of(names)]

    return replace(
        dataset,
        domains=tuple(replace(domain, X=encoder.encode(domain.X)) for domain in dataset.domains),
        stable_features=places(dataset.stable_features),
        unstable_features=places(dataset.unstable_features),
        feature_names=list(encoder.names),
    )


def _read(source: Any, domain: str, named: list[str]) -> pd.DataFrame:
    import pandas as pd

    if isinstance(source, pd.DataFrame):
        return source
    if is_frame(source):
        return nw.from_native(source, eager_only=True).to_pandas()
    return _read_file(Path(source), domain, named)


def _read_file(path: Path, domain: str, named: list[str]) -> pd.DataFrame:
    import pyarrow as pa

    from sfboost.frames.reading import find, read, without_index

    if not path.exists():
        raise FileNotFoundError(f"There is no file {path}: check the name.")
    found = find(str(path.absolute()))  # "-" is a file like any other here
    # Names of domains are text: 01 stays 01.
    table, remarks = without_index(read(found, {domain: pa.string()}), named)
    if remarks:
        warn(" ".join(remarks), EncodingWarning)
    frame: pd.DataFrame = table.to_pandas(ignore_metadata=True, date_as_object=False)
    return frame


def _check_columns(table: pd.DataFrame, wanted: list[str]) -> None:
    missing = [column for column in wanted if column not in table.columns]
    if missing:
        raise ValueError(f"The table has no column {missing}; it has {[str(c) for c in table.columns]}.")
    refuse_twin_names(list(table.columns), "The table")


def _check_apart(features: pd.DataFrame, stable: list[str] | None, unstable: list[str] | None) -> None:
    outside = [c for c in [*(stable or []), *(unstable or [])] if c not in features.columns]
    both = sorted(set(stable or []) & set(unstable or []))
    if outside or both:
        raise ValueError(
            f"Columns {outside or both} cannot be features that are known to be stable or unstable: they are "
            f"{'dropped, the target or the domain' if outside else 'in both lists'}. Remove them there."
        )


def _with_domain(table: pd.DataFrame, domain: str) -> pd.DataFrame:
    """The rows that say what domain they are of."""
    known = table[domain].notna()
    if not known.any():
        raise ValueError(f"No row says its {domain!r}: each row needs a domain.")
    if not known.all():
        warn(left_out(int((~known).sum()), domain), EncodingWarning)
    return table[known]


def _labels(target: pd.Series[Any]) -> tuple[NDArray[np.int64], tuple[Hashable, ...]]:
    known = target.dropna()
    values = known.to_numpy() if known.dtype.kind in "biuf" else known.astype(str).to_numpy(dtype=str)
    if values.dtype.kind in "fO" and all(float(value).is_integer() for value in values):
        # A missing label turns whole numbers into floats; the classes are still whole numbers.
        values = values.astype(np.int64)
    classes, codes = np.unique(values, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(f"Column {target.name!r} holds {len(classes)} class; a classifier needs 2 or more.")
    y = np.full(len(target), UNLABELLED, dtype=np.int64)
    y[target.notna().to_numpy()] = codes
    return y, tuple(classes.tolist())


def _plain(column: pd.Series[Any]) -> pd.Series[Any]:
    if column.dtype.kind in "mM":
        raise ValueError(
            f"Column {column.name!r} holds dates or times; turn them into numbers that matter, or drop it."
        )
    if column.dtype.kind in "biuf":
        # Nullable types of pandas become plain floats with NaN.
        return column.astype("Float64").astype(float) if _is_nullable(column) else column.astype(float)
    text = column.astype(object)
    text = text.where(column.isna(), text.map(str)).where(column.notna(), np.nan).astype(object)
    return text.astype("category") if str(column.dtype) == "category" else text


def _is_nullable(column: pd.Series[Any]) -> bool:
    return not isinstance(column.dtype, np.dtype)


def _optional_list(names: Iterable[str] | None) -> list[str] | None:
    return None if names is None else list(names)
