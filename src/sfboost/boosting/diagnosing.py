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

from sfboost.adaptation import Adaptation, DomainHead, StableEvidence, Training
from sfboost.adaptation.checks import check_weight, in_range
from sfboost.adaptation.fitting import START_ROWS
from sfboost.adaptation.problem import UNKNOWN
from sfboost.adaptation.row_sample import RowSketch, row_keys
from sfboost.adaptation.settings import Settings
from sfboost.boosting.columns import require_numbers
from sfboost.diagnostics import (
    Diagnosis,
    DomainLeak,
    NewRows,
    Recalibration,
    TrainingRows,
    diagnose,
    new_domain_alarm,
    training_leak,
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
UNMEASURED = (
    "how much of the unstable features the stable predictor shows within a class could not be measured "
    "({why}): pass leak=δ if you know a bound, or answer='paper' to adapt unguarded"
)


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
    X = model._check_input(X, reset=False)
    labels = np.searchsorted(model.classes_, np.asarray(y))
    domain = check_domain(sample_domain, X.shape[0])
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
    X = model._check_input(X, reset=False)
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
        checked = model._check_input(X_new, reset=False)
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


def alarm_of(training: Training, new: NewRows) -> str | None:
    """Why the guard must keep the stable predictor, if it must.

    That is so if the rows contradict complementarity, or if δ is neither given nor measured: a leak that no
    one has looked at is not zero.
    """
    if training.leak is None:
        return UNMEASURED.format(why=training.leak_source)
    return new_domain_alarm(new)


def know_training(
    evidence: StableEvidence,
    leaks: tuple[DomainLeak, ...] | None,
    source_prior: FloatArray,
    recalibration: Recalibration | None,
    heads: tuple[DomainHead, ...] = (),
) -> Training:
    """What is kept for adaptations; `leaks` is None if the unstable features are no numbers."""
    leak = None
    if leaks:
        leak, source = training_leak(leaks), "training domains"
    elif leaks is None:
        source = "they are no numbers, and no pipeline as `unstable` encodes them in steps before its last"
    else:
        source = "no training domain has 30 held-out rows of two classes"
    return Training(evidence, leak, source, source_prior, recalibration, heads)


def with_leak(training: Training, leak: float | None, answer: str) -> Training:
    """Training with the user's δ in place of its own."""
    if leak is None:
        return training
    if answer != "safe":
        raise ValueError(f"leak={leak} has no effect without a guard: pass answer='safe' too.")
    return replace(training, leak=leak, leak_source="given")


def with_note(adaptation: Adaptation, note: str | None) -> Adaptation:
    """An adaptation whose reason says one thing more."""
    if note is None:
        return adaptation
    return replace(
        adaptation, decision=replace(adaptation.decision, reason=f"{adaptation.decision.reason}. {note}")
    )


def most_judged(n_classes: int) -> int:
    """Rows by which assumptions are judged: 20 000, fewer where many classes make each of them wide."""
    return min(START_ROWS, 10 * START_ROWS // n_classes)


def rows_to_judge(
    stable: FloatArray, unstable: Any, sample_weight: Any, choices: Settings, training: Training
) -> NewRows:
    """New rows for the alarm; what complementarity says under label shift is not judged.

    A row of weight zero is no row; every other one counts once, since weights are no observations. Some rows
    are enough to see a contradiction: the same ones whatever their order.
    """
    most = most_judged(stable.shape[1])
    if sample_weight is not None:
        used = np.flatnonzero(check_weight(sample_weight, len(stable)))
        stable, unstable = stable[used], _safe_indexing(unstable, used)
    if len(stable) > most and not choices.wraps_head:
        X = (
            sparse.csr_array(unstable)
            if sparse.issparse(unstable)
            else np.asarray(unstable, dtype=np.float64)
        )
        keys = row_keys(stable, X, np.full(len(stable), UNKNOWN, dtype=np.intp), np.ones(len(stable)))
        some = RowSketch.of(keys, most).draw(most)
        stable, unstable = stable[some], _safe_indexing(unstable, some)
    judged = None if choices.transport == "likelihood" else head_numbers(unstable, choices.head)
    return NewRows(stable, judged, recalibration=training.recalibration)
