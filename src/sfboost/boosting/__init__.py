"""`StableFeatureBoosting` (fit → adapt) and what comes with it.

Layer 5: the scikit-learn face of the engine.
"""

from sfboost.adaptation.scores import METRICS
from sfboost.boosting.adapted import AdaptedClassifier
from sfboost.boosting.adapted_domains import AdaptedDomains, DomainOverview
from sfboost.boosting.answers_here import performance_without_labels
from sfboost.boosting.arrays import GivenProbabilities, adapt, learn_training
from sfboost.boosting.columns import Columns
from sfboost.boosting.estimator import StableFeatureBoosting
from sfboost.boosting.evaluation import adapted_scorer
from sfboost.boosting.metrics import score_predictions
from sfboost.boosting.scored_domains import DomainEvaluation, DomainScores
from sfboost.boosting.sets import calibrate_sets

__all__ = [
    "METRICS",
    "AdaptedClassifier",
    "AdaptedDomains",
    "Columns",
    "DomainEvaluation",
    "DomainOverview",
    "DomainScores",
    "GivenProbabilities",
    "StableFeatureBoosting",
    "adapt",
    "adapted_scorer",
    "calibrate_sets",
    "learn_training",
    "performance_without_labels",
    "score_predictions",
]
