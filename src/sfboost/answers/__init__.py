"""Which answer is best for a new domain: all features as trained, mended, boosted, or the stable ones alone.

Layer 4. Own domains → `Experience` (play, at fit time). New rows → `Change` → candidates → `Choice` →
`BestAnswer`.
"""

from sfboost.answers.best import BestAnswer, best_answer
from sfboost.answers.choosing import Choice
from sfboost.answers.experience import Experience
from sfboost.answers.play import Case

__all__ = ["BestAnswer", "Case", "Choice", "Experience", "best_answer"]
