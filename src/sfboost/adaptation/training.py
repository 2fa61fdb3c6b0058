"""`Training`: what an adaptation needs to know of the labelled domains. Numbers only, no rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sfboost.adaptation.decision import StableEvidence
from sfboost.adaptation.standardize import Standardizer
from sfboost.calibration import HeldOutCalibration
from sfboost.heads import SoftLabelMixin, SoftLogisticRegression
from sfboost.marginal.probabilities import FloatArray


@dataclass(frozen=True, eq=False)
class DomainSummary:
    """One labelled domain: what the unstable features meant there, and how good f_S is.

    Attributes
    ----------
    name : str or int
    n_rows : int
    class_balance : array of shape (K,)
    head : fitted classifier of the unstable features, or None
        Fitted to this domain's labels, on features standardised with this domain's statistics. None if
        there are no unstable features, or one class only.
    feature_mean, feature_scale : arrays of shape (d,) or None
        Of the unstable features, where they are numbers.
    calibration : HeldOutCalibration or None
        Of the stable predictor on held-out rows of the domain, if it has any.
    """

    name: Any
    n_rows: int
    class_balance: FloatArray
    head: SoftLabelMixin | None
    feature_mean: FloatArray | None
    feature_scale: FloatArray | None
    calibration: HeldOutCalibration | None = None


@dataclass(frozen=True, eq=False)
class Training:
    """What labelled domains have taught; `fit` of both estimators makes it, as `training_`.

    Attributes
    ----------
    evidence : StableEvidence or None
        How much the stable predictor beat the class balance on held-out training rows.
    leak : float or None
        δ: how far E[f_S | Y] may differ between rows of different X_U. None: not known.
    source_prior : array of shape (K,) or None
        Class shares of the rows that the stable predictor was calibrated on; transport="likelihood" needs it.
    recalibration : Recalibration or None
        How far the stable probabilities are from the labels, for `sfboost.diagnostics.new_domain_alarm`.
    heads : tuple of DomainSummary
        One for each training domain.
    record : sfboost.choice.SourceRecord or None
        What source domains, each left out in turn, teach the decision. None: X_U is learned anew (SFB).
    """

    evidence: StableEvidence | None = None
    leak: float | None = None
    source_prior: FloatArray | None = None
    recalibration: Any = None
    heads: tuple[DomainSummary, ...] = ()
    record: Any = None

    def __post_init__(self) -> None:
        if self.leak is not None and not self.leak >= 0.0:
            raise ValueError(
                f"leak={self.leak} makes no sense: it is the size of a difference, zero or more."
            )

    def mean_head(self, standardizer: Standardizer | None) -> FloatArray | None:
        """The mean head of labelled domains in the units of new rows, of shape (columns, d + 1), if known."""
        if standardizer is None:
            return None
        found = []
        for domain in self.heads:
            head, mean, scale = domain.head, domain.feature_mean, domain.feature_scale
            if not isinstance(head, SoftLogisticRegression) or mean is None or scale is None:
                continue
            slope = head.coef_ / scale
            intercept = head.intercept_ + slope @ (standardizer.mean - mean)
            found.append(np.column_stack([slope * standardizer.scale, intercept]))
        return np.asarray(np.mean(found, axis=0)) if found else None
