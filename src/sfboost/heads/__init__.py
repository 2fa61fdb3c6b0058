"""Classifiers of the unstable features that take *soft* labels.

Layer 1. Each is a scikit-learn classifier whose `fit` also takes a matrix of label probabilities;
scikit-learn's own classifiers do not, so `SoftLabelClassifier` wraps them.
"""

from sfboost.heads.base import SoftLabelClassifier, SoftLabelMixin, fit_with_weight
from sfboost.heads.logistic import AdamLogisticRegression, SoftLogisticRegression

__all__ = [
    "AdamLogisticRegression",
    "SoftLabelClassifier",
    "SoftLabelMixin",
    "SoftLogisticRegression",
    "fit_with_weight",
]
