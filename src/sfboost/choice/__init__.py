"""Which predictor answers in a target domain: pooled, realigned, SFB, or the stable one.

Source domains → `SourceRecord` (at `fit`). Target rows → `Change` of each side → predictors → `Choice` →
`BestAnswer`.
"""

from sfboost.choice.best import BestAnswer, best_answer
from sfboost.choice.choosing import Choice
from sfboost.choice.reasons import Reason
from sfboost.choice.record import SourceRecord

__all__ = ["BestAnswer", "Choice", "Reason", "SourceRecord", "best_answer"]
