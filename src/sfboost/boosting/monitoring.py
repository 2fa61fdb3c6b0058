"""Batches that arrive one after the other: a fresh `adapt` for each, a line of history, one alarm over all.

Each batch is tested at its own level, so that of many batches some look shifted by chance. What is held over
all of them is an e-process: p-values become e-values, whose products are mixed over the batch in which a
shift may have begun. Without a shift it ever reaches 1 / `LEVEL` with probability `LEVEL` at most.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.utils import _safe_indexing

from sfboost.adaptation.checks import is_missing
from sfboost.adaptation.decision import unwarned
from sfboost.boosting.adapted import AdaptedClassifier
from sfboost.boosting.answers_here import performance_without_labels
from sfboost.boosting.estimator import StableFeatureBoosting
from sfboost.boosting.evaluation import class_positions, labelled_proba, metric_of
from sfboost.boosting.metrics import is_skewed, score_predictions
from sfboost.marginal.probabilities import FloatArray
from sfboost.whole_files import write_whole

#: Of a false alarm over all batches, however many there will be.
LEVEL = 0.05
# What is estimated of each batch, if the model is judged by it; else accuracy.
_ESTIMATED = ("accuracy", "balanced_accuracy", "auroc")


@dataclass(frozen=True)
class MonitoredBatch:
    """One line of history.

    Attributes
    ----------
    name : str
    rows : int
    decision, code, reason : str
        Of the batch's own `adapt`.
    p_value : float
        Of its test for a shift; 1 where nothing can be told.
    features : dict of str to float
        P-value of each feature that could be asked.
    inputs : dict of str to float
        How far the mean of each feature is from that of training, in standard deviations of training.
    shares : dict of str to float
        Class shares that the answer leads to expect.
    metric : str
        By which the answer is judged: AUROC where accuracy would say little, since classes are skewed.
    estimated : tuple of float or None
        Its value of the answer, estimated without labels, and the ends of its interval.
    data, model : str
        Digests: of the rows, whatever their order, and of the model's file.
    """

    name: str
    rows: int
    decision: str
    code: str
    reason: str
    p_value: float
    features: dict[str, float]
    inputs: dict[str, float]
    shares: dict[str, float]
    metric: str
    estimated: tuple[float, float, float] | None
    data: str
    model: str


@dataclass(frozen=True)
class Scored:
    """What labels that came later say of a batch.

    Attributes
    ----------
    name : str
    rows : int
        That have a label.
    metric : str
    scores : dict of str to float
        Of the answer, the pooled and the stable classifier, by that metric.
    estimated : tuple of float or None
        What was estimated without labels.
    gain_of_labels, error : float
        By how much the Brier score would be lower with X_U learned from these labels, cross-fitted (ORACLE),
        and its standard error.
    """

    name: str
    rows: int
    metric: str
    scores: dict[str, float]
    estimated: tuple[float, float, float] | None
    gain_of_labels: float
    error: float

    @property
    def retrain(self) -> bool:
        """Whether a head fitted to these labels is clearly better than the answer was."""
        return self.gain_of_labels > 2.0 * self.error


@dataclass
class History:
    """The batches so far, kept as one JSON line each.

    Examples
    --------
    >>> def batch(p):
    ...     return MonitoredBatch("", 100, "pooled", "no_shift", "", p, {}, {}, {}, "accuracy", None, "", "")
    >>> quiet, loud = (History([batch(p) for p in series]) for series in ([0.5] * 36, [0.5] * 3 + [1e-4] * 3))
    >>> quiet.alarm, loud.alarm
    (False, True)
    """

    batches: list[MonitoredBatch] = field(default_factory=list)

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a file of history; none is an empty one."""
        if not path.exists():
            return cls()
        made = []
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            try:
                said = json.loads(line)
                estimated = None if said["estimated"] is None else tuple(said["estimated"])
                made.append(MonitoredBatch(**{**said, "estimated": estimated}))
            except (ValueError, TypeError, KeyError):
                raise ValueError(
                    f"{path}, line {number}, is no batch: a history is what `sfboost monitor` wrote."
                ) from None
        return cls(made)

    def write(self, path: Path) -> None:
        """Write all of it, as a whole file or not at all."""
        lines = [json.dumps(asdict(batch), ensure_ascii=False) for batch in self.batches]
        write_whole(path, "".join(f"{line}\n" for line in lines).encode())

    def add(self, batch: MonitoredBatch) -> MonitoredBatch | None:
        """Append a batch; one with the same rows by the same model is replaced, and returned."""
        for k, one in enumerate(self.batches):
            if (one.data, one.model) == (batch.data, batch.model):
                self.batches[k] = batch
                return one
        self.batches.append(batch)
        return None

    @property
    def evidence(self) -> list[float]:
        """The e-process after each batch.

        References
        ----------
        .. [1] V. Vovk and R. Wang (2021). E-values: Calibration, Combination and Applications. Annals of
           Statistics 49.
        .. [2] A. Ramdas, P. Grünwald, V. Vovk and G. Shafer (2023). Game-Theoretic Statistics and Safe
           Anytime-Valid Inference. Statistical Science 38.
        """
        begun, path = 0.0, []
        for number, batch in enumerate(self.batches, 1):
            begun = (begun + 1.0 / (number * (number + 1))) * _e_value(batch.p_value)
            path.append(begun + 1.0 / (number + 1))  # a shift may begin later, too
        return path

    @property
    def alarm(self) -> bool:
        """Whether the evidence of all batches reached 1 / `LEVEL`; once given, an alarm stays."""
        return max(self.evidence, default=0.0) >= 1.0 / LEVEL


def _e_value(p_value: float) -> float:
    """∫ κ p^(κ−1) dκ: its mean is one where p is uniform."""
    p = min(max(p_value, 1e-15), 1.0 - 1e-9)
    log = float(np.log(p))
    return (1.0 - p + p * log) / (p * log**2)


def look_at(
    model: StableFeatureBoosting, X: Any, name: str, model_digest: str = ""
) -> tuple[MonitoredBatch, AdaptedClassifier]:
    """Adapt to a batch, and say in one line what came of it."""
    with unwarned():
        adapted = model.adapt(X)
    estimated, shift, metric = None, adapted.shift_, _metric(model)
    found = performance_without_labels(adapted, X)["answer"]
    if not found.withheld:
        estimated = tuple(float(part[metric]) for part in (found.value, found.lower, found.upper))
    features: dict[str, float] = {}
    for change in () if shift is None else (shift.unstable, shift.stable):
        features |= {} if change is None else {one.name: one.p_value for one in change.features}
    shares = adapted.predict_proba(X).mean(axis=0)
    batch = MonitoredBatch(
        name=name,
        rows=X.shape[0],
        decision=adapted.decision_,
        code=adapted.reason_.code,
        reason=str(adapted.reason_),
        p_value=1.0 if shift is None else float(shift.p_value),
        features=features,
        inputs=_inputs(model, X),
        shares=dict(zip(map(str, model.classes_.tolist()), shares.tolist(), strict=True)),
        metric=metric,
        estimated=estimated,  # type: ignore[arg-type]
        data=digest_of_rows(model, X),
        model=model_digest,
    )
    return batch, adapted


def _metric(model: StableFeatureBoosting) -> str:
    """By what a batch is judged."""
    metric, record = metric_of(model), model.training_.record
    if metric in _ESTIMATED[1:]:
        return metric
    return "auroc" if record is not None and is_skewed([record.prior.tolist()]) else "accuracy"


def _inputs(model: StableFeatureBoosting, X: Any) -> dict[str, float]:
    """How far the mean of each column is from that of training."""
    record, rows = model.training_.record, model.answer_rows(X)
    if record is None or rows is None:
        return {}
    known = record.reference.coordinates
    moved: dict[str, float] = {}
    sides = (
        (model.stable_columns_.names, rows.features, known.mean, known.spread),
        (model.unstable_columns_.names, rows.unstable, known.centre, known.unit),
    )
    for names, values, mean, spread in sides:
        away: FloatArray = (rows.weight @ values - mean) / spread
        moved |= dict(zip(names, away.round(4).tolist(), strict=False))
    return moved


def digest_of_rows(model: StableFeatureBoosting, X: Any) -> str:
    """Digest of the columns that the model reads: the same rows in another order have the same one."""
    rows = model.answer_rows(X)
    if rows is None:
        return ""
    values = np.ascontiguousarray(np.hstack([rows.features, rows.unstable]) + 0.0)
    keys = sorted(row.tobytes() for row in values)
    return sha256(b"".join(keys)).hexdigest()[:16]


def score_late(model: StableFeatureBoosting, history: History, X: Any, y: Any) -> Scored:
    """Score a batch of the history by labels that came later: its rows again, now with their labels.

    Rows whose label is still missing (None or NaN) are adapted to and not scored.
    """
    if not history.batches:
        raise ValueError("The history holds no batch: look at the rows without labels first.")
    digest, known = digest_of_rows(model, X), {one.data: one for one in history.batches}
    if digest not in known:
        raise ValueError(
            f"No batch of this history has these {X.shape[0]} rows: pass the rows of one batch as they were "
            f"monitored, with their labels. Its batches: {', '.join(one.name for one in history.batches)}."
        )
    batch, y = known[digest], np.asarray(y)
    there = np.flatnonzero([not is_missing(label) for label in y.tolist()])
    if len(there) < 2:
        raise ValueError(f"{len(there)} of the {len(y)} rows have a label: two or more are needed.")
    truth = class_positions(model.classes_, y[there])
    with unwarned():
        adapted = model.adapt(X)
        X = _safe_indexing(X, there)
        labelled = labelled_proba(model, X, y[there])
    said: Mapping[str, FloatArray] = {
        "answer": adapted.predict_proba(X),
        "pooled": model.predict_proba(X),
        "stable": model.predict_stable_proba(X),
    }
    scores = {name: score_predictions(truth, p, only=batch.metric)[batch.metric] for name, p in said.items()}
    right = np.eye(len(model.classes_))[truth]
    answer, with_labels = (((p - right) ** 2).sum(axis=1) for p in (said["answer"], labelled))
    better = answer - with_labels
    error = float(better.std(ddof=1) / np.sqrt(len(better)))
    return Scored(batch.name, len(truth), batch.metric, scores, batch.estimated, float(better.mean()), error)
