"""Is each assumption of Theorem 4.4 plausible on these data? One result type for all checks.

Layer 3. `diagnose` runs the list `CHECKS`; each check has a statistic, its uncertainty, a verdict (holds,
doubtful, violated, cannot tell), a sentence and a remedy.
"""

from sfboost.diagnostics.complementarity import (
    DomainLeak,
    domain_leak,
    new_domain_alarm,
    training_leak,
    training_leaks,
)
from sfboost.diagnostics.moments import conditional_independence
from sfboost.diagnostics.performance import (
    Performance,
    PredictionSets,
    confidence_based,
    estimate_performance,
)
from sfboost.diagnostics.recalibration import Recalibration
from sfboost.diagnostics.report import CHECKS, Diagnosis, diagnose
from sfboost.diagnostics.result import VERDICTS, Check, CheckResult, Verdict
from sfboost.diagnostics.rows import CheckInputs, NewRows, TrainingRows, make_new_rows, make_training_rows
from sfboost.diagnostics.rows_needed import RowsNeeded, rows_needed
from sfboost.diagnostics.stability import InterceptSlope, intercept_slope

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
