"""One pooled classifier of scikit-learn. No torch needed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from sfboost.boosting.components import domain_splits, tuned_regression
from sfboost_lab.baselines.contract import Floats, LabelledRows, LinearHead, Method, MostProbable

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
class EstimatorPredictor(MostProbable):
    """A classifier of scikit-learn, fitted to positions in `classes_`.

    If it is a pipeline that ends in logistic regression, the steps before are the features and the
    regression is the head.
    """

    classes_: npt.NDArray[Any]
    estimator: Any

    @property
    def head(self) -> LinearHead | None:
        """The logistic regression, if that is what comes last."""
        last = self.estimator.steps[-1][1] if isinstance(self.estimator, Pipeline) else self.estimator
        return LinearHead.of(last.coef_, last.intercept_) if isinstance(last, LogisticRegression) else None

    def features(self, X: Any) -> Floats:
        """Return what the classifier reads: the rows after all steps but the last."""
        X = as_matrix(X)
        if isinstance(self.estimator, Pipeline) and len(self.estimator.steps) > 1:
            X = self.estimator[:-1].transform(X)
        return np.asarray(X, dtype=np.float64)

    def predict_proba(self, X: Any) -> Floats:
        """Return class probabilities; none for a class that the classifier has not met."""
        X = as_matrix(X)
        proba = np.zeros((len(X), len(self.classes_)))
        proba[:, self.estimator.classes_] = self.estimator.predict_proba(X)
        return proba


@dataclass(frozen=True)
class PooledTrainer(Method):
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

    estimator: Any = None

    def fit(
        self, train: LabelledRows, *, validation: LabelledRows | None = None, seed: int = 0
    ) -> EstimatorPredictor:
        """Fit one classifier."""
        classes, y = np.unique(train.y, return_inverse=True)
        return EstimatorPredictor(classes, self._make(train, seed).fit(as_matrix(train.X), y))

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
