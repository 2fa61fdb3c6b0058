"""StableFeatureBoosting among the domain-adaptation methods of skada, in scikit-learn's own cross-validation.

skada gives `fit` the rows of all domains at once, and `sample_domain`: a positive number is a source domain,
a negative one the target, whose labels are hidden. `AsSkadaEstimator` is what its splitters and scorers take.
The splitter here leaves out one domain in turn as skada's does, so that this runs without skada.
"""

import warnings
from typing import ClassVar

import numpy as np
import sklearn
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.model_selection import cross_val_score

from sfboost import AdaptationWarning, StableFeatureBoosting


class AsSkadaEstimator(ClassifierMixin, BaseEstimator):
    """Fits a model to source rows and adapts it to those of the target."""

    __metadata_request__fit: ClassVar = {"sample_domain": True}

    def __init__(self, model):
        self.model = model

    def fit(self, X, y, sample_domain):
        """Fit and adapt; labels of target rows are not looked at."""
        source = sample_domain >= 0
        fitted = clone(self.model).fit(X[source], y[source], sample_domain=sample_domain[source])
        self.adapted_, self.classes_ = fitted.adapt(X[~source]), fitted.classes_
        return self

    def predict_proba(self, X, sample_domain=None):
        """Probabilities in the target domain."""
        return self.adapted_.predict_proba(X)

    def predict(self, X, sample_domain=None):
        """Classes in the target domain."""
        return self.adapted_.predict(X)


class LeaveOneDomainOut(BaseEstimator):
    """Each domain in turn is the target, as its negative number says; half of its rows are scored."""

    __metadata_request__split: ClassVar = {"sample_domain": True}

    def get_n_splits(self, X=None, y=None, sample_domain=None):
        """Count the domains."""
        return len(np.unique(np.abs(sample_domain)))

    def split(self, X, y=None, sample_domain=None):
        """Rows of the other domains and half of the target's; its other half."""
        for domain in np.unique(np.abs(sample_domain)):
            target = np.flatnonzero(sample_domain == -domain)
            sources = np.flatnonzero((sample_domain > 0) & (sample_domain != domain))
            yield np.concatenate([sources, target[::2]]), target[1::2]


rng = np.random.default_rng(0)


def hospital(agreement):
    """A stable finding that is right in 75 %, and another that agrees with the label as the hospital says."""
    y = rng.integers(0, 2, 800)
    right = rng.random((800, 2)) < [0.75, agreement]
    return np.where(right, y[:, None], 1 - y[:, None]).astype(float), y


parts = [hospital(agreement) for agreement in (0.95, 0.9, 0.9, 0.85, 0.85, 0.8, 0.1)]
X, y = (np.concatenate([part[i] for part in parts]) for i in (0, 1))
domain = np.repeat(np.arange(1, 8), 800)
# Every domain stands there twice, as skada packs it: as a source and as a target.
X, y, domain = np.concatenate([X, X]), np.concatenate([y, y]), np.concatenate([domain, -domain])

# With the seventh among the sources, little can be told of the others: `fit` and `adapt` say so each time.
warnings.simplefilter("ignore", AdaptationWarning)
with sklearn.config_context(enable_metadata_routing=True):
    estimator = AsSkadaEstimator(StableFeatureBoosting([0], [1]))
    scores = cross_val_score(
        estimator, X, y, cv=LeaveOneDomainOut(), params={"sample_domain": domain}, error_score="raise"
    )
print("left out in turn:", ", ".join(f"{score:.2f}" for score in scores))
