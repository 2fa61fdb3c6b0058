"""The systems one compares with, behind two small contracts: trainers and test-time adapters.

Layering, lowest first: `contract`, `registry` · one module per method · `harness` · `table_one`.
"""

from __future__ import annotations

from sfboost_lab.baselines.contract import (
    Adapter,
    HeadAdapter,
    LabelledRows,
    LinearHead,
    Method,
    Predictor,
    TestAccess,
    Trainer,
)
from sfboost_lab.baselines.harness import Cached, Outcome, run
from sfboost_lab.baselines.registry import ADAPTERS, TRAINERS

__all__ = [
    "ADAPTERS",
    "TRAINERS",
    "Adapter",
    "Cached",
    "HeadAdapter",
    "LabelledRows",
    "LinearHead",
    "Method",
    "Outcome",
    "Predictor",
    "TestAccess",
    "Trainer",
    "run",
]
