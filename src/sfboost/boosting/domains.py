"""What `fit` learns of each training domain, for reports and for judging a new one."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from sfboost.adaptation import DomainSummary
from sfboost.adaptation.decision import StableEvidence
from sfboost.adaptation.regularisation import mean_and_error
from sfboost.adaptation.settings import Settings
from sfboost.adaptation.standardize import Standardizer
from sfboost.calibration import HeldOutCalibration
from sfboost.heads import SoftLabelClassifier, SoftLabelMixin
from sfboost.marginal.probabilities import FloatArray, IntArray


def learn_domain(
    name: Any,
    y: IntArray,
    X_unstable: Any | None,
    weight: FloatArray,
    n_classes: int,
    settings: Settings,
    calibration: HeldOutCalibration | None = None,
) -> DomainSummary:
    """What all rows of one domain say of the unstable features, beside what is known of f_S there."""
    head, standardizer = None, None
    if X_unstable is not None:
        head, standardizer = _labelled_head(X_unstable, y, weight, n_classes, settings)
    return DomainSummary(
        name=name,
        n_rows=len(y),
        class_balance=np.asarray(np.bincount(y, weight / weight.sum(), n_classes), dtype=np.float64),
        head=head,
        feature_mean=None if standardizer is None else standardizer.mean,
        feature_scale=None if standardizer is None else standardizer.scale,
        calibration=calibration,
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
