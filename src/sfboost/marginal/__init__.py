"""The marginal problem (Section 4 of the paper) as pure functions of arrays.

Layer 0: imports numpy and scipy only. Everything here works on class probabilities of shape
(n_rows, n_classes); nothing here fits a model.
"""

from sfboost.marginal.combination import combine, log_combine, log_likelihood_rows, log_weights, posterior
from sfboost.marginal.probabilities import as_probability_matrix, floored_log
from sfboost.marginal.pseudolabels import (
    PSEUDO_LABELS,
    PseudoLabelStatistics,
    correct_posthoc,
    make_pseudo_labels,
    pseudo_label_confusion,
)
from sfboost.marginal.simplex import simplex_least_squares

__all__ = [
    "PSEUDO_LABELS",
    "PseudoLabelStatistics",
    "as_probability_matrix",
    "combine",
    "correct_posthoc",
    "floored_log",
    "log_combine",
    "log_likelihood_rows",
    "log_weights",
    "make_pseudo_labels",
    "posterior",
    "pseudo_label_confusion",
    "simplex_least_squares",
]
