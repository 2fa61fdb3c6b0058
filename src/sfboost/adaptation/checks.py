"""Reading what a user passes to `adapt`: each mistake gets its own sentence."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from sfboost.adaptation.problem import UNKNOWN
from sfboost.marginal.probabilities import BoolArray, FloatArray, IntArray

#: Columns and weights whose largest magnitude is beyond these would overflow, or vanish, when squared.
SMALLEST, LARGEST = 1e-100, 1e100


def in_range(values: Any) -> BoolArray:
    """Which columns of a matrix of finite numbers can be squared and summed; a column of zeros can."""
    high, low = values.max(axis=0), values.min(axis=0)
    if sparse.issparse(values):
        high, low = high.toarray().ravel(), low.toarray().ravel()
    size = np.maximum(high, -low)
    return (size == 0.0) | ((size >= SMALLEST) & (size <= LARGEST))


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
    with np.errstate(over="ignore", invalid="ignore"):
        # The sum is finite only if every value is, and costs no array of flags.
        finite = np.isfinite(values.sum()) or np.isfinite(values).all()
    if not finite:
        raise ValueError(
            "X_unstable contains NaN or infinity: impute those values or drop the rows first "
            "(a pipeline that imputes can be passed as the head)."
        )
    fits = max(values.max(initial=0.0), -values.min(initial=0.0)) <= LARGEST
    # When predicting, a row may well hold a number next to zero.
    if not fits or (n_features is None and not in_range(matrix).all()):
        raise ValueError(
            f"X_unstable has columns whose numbers are beyond {LARGEST:g} or all below {SMALLEST:g}: express "
            "them in another unit."
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
    if array.ndim == 1:
        array = array.reshape(-1, 1)  # one feature
    if array.ndim != 2:
        raise ValueError(f"X_unstable must have shape (n, d), got {array.shape}: one row per case.")
    return array


def as_rows(X: Any, n_rows: int) -> Any:
    """Rows for a wrapped pipeline: a DataFrame stays one, a vector is one feature, a list an array."""
    if not hasattr(X, "shape"):
        X = np.asarray(X)
    if len(X.shape) == 1:
        X = X.to_frame() if hasattr(X, "to_frame") else np.reshape(X, (-1, 1))
    check_row_count(X, n_rows)
    return X


def check_row_count(X: Any, n_rows: int) -> None:
    """Refuse a matrix whose number of rows is not that of the stable probabilities."""
    if len(X.shape) == 0:
        raise ValueError(f"X_unstable must be a table of {n_rows} rows, got {X}.")
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
        if hidden[i] or is_missing(label):
            continue
        if label in position:
            known[i] = position[label]
        elif label != -1:
            raise ValueError(
                f"y[{i}] is {label!r}, a class that training never saw: known classes are "
                f"{classes.tolist()}; mark unknown labels as None or NaN."
            )
    return known


def is_missing(label: Any) -> bool:
    """Whether a label or a name is None, NaN, NaT or pandas' NA."""
    if label is None:
        return True
    try:
        return bool(label != label)
    except TypeError:  # pandas.NA refuses to be compared
        return True


def check_weight(sample_weight: Any, n_rows: int) -> FloatArray:
    """Row weights that add up to the number of equally weighted rows that they are worth.

    Only their ratios matter: they are scaled to (Σw)² / Σw² (Kish), which is n if all are equal.
    """
    if sample_weight is None:
        return np.ones(n_rows)
    weight = np.asarray(sample_weight, dtype=np.float64)
    if weight.shape != (n_rows,):
        raise ValueError(
            f"sample_weight has shape {weight.shape} but there are {n_rows} rows: pass one per row."
        )
    if not np.isfinite(weight).all() or (weight < 0.0).any() or not weight.any():
        raise ValueError("sample_weight must be finite, not negative, and not all zero.")
    weight = weight / weight.max()
    return weight * (weight.sum() / (weight @ weight))
