"""What `fit` learns of each training domain, for reports and for judging a new one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from sfboost.adaptation import DomainHead
from sfboost.adaptation.decision import StableEvidence
from sfboost.adaptation.regularisation import mean_and_error
from sfboost.adaptation.settings import Settings
from sfboost.adaptation.standardize import Standardizer
from sfboost.calibration import ReliabilityCurve, reliability_curve
from sfboost.heads import SoftLabelClassifier, SoftLabelMixin
from sfboost.marginal.probabilities import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class DomainSummary(DomainHead):
    """One training domain as `fit` saw it: the attributes of a `DomainHead`, and calibration.

    Attributes
    ----------
    calibration : HeldOutCalibration or None
        Of the stable predictor on held-out rows of this domain; None if it has none.
    """

    calibration: HeldOutCalibration | None

    @classmethod
    def of(cls, head: DomainHead, calibration: HeldOutCalibration | None) -> DomainSummary:
        """Both parts as one."""
        return cls(**vars(head), calibration=calibration)


@dataclass(frozen=True, eq=False)
class HeldOutCalibration:
    """The stable predictor on held-out rows of one domain.

    Attributes
    ----------
    n_rows : int
    accuracy, log_loss : float
        After calibration.
    reliability, reliability_raw : ReliabilityCurve
        After and before calibration.
    """

    n_rows: int
    accuracy: float
    log_loss: float
    reliability: ReliabilityCurve
    reliability_raw: ReliabilityCurve


def held_out_calibration(
    y: IntArray,
    raw: FloatArray,
    calibrated: FloatArray,
    weight: FloatArray,
    held_out: IntArray,
    rows: IntArray,
) -> HeldOutCalibration | None:
    """Calibration on those of the held-out rows (log-probabilities `raw`, `calibrated`) in `rows`."""
    mine = np.zeros(len(y), dtype=bool)
    mine[rows] = True
    inside = np.flatnonzero(mine[held_out])
    if not len(inside):
        return None
    y, weight, raw, calibrated = (
        y[held_out[inside]],
        weight[held_out[inside]],
        raw[inside],
        calibrated[inside],
    )
    share = weight / weight.sum()
    return HeldOutCalibration(
        n_rows=len(y),
        accuracy=float(share @ (calibrated.argmax(axis=1) == y)),
        log_loss=-float(share @ calibrated[np.arange(len(y)), y]),
        reliability=reliability_curve(np.exp(calibrated), y, sample_weight=weight),
        reliability_raw=reliability_curve(np.exp(raw), y, sample_weight=weight),
    )


def learn_head(
    name: Any, y: IntArray, X_unstable: Any | None, weight: FloatArray, n_classes: int, settings: Settings
) -> DomainHead:
    """What all rows of one domain say of the unstable features."""
    head, standardizer = None, None
    if X_unstable is not None:
        head, standardizer = _labelled_head(X_unstable, y, weight, n_classes, settings)
    return DomainHead(
        name=name,
        n_rows=len(y),
        class_balance=np.asarray(np.bincount(y, weight / weight.sum(), n_classes), dtype=np.float64),
        head=head,
        feature_mean=None if standardizer is None else standardizer.mean,
        feature_scale=None if standardizer is None else standardizer.scale,
    )


def _labelled_head(
    X: Any, y: IntArray, weight: FloatArray, n_classes: int, settings: Settings
) -> tuple[SoftLabelMixin | None, Standardizer | None]:
    """A head on one domain's own labels; one row's worth of L2, since labels are plenty."""
    head = settings.make_head(1.0 / float(weight.sum()))
    standardizer = None
    if not isinstance(head, SoftLabelClassifier):
        X = sparse.csr_array(X) if sparse.issparse(X) else np.asarray(X, dtype=np.float64)
        standardizer = Standardizer.fit(X, weight)
        X = standardizer.apply(X)
    if len(np.unique(y)) < 2:
        return None, standardizer
    return head.fit_soft(X, np.eye(n_classes)[y], weight), standardizer


def stable_evidence(y: IntArray, log_proba: FloatArray, weight: FloatArray) -> StableEvidence:
    """How much held-out predictions beat the class balance, in nats per row."""
    share = weight / weight.sum()
    balance = np.bincount(y, share, log_proba.shape[1])
    gain = log_proba[np.arange(len(y)), y] - np.log(balance[y])
    return StableEvidence(*mean_and_error(gain, share), len(y))
