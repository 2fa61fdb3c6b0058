"""`StableFeatureBoosting` (fit → adapt) and what comes with it.

Layer 4: the scikit-learn face of the engine.
"""

from sfboost.boosting.adapted import AdaptedClassifier
from sfboost.boosting.answers_here import calibrate_sets, performance_without_labels
from sfboost.boosting.columns import Columns
from sfboost.boosting.domains import DomainSummary, HeldOutCalibration
from sfboost.boosting.estimator import StableFeatureBoosting
from sfboost.boosting.evaluation import DomainEvaluation, DomainScores, adapted_scorer
from sfboost.boosting.metrics import METRICS, score_predictions

__all__ = [
    "METRICS",
    "AdaptedClassifier",
    "Columns",
    "DomainEvaluation",
    "DomainScores",
    "DomainSummary",
    "HeldOutCalibration",
    "StableFeatureBoosting",
    "adapted_scorer",
    "calibrate_sets",
    "performance_without_labels",
    "score_predictions",
]
