"""The stable classifier: fitted to all training rows, and judged on rows that it was not fitted to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from joblib import Parallel, delayed
from scipy import sparse
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import recall_score
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing

from sfboost.adaptation.decision import AdaptationWarning
from sfboost.boosting.rows import Splits, check_frozen_classes, enough_rows
from sfboost.boosting.validation import feature_groups, raw_log_proba, scaled_logistic
from sfboost.frames import is_frame
from sfboost.frames.cells import text_columns
from sfboost.heads import fit_with_weight
from sfboost.marginal.probabilities import FloatArray, IntArray
from sfboost.notices import warn

# A prefit classifier that is right this often about every class has probably seen the rows before.
_SUSPICIOUS_RECALL = 0.98


@dataclass(frozen=True, eq=False)
class StableLearner:
    """How the stable classifier is fitted.

    Attributes
    ----------
    estimator : classifier
        Unfitted, or frozen.
    classes : array of shape (K,)
    thin : bool
        Whether fewer of very many rows are enough where a fit only judges others.
    """

    estimator: Any
    classes: npt.NDArray[Any]
    thin: bool

    def fit(self, X: Any, y: IntArray, weight: FloatArray | None, rows: IntArray) -> Any:
        """Fit a clone to some rows; a frozen one is taken as it is."""
        if not hasattr(self.estimator, "predict_proba"):
            raise ValueError(
                f"The stable classifier {type(self.estimator).__name__} has no predict_proba: use one that "
                "gives probabilities, or wrap it in sklearn.calibration.CalibratedClassifierCV."
            )
        if isinstance(self.estimator, FrozenEstimator):
            check_frozen_classes(self.estimator, self.classes)
            return self.estimator
        part = None if weight is None else weight[rows]
        try:
            return fit_with_weight(
                clone(self.estimator), _safe_indexing(X, rows), self.classes[y[rows]], part
            )
        except (ValueError, TypeError) as error:
            texts = text_columns(X) if is_frame(X) else []
            if not texts or isinstance(self.estimator, Pipeline):
                raise
            name = type(self.estimator).__name__
            raise ValueError(
                f"{name} cannot read the stable columns ({error}): {', '.join(map(repr, texts))} "
                f"{'holds' if len(texts) == 1 else 'hold'} text. Pass a pipeline that encodes it, such as "
                "stable=make_pipeline(make_column_transformer((OneHotEncoder(handle_unknown='ignore'), "
                f"{texts}), remainder='passthrough'), {name}())."
            ) from error

    def fit_judge(self, X: Any, y: IntArray, weight: FloatArray | None, rows: IntArray) -> Any:
        """Fit to some rows a classifier that judges others, and is not kept."""
        return self.fit(X, y, weight, enough_rows(rows, y, X.shape[1]) if self.thin else rows)

    def learn(
        self,
        X: Any,
        y: IntArray,
        domain: npt.NDArray[Any],
        weight: FloatArray | None,
        splits: Splits,
        validation_domain: Any,
        n_jobs: int | None,
    ) -> tuple[Any, IntArray, FloatArray]:
        """The fitted classifier, held-out rows, and their raw log-probabilities."""
        every = np.arange(len(y))
        if validation_domain is not None:
            held_out = np.flatnonzero(domain == validation_domain)
            rest = np.flatnonzero(domain != validation_domain)
            if not len(held_out) or not len(rest):
                raise ValueError(
                    f"validation_domain={validation_domain!r} must be one of several domains; "
                    f"sample_domain holds {sorted(set(domain.tolist()), key=str)}."
                )
            fitted = self.fit(X, y, weight, rest)
            return fitted, held_out, raw_log_proba(fitted, _safe_indexing(X, held_out), self.classes)
        fitted = self.fit(X, y, weight, every)
        if isinstance(fitted, FrozenEstimator):
            raw = raw_log_proba(fitted, X, self.classes)
            if recall_score(y, raw.argmax(axis=1), average="macro") > _SUSPICIOUS_RECALL:
                warn(
                    "The prefit stable classifier is right about nearly every row: were these rows used to "
                    "fit it? Calibration and the refusal to adapt need rows that are new to it.",
                    AdaptationWarning,
                )
            return fitted, every, raw
        if any(len(np.unique(y[inside])) < 2 for inside, _ in splits):
            raise ValueError(
                "Without the rows that a fold holds out, one class only is left: calibration needs at least "
                "two rows of two classes (or a `cv` whose folds leave both)."
            )

        def predict_fold(inside: IntArray, outside: IntArray) -> FloatArray:
            judge = self.fit_judge(X, y, weight, inside)
            return raw_log_proba(judge, _safe_indexing(X, outside), self.classes)

        parts = Parallel(n_jobs=n_jobs)(delayed(predict_fold)(*split) for split in splits)
        held_out, raw = np.concatenate([outside for _, outside in splits]), np.concatenate(parts)
        # A splitter may hold a row out twice, or never: each is judged once.
        held_out, first = np.unique(held_out, return_index=True)
        return fitted, held_out, raw[first]


def stable_terms(model: Any, row: Any) -> dict[str, Any] | None:
    """What each stable feature adds to log f_S of one row, against its mean in training: see `Explanation`.

    None if f_S is another than the logistic regression of scaled numbers.
    """
    steps = scaled_logistic(getattr(model, "stable_", None))
    if steps is None:
        return None
    scaler, last = steps
    if len(last.classes_) != len(model.classes_):
        return None
    taken = model.stable_columns_.take(model._check_input(row))
    numbers = np.asarray(taken.toarray() if sparse.issparse(taken) else taken, dtype=np.float64)
    # One column of log-odds is the second class's, as it is for unstable features.
    coef = np.vstack([np.zeros_like(last.coef_), last.coef_]) if len(last.coef_) == 1 else last.coef_
    terms = scaler.transform(numbers).T * coef.T / model.temperature_.temperature
    names, groups = feature_groups(model.stable_columns_)
    places = [np.flatnonzero(np.array(groups) == group) for group in range(max(groups) + 1)]
    coded = ["=" in model.stable_columns_.names[place[0]] for place in places]
    return {
        "stable_features": np.array([terms[place].sum(axis=0) for place in places]),
        "stable_names": tuple(names[place[0]] for place in places),
        "stable_values": np.where(coded, np.nan, [numbers[0, place[0]] for place in places]),
    }
