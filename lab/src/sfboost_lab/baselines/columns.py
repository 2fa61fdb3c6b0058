"""SFB for tables: `StableFeatureBoosting` with known stable columns, behind the contract. No torch needed."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold
from sklearn.utils import _safe_indexing

from sfboost.adaptation import StableEvidence
from sfboost.boosting import StableFeatureBoosting
from sfboost_lab.baselines.contract import Floats, LabelledRows, LinearHead, Method, MostProbable, Predictor
from sfboost_lab.baselines.leak import LeakModel, fit_leak_model
from sfboost_lab.baselines.sfb import BoostedPredictor, BoostingAdapter

_FOLDS = 5


@dataclass(frozen=True, eq=False)
class ColumnPredictor(MostProbable):
    """A fitted `StableFeatureBoosting`: the stable columns predict, the others wait for an adapter."""

    model: StableFeatureBoosting
    train: LabelledRows

    @property
    def classes_(self) -> npt.NDArray[Any]:
        """The classes."""
        return self.model.classes_

    @property
    def head(self) -> LinearHead | None:
        """None: the stable classifier may be of any kind."""
        return None

    @property
    def evidence_(self) -> StableEvidence | None:
        """How much the stable classifier beats the class balance on held-out rows."""
        return self.model.training_.evidence

    def features(self, X: Any) -> Floats:
        """Return the rows as numbers."""
        return np.asarray(X, dtype=np.float64)

    def stable_and_unstable(self, X: Any) -> tuple[Floats, Any]:
        """Return log f_S and the unstable columns."""
        return self.model.stable_and_unstable(X)

    def leak_model(self) -> LeakModel:
        """Return P(f_S | Y, X_U) as measured on the training rows; measured once."""
        return self._leak_model

    @functools.cached_property
    def _leak_model(self) -> LeakModel:
        """Each row is scored by a model that has not seen it."""
        rows = self.train
        columns = self.model.unstable_columns_.take(rows.X)
        folds = StratifiedKFold(_FOLDS, shuffle=True, random_state=self.model.random_state)
        proba = np.empty((len(rows.y), len(self.classes_)))
        for fitted, left in folds.split(rows.X, rows.y):
            X, y, domain = (_safe_indexing(part, fitted) for part in (rows.X, rows.y, rows.domain))
            other = clone(self.model).fit(X, y, sample_domain=domain)
            proba[left] = other.predict_stable_proba(_safe_indexing(rows.X, left))
        return fit_leak_model(proba, columns, rows.y, rows.domain)

    def predict_proba(self, X: Any) -> Floats:
        """Return f_S."""
        return self.model.predict_stable_proba(X)


@dataclass(frozen=True)
class ColumnSFB(Method):
    """A classifier of the stable columns, calibrated; the others are the unstable ones.

    Parameters
    ----------
    stable : sequence of int or str, or "auto"
        The stable columns; "auto" searches for them in the training domains.
    unstable : sequence of int or str, optional
        The unstable ones; by default all others.
    estimator : classifier, optional
        Of the stable columns.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 200)
    >>> rows = LabelledRows(y[:, None] + rng.normal(size=(200, 2)), y, np.repeat(["a", "b"], 100))
    >>> ColumnSFB(stable=[0]).fit(rows).predict_proba(rows.X[:1]).shape
    (1, 2)
    """

    name: ClassVar[str] = "sfb-columns"
    title: ClassVar[str] = "SFB (stable columns)"

    stable: Sequence[int] | Sequence[str] | str = "auto"
    unstable: Sequence[int] | Sequence[str] | None = None
    estimator: Any = None

    def fit(
        self, train: LabelledRows, *, validation: LabelledRows | None = None, seed: int = 0
    ) -> ColumnPredictor:
        """Fit and calibrate the stable classifier."""
        names: Any = self.stable if isinstance(self.stable, str) else list(self.stable)
        others: Any = None if self.unstable is None else list(self.unstable)
        model = StableFeatureBoosting(
            stable_features=names, unstable_features=others, stable=self.estimator, random_state=seed
        )
        return ColumnPredictor(model.fit(train.X, train.y, sample_domain=train.domain), train)


class AnsweredPredictor(BoostedPredictor):
    """A predictor and the library's answer to the rows of one new domain."""

    def predict_proba(self, X: Any) -> Floats:
        """Return the answer."""
        return np.asarray(self.adaptation.predict_proba(X))


@dataclass(frozen=True)
class SFBBest(BoostingAdapter):
    """Ours, as a user gets it: `adapt` of the library's own model, with the answer that it finds best.

    Needs a predictor of the trainer "sfb-columns" or "sfb".

    Examples
    --------
    >>> SFBBest().title
    'SFB (ours, best answer)'
    """

    name: ClassVar[str] = "sfb-best"
    title: ClassVar[str] = "SFB (ours, best answer)"

    def adapt(self, predictor: Predictor, X_test: Any, y_test: Any = None, *, seed: int = 0) -> Predictor:
        """Adapt to unlabelled rows."""
        model = getattr(predictor, "model", None)
        if model is None:
            raise ValueError(
                f"{self.title} asks a model of the library, and this predictor ({type(predictor).__name__}) "
                "has none. Use the trainer 'sfb-columns' or 'sfb', or the adapter 'sfb'."
            )
        answer = model.adapt(X_test)
        return AnsweredPredictor(predictor, answer, str(answer.decision_))
