"""Stable Feature Boosting: adapt a classifier to a new domain without labels."""

__version__ = "0.1.0"
