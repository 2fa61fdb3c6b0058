"""The adaptation engine on arrays: stable probabilities + unstable features → `Adaptation`.

Layer 2. One direction: check → statistics → decide → fit f_U → combine.
"""

from sfboost.adaptation.adaptation import Adaptation
from sfboost.adaptation.decision import AdaptationRefused, AdaptationWarning, Decision, StableEvidence
from sfboost.adaptation.engine import adapt as adapt  # `sfboost.adapt` is that of boosting
from sfboost.adaptation.explanation import Explanation
from sfboost.adaptation.settings import CORRECTIONS, METHODS, Settings
from sfboost.adaptation.training import DomainSummary, Training

__all__ = [
    "CORRECTIONS",
    "METHODS",
    "Adaptation",
    "AdaptationRefused",
    "AdaptationWarning",
    "Decision",
    "DomainSummary",
    "Explanation",
    "Settings",
    "StableEvidence",
    "Training",
]
