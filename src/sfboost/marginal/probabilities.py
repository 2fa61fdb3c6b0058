"""Checking class probabilities once, at the door."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.intp]
BoolArray = npt.NDArray[np.bool_]

# How far a row may be from summing to one. float32 softmax outputs are within 1e-6.
_ROW_SUM_TOLERANCE = 1e-4


def as_probability_matrix(
    proba: Any, *, name: str = "stable_proba", n_classes: int | None = None
) -> FloatArray:
    """Return `proba` as a float64 matrix of shape (n, K) whose rows sum to one.

    Parameters
    ----------
    proba : array-like of shape (n,) or (n, K)
        Class probabilities. A vector is read as the probability of the second of two classes.
    name : str
        What to call the array in an error.
    n_classes : int, optional
        The number of classes that the caller expects.

    Examples
    --------
    >>> as_probability_matrix([0.25, 1.0])
    array([[0.75, 0.25],
           [0.  , 1.  ]])
    """
    matrix = np.asarray(proba)
    if matrix.dtype.kind not in "fiub":
        raise ValueError(f"{name} must be numbers, got dtype {matrix.dtype}: pass predict_proba's output.")
    matrix = matrix.astype(np.float64)
    if matrix.ndim == 2 and matrix.shape[1] == 1:
        matrix = matrix[:, 0]
    if matrix.ndim == 1:
        matrix = np.column_stack([1.0 - matrix, matrix])
    if matrix.ndim != 2:
        raise ValueError(f"{name} must have shape (n,) or (n, K), got {np.shape(proba)}.")
    if matrix.shape[0] == 0:
        raise ValueError(f"{name} has no rows: pass at least one row of probabilities.")
    if n_classes is not None and matrix.shape[1] != n_classes:
        raise ValueError(
            f"{name} has {matrix.shape[1]} columns but {n_classes} classes are expected: "
            "pass one column per class, in the order of `classes`."
        )
    _check_rows(matrix, name)
    np.clip(matrix, 0.0, 1.0, out=matrix)
    return matrix / matrix.sum(axis=1, keepdims=True)


def as_class_shares(shares: Any, n_classes: int, *, name: str = "prior") -> FloatArray:
    """Return `shares` as K positive float64 numbers that sum to one.

    Examples
    --------
    >>> as_class_shares([0.9, 0.1], 2)
    array([0.9, 0.1])
    """
    array = np.asarray(shares, dtype=np.float64)
    if array.shape != (n_classes,) or not (array > 0.0).all() or abs(array.sum() - 1.0) > _ROW_SUM_TOLERANCE:
        raise ValueError(f"{name}={shares!r} must be {n_classes} positive shares that sum to one.")
    return array / array.sum()


def _check_rows(matrix: FloatArray, name: str) -> None:
    if not np.isfinite(matrix).all():
        row = int(np.flatnonzero(~np.isfinite(matrix).all(axis=1))[0])
        raise ValueError(f"{name} has NaN or infinity in row {row}: every probability must be finite.")
    outside = (matrix < -_ROW_SUM_TOLERANCE) | (matrix > 1.0 + _ROW_SUM_TOLERANCE)
    if outside.any():
        row = int(np.flatnonzero(outside.any(axis=1))[0])
        raise ValueError(
            f"{name} has values outside [0, 1] in row {row} ({matrix[row]}): "
            "pass probabilities, not logits or decision values."
        )
    off = np.abs(matrix.sum(axis=1) - 1.0)
    if off.max() > _ROW_SUM_TOLERANCE:
        row = int(off.argmax())
        raise ValueError(
            f"{name} must sum to 1 in every row; row {row} sums to {matrix[row].sum():.6g}: "
            "normalise the rows first."
        )


def floored_log(proba: FloatArray) -> FloatArray:
    """Logarithm with zeros replaced by the smallest positive float, so that it is always finite.

    A probability of exactly zero keeps about -708 in log space: certain for every purpose, yet two
    contradictory certainties (Lemma of App. B) still subtract to a number instead of NaN.

    Examples
    --------
    >>> float(floored_log(np.array([0.0]))[0])
    -708.3964185322641
    """
    return np.log(np.maximum(proba, np.finfo(np.float64).tiny))


def log_softmax(logits: FloatArray) -> FloatArray:
    """Log-probabilities of shape (n, K), normalised over classes: as SciPy's, and faster for few classes.

    Inside, classes are rows: sums over them then run along contiguous memory.

    Examples
    --------
    >>> np.exp(log_softmax(np.log([[1.0, 3.0]])))
    array([[0.25, 0.75]])
    """
    by_class = np.array(logits.T, dtype=np.float64, order="C")
    by_class -= by_class.max(axis=0)
    by_class -= np.log(np.exp(by_class).sum(axis=0))
    return by_class.T
