"""Reading what a user passes to `adapt`: each mistake gets its own sentence."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from sfboost.adaptation.problem import UNKNOWN, IntArray
from sfboost.marginal.probabilities import FloatArray


def check_unstable(X: Any, *, n_rows: int, n_features: int | None = None) -> Any:
    """Return the unstable features as a float64 matrix (dense, or CSR if sparse), without writing to X."""
    if sparse.issparse(X):
        matrix: Any = sparse.csr_array(X, dtype=np.float64)
        values = matrix.data
    else:
        matrix = _as_float_matrix(X)
        values = matrix
    check_row_count(matrix, n_rows)
    if matrix.shape[1] == 0:
        raise ValueError("X_unstable has no columns: pass at least one unstable feature.")
    if n_features is not None and matrix.shape[1] != n_features:
        raise ValueError(
            f"X_unstable has {matrix.shape[1]} features but the adaptation was made with {n_features}: "
            "pass the same columns in the same order."
        )
    # The sum is finite only if every value is, and costs no array of flags.
    if not np.isfinite(values.sum()) and not np.isfinite(values).all():
        raise ValueError(
            "X_unstable contains NaN or infinity: impute those values or drop the rows first "
            "(a pipeline that imputes can be passed as the head)."
        )
    return matrix


def _as_float_matrix(X: Any) -> FloatArray:
    array = np.asarray(X)
    if array.dtype.kind == "O" or array.dtype.kind in "fiub":
        try:
            array = array.astype(np.float64, copy=False)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"X_unstable must be numbers ({error}): encode text columns first, or pass a pipeline "
                "that does as the head."
            ) from None
    else:
        raise ValueError(f"X_unstable must be numbers, got dtype {array.dtype}: encode it first.")
    if array.ndim != 2:
        raise ValueError(
            f"X_unstable must have two dimensions, got shape {array.shape}: "
            "reshape a single feature with X.reshape(-1, 1)."
        )
    return array


def check_row_count(X: Any, n_rows: int) -> None:
    """Refuse a matrix whose number of rows is not that of the stable probabilities."""
    if X.shape[0] != n_rows:
        raise ValueError(
            f"X_unstable has {X.shape[0]} rows but stable_proba has {n_rows}: pass both for the same rows, "
            "in the same order."
        )


def check_classes(classes: Any, n_classes: int) -> npt.NDArray[Any]:
    """The class labels, by default 0..K-1."""
    if classes is None:
        return np.arange(n_classes)
    names = np.asarray(classes)
    if names.shape != (n_classes,):
        raise ValueError(
            f"classes has {names.size} entries but stable_proba has {n_classes} columns: "
            "name one class per column, in the same order."
        )
    if len(np.unique(names)) != n_classes:
        raise ValueError("classes must be distinct: name each column of stable_proba once.")
    return names


def check_known_labels(y: Any, classes: npt.NDArray[Any], n_rows: int) -> IntArray:
    """Class positions of known labels; `UNKNOWN` where a label is missing.

    Missing is None, NaN, pandas' NA, a masked entry, or -1 where -1 is not one of the classes.
    """
    known = np.full(n_rows, UNKNOWN, dtype=np.intp)
    if y is None:
        return known
    hidden = np.ma.getmaskarray(y) if isinstance(y, np.ma.MaskedArray) else np.zeros(np.shape(y), dtype=bool)
    labels = np.asarray(y, dtype=object)
    if labels.shape != (n_rows,):
        raise ValueError(
            f"y has shape {labels.shape} but there are {n_rows} rows: pass one entry per row, "
            "None or NaN where the label is not known."
        )
    position = {label: i for i, label in enumerate(classes.tolist())}
    for i, label in enumerate(labels.tolist()):
        if hidden[i] or _is_missing(label):
            continue
        if label in position:
            known[i] = position[label]
        elif label != -1:
            raise ValueError(
                f"y[{i}] is {label!r}, a class that training never saw: known classes are "
                f"{classes.tolist()}; mark unknown labels as None or NaN."
            )
    return known


def _is_missing(label: Any) -> bool:
    if label is None:
        return True
    try:
        return bool(label != label)
    except TypeError:  # pandas.NA refuses to be compared
        return True


def check_weight(sample_weight: Any, n_rows: int) -> FloatArray:
    """Row weights: finite, not negative, not all zero; ones by default."""
    if sample_weight is None:
        return np.ones(n_rows)
    weight = np.asarray(sample_weight, dtype=np.float64)
    if weight.shape != (n_rows,):
        raise ValueError(
            f"sample_weight has shape {weight.shape} but there are {n_rows} rows: pass one per row."
        )
    if not np.isfinite(weight).all() or (weight < 0.0).any() or weight.sum() <= 0.0:
        raise ValueError("sample_weight must be finite, not negative, and not all zero.")
    return weight
