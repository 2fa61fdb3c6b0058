"""Between the estimator and the diagnostics: held-out rows, features as numbers, alarms in a new domain."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.decomposition import TruncatedSVD
from sklearn.utils import _safe_indexing

from sfboost.adaptation.checks import check_weight, in_range
from sfboost.boosting.rows import check_domain, make_splits
from sfboost.diagnostics import Diagnosis, NewRows, TrainingRows, diagnose, make_new_rows, new_domain_alarm
from sfboost.marginal.probabilities import FloatArray

if TYPE_CHECKING:
    from sfboost.boosting.estimator import StableFeatureBoosting

IntArray = npt.NDArray[np.intp]

# Columns that the leak is measured in.
_MOST_COLUMNS = 50


def training_rows(
    stable: FloatArray,
    y: IntArray,
    domain: npt.NDArray[Any],
    held_out: IntArray,
    X_unstable: Any,
    X_stable: Any = None,
    weight: FloatArray | None = None,
) -> TrainingRows:
    """Held-out rows for the diagnostics; features that are not numbers are left out."""
    unstable, features = (
        None if X is None else numbers(_safe_indexing(X, held_out)) for X in (X_unstable, X_stable)
    )
    weight = None if weight is None else weight[held_out]
    return TrainingRows(stable, y[held_out], domain[held_out], unstable, features, weight)


def numbers(X: Any) -> FloatArray | None:
    """Numbers to compute with, a dense matrix of at most 50 columns (singular vectors beyond), or None."""
    if not sparse.issparse(X):
        try:
            X = np.asarray(X, dtype=np.float64)
        except (TypeError, ValueError):
            return None
        if not np.isfinite(X).all() or not in_range(X).all():
            return None
    if X.shape[1] <= _MOST_COLUMNS:
        return X.toarray() if sparse.issparse(X) else X
    components = TruncatedSVD(_MOST_COLUMNS, random_state=0).fit_transform(X)
    return np.asarray(components, dtype=np.float64)


def held_out_rows(model: StableFeatureBoosting, X: Any, y: Any, sample_domain: Any) -> TrainingRows:
    """Fit `model`, and return its held-out predictions with the rows that they are of."""
    model.fit(X, y, sample_domain=sample_domain)
    X = model._check_input(X, reset=False)
    labels = np.searchsorted(model.classes_, np.asarray(y))
    domain = check_domain(sample_domain, X.shape[0])
    stable_X = model.stable_columns_.take(X)
    splits = make_splits(labels, domain, np.arange(len(labels)), model.cv, model.random_state)
    held_out, raw = model._fit_stable(stable_X, labels, domain, None, splits)
    unstable_X = model.unstable_columns_.take(X) if len(model.unstable_columns_) else None
    return training_rows(
        np.exp(model.temperature_.apply(raw)), labels, domain, held_out, unstable_X, stable_X
    )


def new_rows(model: StableFeatureBoosting, X: Any) -> NewRows:
    """Rows of a new domain as the diagnostics want them."""
    X = model._check_input(X, reset=False)
    return make_new_rows(
        np.exp(model._stable_log_proba(X)),
        numbers(model.unstable_columns_.take(X)) if len(model.unstable_columns_) else None,
        numbers(model.stable_columns_.take(X)),
    )


def diagnose_model(
    model: StableFeatureBoosting, X: Any, y: Any, sample_domain: Any, X_new: Any, level: float
) -> Diagnosis:
    """Fit `model` and diagnose it; see `StableFeatureBoosting.diagnose`."""
    training = held_out_rows(model, X, y, sample_domain)
    if X_new is not None:
        model._check_columns(model._check_input(X_new, reset=False))
    new = None if X_new is None else new_rows(model, X_new)
    return diagnose(training, new, level=level, random_state=model.random_state or 0)


def alarm_of(model: StableFeatureBoosting, X: Any, sample_weight: Any = None) -> str | None:
    """Why the rows of a new domain contradict complementarity, or None; label shift is not judged.

    A row of weight zero is no row; every other one counts once, since weights are no observations.
    """
    if model.stability == "likelihood":
        return None
    if sample_weight is not None:
        X = _safe_indexing(X, np.flatnonzero(check_weight(sample_weight, X.shape[0])))
    return new_domain_alarm(new_rows(model, X))
