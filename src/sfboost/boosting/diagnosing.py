"""Between the estimator and the diagnostics: held-out rows, features as numbers, alarms in a new domain."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import clone
from sklearn.decomposition import TruncatedSVD
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing

from sfboost.adaptation import DomainSummary, Training
from sfboost.adaptation.checks import in_range
from sfboost.boosting.columns import require_numbers
from sfboost.boosting.domains import stable_evidence
from sfboost.diagnostics import (
    Diagnosis,
    DomainLeak,
    NewRows,
    Recalibration,
    TrainingRows,
    diagnose,
    training_leak,
    training_leaks,
)
from sfboost.diagnostics.rows import check_domain
from sfboost.heads import SoftLabelClassifier
from sfboost.marginal.probabilities import FloatArray, IntArray
from sfboost.shift import change_in
from sfboost.shift.by_feature import FeatureMeaning, feature_meanings

if TYPE_CHECKING:
    from sfboost.boosting.estimator import StableFeatureBoosting


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
    head: Any = None,
) -> TrainingRows:
    """Held-out rows for the diagnostics; features that are not numbers, even to the head, are left out."""
    unstable = None if X_unstable is None else head_numbers(_safe_indexing(X_unstable, held_out), head)
    features = None if X_stable is None else numbers(_safe_indexing(X_stable, held_out))
    weight = None if weight is None else weight[held_out]
    return TrainingRows(stable, y[held_out], domain[held_out], unstable, features, weight)


def head_numbers(X: Any, head: Any) -> FloatArray | None:
    """Unstable features as the head reads them: after all steps of its pipeline but the last."""
    pipeline = head.estimator if isinstance(head, SoftLabelClassifier) else head
    if isinstance(pipeline, Pipeline) and len(pipeline) > 1:
        # A step may want labels, which a new domain has not: then the columns are taken as they are.
        with suppress(TypeError, ValueError):
            X = clone(pipeline[:-1]).fit_transform(X)
    return numbers(X)


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


def held_out_rows(
    model: StableFeatureBoosting,
    X: Any,
    y: Any,
    sample_domain: Any,
) -> TrainingRows:
    """Fit `model`, and return its held-out predictions with the rows that they are of."""
    held_out, calibrated = model._fit(X, y, sample_domain)
    labels = np.searchsorted(model.classes_, np.asarray(y))
    domain = check_domain(sample_domain, len(labels))
    X = model._check_input(X, domain=domain)
    stable_X = model.stable_columns_.take(X)
    unstable_X = model.unstable_columns_.take(X) if len(model.unstable_columns_) else None
    return training_rows(
        np.exp(calibrated),
        labels,
        domain,
        held_out,
        unstable_X,
        stable_X,
        head=model.unstable,
    )


def new_rows(model: StableFeatureBoosting, X: Any) -> NewRows:
    """Rows of a new domain as the diagnostics want them."""
    X = model._check_input(X)
    unstable = model.unstable_columns_
    return NewRows(
        np.exp(model._calibrated(model.stable_columns_.take(X))),
        head_numbers(unstable.take(X), model.unstable) if len(unstable) else None,
        model.training_.recalibration,
    )


def diagnose_model(
    model: StableFeatureBoosting, X: Any, y: Any, sample_domain: Any, X_new: Any, level: float
) -> Diagnosis:
    """Fit `model` and diagnose it; see `StableFeatureBoosting.diagnose`."""
    training = held_out_rows(model, X, y, sample_domain)
    if X_new is not None:
        checked = model._check_input(X_new)
        require_numbers(model, model.stable_columns_.take(checked), model.unstable_columns_.take(checked))
    new = None if X_new is None else new_rows(model, X_new)
    diagnosis = diagnose(training, new, level=level, random_state=model.random_state or 0)
    return diagnosis if X_new is None else replace(diagnosis, meanings=meanings_here(model, X_new, level))


def meanings_here(model: StableFeatureBoosting, X: Any, level: float = 0.05) -> tuple[FeatureMeaning, ...]:
    """What became of each unstable feature in a new domain; nothing if what is usual is not known."""
    record = model.training_.record
    rows = None if record is None else model.answer_rows(X)
    if rows is None:
        return ()
    change = change_in(record.reference, rows, level=level, misfit=record.misfit)
    return feature_meanings(record.reference, rows, change)


def know_training(
    rows: TrainingRows, log_stable: FloatArray, heads: tuple[DomainSummary, ...] = ()
) -> tuple[Training, tuple[DomainLeak, ...] | None]:
    """What held-out rows teach adaptations, and the leak of each domain; None if X_U is no numbers."""
    leaks = None if rows.X_unstable is None else training_leaks(rows)
    weight = np.ones(len(rows.y)) if rows.weight is None else rows.weight
    training = Training(
        stable_evidence(rows.y, log_stable, weight),
        training_leak(leaks or ()),
        weight / weight.sum() @ rows.stable,
        Recalibration.fit(rows.stable, rows.y, rows.domain, rows.weight),
        heads,
    )
    return training, leaks
