"""Classifiers of the unstable features that take *soft* labels.

Layer 1. Each is a scikit-learn classifier whose `fit` also takes a matrix of label probabilities;
scikit-learn's own classifiers do not, so `SoftLabelClassifier` wraps them.
"""

from sfboost.heads.adam import AdamLogisticRegression
from sfboost.heads.base import SoftLabelMixin
from sfboost.heads.logistic import SoftLogisticRegression
from sfboost.heads.wrapped import SoftLabelClassifier, fit_with_weight

__all__ = [
    "AdamLogisticRegression",
    "SoftLabelClassifier",
    "SoftLabelMixin",
    "SoftLogisticRegression",
    "fit_with_weight",
]
