"""What the suite learns from own domains, and how much the pooled model listens to each feature."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property, partial
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sfboost_lab.experiments.shifts.kinds import Features, Floats
from sfboost_lab.experiments.shifts.suite_domains import SuiteDomains

#: Rows on which the importance of a feature is measured.
_IMPORTANCE_ROWS = 2000
#: Learner → its hyper-parameters.
LEARNERS: dict[str, dict[str, Any]] = {
    "logistic": {"C": 1.0, "max_iter": 1000},
    "boosting": {"max_iter": 60, "max_leaf_nodes": 15},
}


def make_learner(name: str, hyper: Mapping[str, Any]) -> Any:
    """Return an unfitted classifier.

    Examples
    --------
    >>> make_learner("boosting", {"max_iter": 60}).max_iter
    60
    """
    if name == "logistic":
        return make_pipeline(StandardScaler(), LogisticRegression(**hyper))
    return HistGradientBoostingClassifier(random_state=0, **hyper)


class Fitted:
    """The own domains and what was learned from them, each thing once.

    Parameters
    ----------
    domains : SuiteDomains
    learner : {"logistic", "boosting"}
    hyper : mapping
        Of the learner.
    """

    def __init__(self, domains: SuiteDomains, learner: str, hyper: Mapping[str, Any]) -> None:
        self.domains = domains
        self.X = domains.own.matrix()
        self.learner = partial(make_learner, learner, hyper)
        self.n_stable = domains.own.stable.shape[1]

    @cached_property
    def pooled(self) -> Any:
        """One classifier of all columns."""
        return self.learner().fit(self.X, self.domains.own.y)

    @cached_property
    def features(self) -> Features:
        """How much the pooled classifier moves when a feature is shuffled: mean change of its logs."""
        rng = np.random.default_rng(0)
        rows = rng.permutation(len(self.X))[:_IMPORTANCE_ROWS]
        pooled, X, groups = self.pooled, self.X[rows], self.domains.groups
        before, order = _log_proba(pooled, X), rng.permutation(len(rows))
        importance = []
        for feature in range(groups.max() + 1):
            columns = self.n_stable + np.flatnonzero(groups == feature)
            moved = X.copy()
            moved[:, columns] = X[order][:, columns]
            importance.append(np.abs(_log_proba(pooled, moved) - before).mean())
        return Features(groups, np.array(importance))


def _log_proba(classifier: Any, X: Floats) -> Floats:
    return np.log(np.maximum(classifier.predict_proba(X), 1e-6))
