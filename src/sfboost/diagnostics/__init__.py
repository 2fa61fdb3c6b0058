"""Is each assumption of Theorem 4.4 plausible on these data? One result type for all checks.

Layer 3. `diagnose` runs the list `CHECKS`; each check has a statistic, its uncertainty, a verdict (holds,
doubtful, violated, cannot tell), a sentence and a remedy.
"""

from sfboost.diagnostics.complementarity import DomainLeak, domain_leak, training_leak, training_leaks
from sfboost.diagnostics.diagnosing import CHECKS, Check, Diagnosis, diagnose
from sfboost.diagnostics.new_domain import new_domain_alarm
from sfboost.diagnostics.performance import (
    Performance,
    PredictionSets,
    confidence_based,
    estimate_performance,
)
from sfboost.diagnostics.recalibration import Recalibration
from sfboost.diagnostics.result import VERDICTS, CheckResult, Verdict
from sfboost.diagnostics.rows import CheckInputs, NewRows, TrainingRows, make_new_rows, make_training_rows
from sfboost.diagnostics.rows_needed import RowsNeeded, rows_needed

__all__ = [
    "CHECKS",
    "VERDICTS",
    "Check",
    "CheckInputs",
    "CheckResult",
    "Diagnosis",
    "DomainLeak",
    "NewRows",
    "Performance",
    "PredictionSets",
    "Recalibration",
    "RowsNeeded",
    "TrainingRows",
    "Verdict",
    "confidence_based",
    "diagnose",
    "domain_leak",
    "estimate_performance",
    "make_new_rows",
    "make_training_rows",
    "new_domain_alarm",
    "rows_needed",
    "training_leak",
    "training_leaks",
]
