"""Tables: CSV, Parquet or a DataFrame with a target column and a domain column.

``from_table`` keeps the columns as they are; ``encode`` turns them into numbers by the default pipeline,
fitted on the training domains alone.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sfboost.datasets.contract import Dataset, Domain, as_names

if TYPE_CHECKING:
    import pandas as pd
    from sklearn.compose import ColumnTransformer

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
    source : path or DataFrame
        ``.csv``, ``.tsv``, ``.parquet``, or the frame itself, which is not changed.
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
    Numbers and truth values stay numbers. All else becomes text, in which a missing value is its own
    category. Dates are refused: which part of a date matters is not ours to guess.

    Examples
    --------
    >>> import pandas as pd
    >>> from sfboost.datasets import from_table
    >>> rows = pd.DataFrame({"age": [40, 50, 60], "sick": ["no", "yes", "yes"], "town": ["A", "A", "B"]})
    >>> made = from_table(rows, target="sick", domain="town", test="B", stable_features=["age"])
    >>> made.train, made.classes, made.domain("A").y
    (('A',), ('no', 'yes'), array([0, 1]))
    """
    table = _read(source)
    stable, unstable = _optional_list(stable_features), _optional_list(unstable_features)
    dropped = list(drop)
    _check_columns(table, [target, domain, *dropped, *(stable or []), *(unstable or [])])
    features = table.drop(columns=list(dict.fromkeys([target, domain, *dropped])))
    _check_apart(features, stable, unstable)
    features = features.assign(**{str(c): _plain(features[c]) for c in features.columns})
    where = _domain_of(table, domain)
    y, classes = _labels(table[target])
    names = list(dict.fromkeys(where.tolist()))
    held = as_names(test), as_names(validate)
    train = tuple(n for n in names if n not in (*held[0], *held[1]))
    without = [n for n in train if (y[where == n] == UNLABELLED).any()]
    if without:
        raise ValueError(
            f"Training domains {without} have rows without {target!r}; training needs labels. Drop these "
            "rows, or name the domains as test domains."
        )
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


def load_table(
    *,
    source: str | Path,
    target: str,
    domain: str,
    test: str | Iterable[str] = (),
    validate: str | Iterable[str] = (),
    stable_features: Iterable[str] | None = None,
    unstable_features: Iterable[str] | None = None,
    drop: Iterable[str] = (),
    encoded: bool = False,
    random_state: int = 0,
    data_dir: Path | None = None,
) -> Dataset:
    """Return one's own table by the name ``table``; a relative source is looked for in the data folder.

    Examples
    --------
    >>> from sfboost.lab.datasets import load
    >>> load("table", source="rows.csv", target="sick", domain="town", test="B")  # doctest: +SKIP
    """
    path = (data_dir or Path()) / source
    dataset = from_table(
        path,
        target=target,
        domain=domain,
        test=test,
        validate=validate,
        stable_features=stable_features,
        unstable_features=unstable_features,
        drop=drop,
        name=path.stem,
    )
    return encode(dataset) if encoded else dataset


def default_encoder(X: pd.DataFrame, columns: Mapping[str, list[str]] | None = None) -> ColumnTransformer:
    """Return the default pipeline for a table, not yet fitted.

    Numbers: the median where missing, a column that says so, then mean 0 and variance 1. Text: one column per
    category seen in training, "missing" being one; a category not seen there is all zeros.

    Parameters
    ----------
    X : DataFrame
        Its types decide the treatment of each column.
    columns : mapping of str to list of str, optional
        Named groups of columns, encoded one after the other; by default one group of all.

    Examples
    --------
    >>> import pandas as pd
    >>> from sfboost.datasets.tables import default_encoder
    >>> X = pd.DataFrame({"age": [40.0, None, 60.0], "sex": ["f", "m", None]})
    >>> default_encoder(X).fit_transform(X).shape
    (3, 5)
    """
    # Imported here because scikit-learn imports pandas wherever it is installed.
    from sklearn.compose import ColumnTransformer
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    parts: list[tuple[str, Any, list[str]]] = []
    for group, names in (columns or {"all": list(X.columns)}).items():
        numbers = [c for c in names if X[c].dtype.kind in "biuf"]
        text = [c for c in names if c not in numbers]
        fill = SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True)
        parts.append((f"{group}-numbers", make_pipeline(fill, StandardScaler()), numbers))
        parts.append((f"{group}-text", OneHotEncoder(handle_unknown="ignore", sparse_output=False), text))
    return ColumnTransformer(parts, verbose_feature_names_out=False, sparse_threshold=0.0)


def encode(dataset: Dataset) -> Dataset:
    """Return the data set as numbers, by the default pipeline fitted on its training domains.

    Known stable and unstable columns become positions in the matrix, ready for
    ``StableFeatureBoosting(stable_features=..., unstable_features=...)``.

    Examples
    --------
    >>> import pandas as pd
    >>> from sfboost.datasets import encode, from_table
    >>> rows = pd.DataFrame({"age": [40, 50, 60], "sex": ["f", "m", "x"],
    ...                      "sick": [0, 1, 1], "town": ["A", "A", "B"]})
    >>> made = encode(from_table(rows, target="sick", domain="town", test="B", stable_features=["sex"]))
    >>> made.feature_names, made.stable_features, made.domain("B").X[:, made.stable_features]
    (['sex_f', 'sex_m', 'age'], [0, 1], array([[0., 0.]]))
    """
    X = dataset.pooled("train")[0]
    if not hasattr(X, "columns"):
        raise TypeError(f"Data set {dataset.name!r} holds {type(X).__name__}, not a table: use it as it is.")
    stable, unstable = dataset.stable_features or [], dataset.unstable_features or []
    groups = {
        "stable": [str(c) for c in stable],
        "unstable": [str(c) for c in unstable],
        "other": [c for c in X.columns if c not in stable and c not in unstable],
    }
    encoder = default_encoder(X, groups).fit(X)
    places = {
        group: [
            place
            for kind in ("numbers", "text")
            for place in range(*encoder.output_indices_[f"{group}-{kind}"].indices(2**31))
        ]
        for group in groups
    }

    def numbers(table: pd.DataFrame) -> NDArray[np.float64]:
        return np.asarray(encoder.transform(table), dtype=np.float64)

    domains = tuple(replace(domain, X=numbers(domain.X)) for domain in dataset.domains)
    return replace(
        dataset,
        domains=domains,
        stable_features=None if dataset.stable_features is None else places["stable"],
        unstable_features=None if dataset.unstable_features is None else places["unstable"],
        feature_names=[str(c) for c in encoder.get_feature_names_out()],
    )


def _read(source: str | Path | pd.DataFrame) -> pd.DataFrame:
    try:
        import pandas as pd
    except ImportError as error:
        raise ImportError("Tables need pandas: pip install 'sfboost[app]'.") from error
    if isinstance(source, pd.DataFrame):
        return source
    path = Path(source)
    ending = path.suffix.lower()
    if ending in (".parquet", ".pq"):
        return pd.read_parquet(path)
    if ending in (".csv", ".tsv", ".txt", ".data"):
        return pd.read_csv(path, sep="\t" if ending == ".tsv" else ",")
    raise ValueError(f"Got {path.name}; tables are read from .csv, .tsv and .parquet files, or a DataFrame.")


def _check_columns(table: pd.DataFrame, wanted: list[str]) -> None:
    missing = [column for column in wanted if column not in table.columns]
    if missing:
        raise ValueError(f"The table has no column {missing}; it has {[str(c) for c in table.columns]}.")
    if table.columns.has_duplicates:
        twice = sorted({str(c) for c in table.columns[table.columns.duplicated()]})
        raise ValueError(f"The table has several columns named {twice}; give each its own name.")


def _check_apart(features: pd.DataFrame, stable: list[str] | None, unstable: list[str] | None) -> None:
    outside = [c for c in [*(stable or []), *(unstable or [])] if c not in features.columns]
    both = sorted(set(stable or []) & set(unstable or []))
    if outside or both:
        raise ValueError(
            f"Columns {outside or both} cannot be features that are known to be stable or unstable: they are "
            f"{'dropped, the target or the domain' if outside else 'in both lists'}. Remove them there."
        )


def _domain_of(table: pd.DataFrame, domain: str) -> NDArray[Any]:
    n_missing = int(table[domain].isna().sum())
    if n_missing:
        raise ValueError(f"{n_missing} rows have no {domain!r}; each row needs a domain. Fill or drop them.")
    return table[domain].astype(str).to_numpy(dtype=object)


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
    return text.where(column.isna(), text.map(str)).where(column.notna(), np.nan).astype(object)


def _is_nullable(column: pd.Series[Any]) -> bool:
    return not isinstance(column.dtype, np.dtype)


def _optional_list(names: Iterable[str] | None) -> list[str] | None:
    return None if names is None else list(names)
