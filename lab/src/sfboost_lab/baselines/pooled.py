"""From scikit-learn's world: one pooled classifier, one per domain, and self-training. No torch needed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import SelfTrainingClassifier
from sklearn.utils import _safe_indexing

from sfboost.boosting.components import domain_splits, tuned_regression
from sfboost_lab.baselines.contract import Floats, LabelledRows, LinearHead, Method, TestAccess

_NO_LABEL = -1
# Training domains are left out in so many groups at most.
_MOST_GROUPS = 5


def as_matrix(X: Any) -> Any:
    """Flatten images to rows; leave tables and data frames as they are.

    Examples
    --------
    >>> import numpy as np
    >>> as_matrix(np.zeros((3, 2, 4))).shape
    (3, 8)
    """
    return X.reshape(len(X), -1) if isinstance(X, np.ndarray) and X.ndim > 2 else X


@dataclass(frozen=True, eq=False)
class EstimatorPredictor:
    """Classifiers of scikit-learn, fitted to positions in `classes_`; their probabilities are averaged.

    If there is one, and it is a pipeline that ends in logistic regression, the steps before are the features
    and the regression is the head.
    """

    classes_: npt.NDArray[Any]
    estimators: tuple[Any, ...]

    @property
    def _linear(self) -> LogisticRegression | None:
        last = self.estimators[0]
        last = last.steps[-1][1] if isinstance(last, Pipeline) else last
        alone = len(self.estimators) == 1
        return last if alone and isinstance(last, LogisticRegression) else None

    @property
    def head(self) -> LinearHead | None:
        """The logistic regression, if that is what comes last."""
        last = self._linear
        return None if last is None else LinearHead.of(last.coef_, last.intercept_)

    def features(self, X: Any) -> Floats:
        """Return what the classifier reads: the rows after all steps but the last."""
        X, first = as_matrix(X), self.estimators[0]
        if len(self.estimators) == 1 and isinstance(first, Pipeline) and len(first.steps) > 1:
            X = first[:-1].transform(X)
        return np.asarray(X, dtype=np.float64)

    def predict_proba(self, X: Any) -> Floats:
        """Return the mean of the classifiers' probabilities."""
        X = as_matrix(X)
        total = np.zeros((len(X), len(self.classes_)))
        for estimator in self.estimators:
            total[:, estimator.classes_] += estimator.predict_proba(X)
        return total / len(self.estimators)

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the most probable class of each row."""
        return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)])


@dataclass(frozen=True)
class _TableTrainer(Method):
    """A classifier: logistic regression unless another is given.

    Whether its columns are standardised, and its penalty, is what is best on training domains left out.
    """

    estimator: Any = None

    def _make(self, train: LabelledRows, seed: int) -> Any:
        if self.estimator is None:
            y = np.unique(train.y, return_inverse=True)[1]
            X, splits = np.asarray(as_matrix(train.X)), domain_splits(y, train.domain, _MOST_GROUPS)
            scaled, loss = tuned_regression(StandardScaler().fit_transform(X), y, train.domain, splits)
            plain, plain_loss = tuned_regression(X, y, train.domain, splits)
            # Columns of a network are of one kind; those of a table have units.
            return plain if plain_loss < loss else make_pipeline(StandardScaler(), scaled)
        made = clone(self.estimator)
        seeds = [name for name in made.get_params() if name.split("__")[-1] == "random_state"]
        return made.set_params(**dict.fromkeys(seeds, seed))


@dataclass(frozen=True)
class PooledTrainer(_TableTrainer):
    """One classifier on the rows of all training domains: what most people do.

    Parameters
    ----------
    estimator : classifier, optional
        Any scikit-learn classifier; by default logistic regression, on columns as they are or standardised,
        with the penalty that was best on training domains left out.

    Examples
    --------
    >>> import numpy as np
    >>> rows = LabelledRows(np.array([[0.0], [1.0]]), np.array(["a", "b"]), np.array([0, 1]))
    >>> PooledTrainer().fit(rows).predict(np.array([[2.0]]))
    array(['b'], dtype='<U1')
    """

    name: ClassVar[str] = "pooled"
    title: ClassVar[str] = "pooled classifier"

    def fit(
        self, train: LabelledRows, *, validation: LabelledRows | None = None, test: Any = None, seed: int = 0
    ) -> EstimatorPredictor:
        """Fit one classifier."""
        classes, y = np.unique(train.y, return_inverse=True)
        return EstimatorPredictor(classes, (self._make(train, seed).fit(as_matrix(train.X), y),))


@dataclass(frozen=True)
class PerDomain(_TableTrainer):
    """One classifier per training domain; a new row gets the mean of their probabilities.

    Parameters
    ----------
    estimator : classifier, optional
        As in `PooledTrainer`.

    Examples
    --------
    >>> import numpy as np
    >>> rows = LabelledRows(np.array([[0.0], [1.0]] * 2), np.array([0, 1] * 2), np.array([0, 0, 1, 1]))
    >>> len(PerDomain().fit(rows).estimators)
    2
    """

    name: ClassVar[str] = "per-domain"
    title: ClassVar[str] = "per-domain ensemble"

    def fit(
        self, train: LabelledRows, *, validation: LabelledRows | None = None, test: Any = None, seed: int = 0
    ) -> EstimatorPredictor:
        """Fit a classifier in every domain that has more than one class."""
        X, learner, fitted = as_matrix(train.X), self._make(train, seed), []
        classes, y = np.unique(train.y, return_inverse=True)
        for name in np.unique(train.domain):
            rows = np.flatnonzero(train.domain == name)
            if len(np.unique(y[rows])) > 1:
                fitted.append(clone(learner).fit(_safe_indexing(X, rows), y[rows]))
        if not fitted:
            raise ValueError("Every training domain has one class only; use the pooled classifier.")
        return EstimatorPredictor(classes, tuple(fitted))


@dataclass(frozen=True)
class SelfTraining(_TableTrainer):
    """scikit-learn's `SelfTrainingClassifier` on labelled training rows and unlabelled test rows.

    Parameters
    ----------
    estimator : classifier, optional
        As in `PooledTrainer`.
    threshold : float
        Rows predicted with more than this probability get their prediction as a label.

    Examples
    --------
    >>> import numpy as np
    >>> rows = LabelledRows(np.array([[0.0], [1.0]] * 5), np.array([0, 1] * 5), np.zeros(10))
    >>> SelfTraining().fit(rows, test=np.array([[2.0], [-1.0]])).predict(np.array([[2.0]]))
    array([1])
    """

    name: ClassVar[str] = "self-training"
    title: ClassVar[str] = "self-training"
    test_access: ClassVar[TestAccess] = "unlabelled"

    threshold: float = 0.75

    def fit(
        self, train: LabelledRows, *, validation: LabelledRows | None = None, test: Any = None, seed: int = 0
    ) -> EstimatorPredictor:
        """Fit on labelled rows, then on those of the test domain that become sure."""
        X = _stack(as_matrix(train.X), as_matrix(test))
        classes, y = np.unique(train.y, return_inverse=True)
        y = np.concatenate([y, np.full(len(test), _NO_LABEL)])
        learner = SelfTrainingClassifier(self._make(train, seed), threshold=self.threshold).fit(X, y)
        return EstimatorPredictor(classes, (learner.estimator_,))


def _stack(first: Any, second: Any) -> Any:
    if hasattr(first, "iloc"):
        import pandas as pd

        return pd.concat([first, second], ignore_index=True)
    return np.concatenate([np.asarray(first), np.asarray(second)])
