"""The report: one self-contained HTML page about one adaptation.

Layer 7. `training` (what fit leaves behind) → `facts` (all that is shown, as plain numbers) → `words` (the
verdict) → `pictures`, `page` (how it looks).
"""

from sfboost.report.facts import ReportFacts, make_facts
from sfboost.report.page import render
from sfboost.report.training import TrainingFacts, describe_training

__all__ = ["ReportFacts", "TrainingFacts", "describe_training", "make_facts", "render"]
