"""What every head shares: `fit` takes labels or label probabilities, `predict` is the argmax."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_consistent_length, validate_data

from sfboost.marginal.probabilities import FloatArray, as_probability_matrix
from sfboost.notices import warn


class SoftLabelMixin(ClassifierMixin, BaseEstimator):
    """A classifier whose `fit` takes class labels of shape (n,) or probabilities of shape (n, K).

    Public `fit` validates; a subclass writes `fit_soft`, which does the mathematics on clean arrays and
    is what the adaptation engine calls.
    """

    classes_: npt.NDArray[Any]
    n_features_in_: int

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit to labels of shape (n,) or to label probabilities of shape (n, K).

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
        y : array-like of shape (n,) or (n, K)
            With a matrix the classes are 0..K-1.
        sample_weight : array-like of shape (n,), optional
        """
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64)
        targets, classes = soft_targets(y)
        check_consistent_length(X, targets)
        if len(classes) < 2:
            raise ValueError(
                f"{type(self).__name__} got one class only ({classes[0]}): it needs at least two classes."
            )
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        self.classes_ = classes
        return self.fit_soft(X, targets, weight)

    def fit_soft(self, X: Any, targets: FloatArray, sample_weight: FloatArray | None = None) -> Self:
        """Fit to clean rows and to targets of shape (n, K) whose rows sum to one."""
        raise NotImplementedError

    def predict_proba(self, X: Any) -> FloatArray:
        """Class probabilities of shape (n, K)."""
        return np.exp(self.predict_log_proba(X))

    def predict_log_proba(self, X: Any) -> FloatArray:
        """Logarithms of the class probabilities, finite wherever the logits are."""
        raise NotImplementedError

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The most probable class of each row."""
        best = self.predict_log_proba(X).argmax(axis=1)
        return self.classes_[best]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def soft_targets(y: Any) -> tuple[FloatArray, npt.NDArray[Any]]:
    """Targets of shape (n, K) and the classes, from labels or from label probabilities."""
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None: pass labels or probabilities.")
    labels = np.asarray(y)
    if labels.ndim == 2 and labels.shape[1] > 1:
        targets = as_probability_matrix(labels, name="y")
        return targets, np.arange(targets.shape[1])
    if labels.ndim == 2:
        warn(
            "A column-vector y was passed when a 1d array was expected: it is read as labels.",
            DataConversionWarning,
        )
    labels = labels.ravel()
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise ValueError("Input y contains NaN or infinity: drop those rows, or give them a label.")
    check_classification_targets(labels)
    classes, place = np.unique(labels, return_inverse=True)
    return np.eye(len(classes))[place], classes


def normalised_weight(sample_weight: FloatArray | None, n_rows: int) -> FloatArray:
    """Row weights that sum to one."""
    if sample_weight is None:
        return np.full(n_rows, 1.0 / n_rows)
    return sample_weight / sample_weight.sum()
