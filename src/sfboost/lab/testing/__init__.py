"""The contract kit: whether one's own trainer or adapter keeps the promises of `sfboost.lab.baselines`."""

from __future__ import annotations

from sfboost.lab.testing.checks import ADAPTER_CHECKS, TRAINER_CHECKS, check_adapter, check_trainer
from sfboost.lab.testing.problems import example, named_rows

__all__ = ["ADAPTER_CHECKS", "TRAINER_CHECKS", "check_adapter", "check_trainer", "example", "named_rows"]
