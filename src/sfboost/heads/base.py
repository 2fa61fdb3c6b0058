"""What every head shares, and any scikit-learn classifier as a head.

`fit` takes labels or label probabilities, and `predict` is the argmax.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.exceptions import DataConversionWarning
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    check_consistent_length,
    check_is_fitted,
    has_fit_parameter,
    validate_data,
)

from sfboost.marginal.probabilities import FloatArray, as_probability_matrix, floored_log
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

    def _number_classes(self, n_classes: int) -> None:
        """Name the classes 0..K-1 where nobody has named them."""
        self.classes_ = getattr(self, "classes_", np.arange(n_classes))

    def predict_proba(self, X: Any) -> FloatArray:
        """Class probabilities of shape (n, K)."""
        return np.exp(self.predict_log_proba(X))

    def predict_log_proba(self, X: Any) -> FloatArray:
        """Logarithms of the class probabilities, finite wherever the logits are."""
        raise NotImplementedError

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The most probable class of each row."""
        best = self.predict_log_proba(X).argmax(axis=1)  # first: it says what is not fitted
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


class SoftLabelClassifier(MetaEstimatorMixin, SoftLabelMixin):
    """Fit any classifier with `sample_weight` to soft labels: row i once per class y, with weight t_iy.

    Parameters
    ----------
    estimator : classifier or pipeline, default=None
        Needs `predict_proba`, and `sample_weight` in `fit` (of the last step, for a pipeline). None is
        scikit-learn's LogisticRegression.

    Attributes
    ----------
    estimator_ : the fitted clone
    classes_ : array of shape (K,)

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X = np.array([[0.0], [1.0]])
    >>> head = SoftLabelClassifier(DecisionTreeClassifier()).fit(X, [[0.8, 0.2], [0.3, 0.7]])
    >>> head.predict_proba(X)
    array([[0.8, 0.2],
           [0.3, 0.7]])
    """

    def __init__(self, estimator: Any = None) -> None:
        self.estimator = estimator

    def fit_soft(self, X: Any, targets: FloatArray, sample_weight: FloatArray | None = None) -> Self:
        """Fit to rows and to targets of shape (n, K) whose rows sum to one."""
        if (targets < 0.0).any():
            raise ValueError("A wrapped classifier cannot fit negative label weights: use our logistic head.")
        n_rows, n_classes = targets.shape
        weight = targets if sample_weight is None else targets * sample_weight[:, None]
        # Column-major order keeps all rows of a class together; rows of no weight are left out.
        rows, labels = np.tile(np.arange(n_rows), n_classes), np.repeat(np.arange(n_classes), n_rows)
        weight = weight.T.ravel()
        used = weight > 0.0
        estimator = LogisticRegression() if self.estimator is None else clone(self.estimator)
        self._number_classes(n_classes)
        self.estimator_ = fit_with_weight(
            estimator, _safe_indexing(X, rows[used]), labels[used], weight[used], required=True
        )
        self.n_features_in_ = X.shape[1]
        return self

    def predict_proba(self, X: Any) -> FloatArray:
        """Class probabilities; a class that had no weight in `fit` gets zero."""
        check_is_fitted(self)
        known = self.estimator_.predict_proba(X)
        if known.shape[1] == len(self.classes_):
            return np.asarray(known, dtype=np.float64)
        proba = np.zeros((known.shape[0], len(self.classes_)))
        proba[:, self.estimator_.classes_] = known
        return proba

    def predict_log_proba(self, X: Any) -> FloatArray:
        """Logarithms of the class probabilities; zero is floored so that they are finite."""
        return floored_log(self.predict_proba(X))


def fit_with_weight(
    estimator: Any, X: Any, y: Any, sample_weight: FloatArray | None, *, required: bool = False
) -> Any:
    """Fit `estimator`, handing the weights to it, or to the steps of a pipeline that take them.

    With `required`, an estimator that takes no weights is refused; otherwise weights that cannot be
    used are refused too: dropping them silently would change the answer.
    """
    if sample_weight is None:
        return estimator.fit(X, y)
    last = estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator
    if not has_fit_parameter(last, "sample_weight"):
        why = "soft labels are passed as row weights" if required else "sample_weight was given"
        raise ValueError(
            f"{type(last).__name__}.fit takes no sample_weight, but {why}: use a classifier that takes "
            "weights (LogisticRegression, RandomForestClassifier, HistGradientBoostingClassifier, …)."
        )
    if last is estimator:
        return estimator.fit(X, y, sample_weight=sample_weight)
    # Every step that takes weights gets them, so that a weight counts like a repeated row. They are
    # named step by step, whatever the user's metadata routing, in this thread only.
    weights = {
        f"{name}__sample_weight": sample_weight
        for name, step in estimator.steps
        if has_fit_parameter(step, "sample_weight")
    }
    with config_context(enable_metadata_routing=False):
        return estimator.fit(X, y, **weights)
