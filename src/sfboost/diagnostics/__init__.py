"""Is each assumption of Theorem 4.4 plausible on these data? One check, one file, one result type.

Layer 3. `diagnose` runs the list `CHECKS`; each check has a statistic, its uncertainty, a verdict (holds,
doubtful, violated, cannot tell), a sentence and a remedy.
"""

from sfboost.diagnostics.alarm import new_domain_alarm
from sfboost.diagnostics.checks import CHECKS, Check
from sfboost.diagnostics.complementarity import training_leaks
from sfboost.diagnostics.independence import conditional_independence
from sfboost.diagnostics.inputs import CheckInputs, NewRows, TrainingRows, make_new_rows, make_training_rows
from sfboost.diagnostics.kind import InterceptSlope, intercept_slope
from sfboost.diagnostics.leak import DomainLeak, domain_leak, training_leak
from sfboost.diagnostics.performance import Performance, confidence_based, estimate_performance
from sfboost.diagnostics.prediction_sets import PredictionSets
from sfboost.diagnostics.recalibration import Recalibration
from sfboost.diagnostics.report import Diagnosis, diagnose
from sfboost.diagnostics.result import VERDICTS, CheckResult, Verdict
from sfboost.diagnostics.rows_needed import RowsNeeded, rows_needed

__all__ = [
    "CHECKS",
    "VERDICTS",
    "Check",
    "CheckInputs",
    "CheckResult",
    "Diagnosis",
    "DomainLeak",
    "InterceptSlope",
    "NewRows",
    "Performance",
    "PredictionSets",
    "Recalibration",
    "RowsNeeded",
    "TrainingRows",
    "Verdict",
    "conditional_independence",
    "confidence_based",
    "diagnose",
    "domain_leak",
    "estimate_performance",
    "intercept_slope",
    "make_new_rows",
    "make_training_rows",
    "new_domain_alarm",
    "rows_needed",
    "training_leak",
    "training_leaks",
]
