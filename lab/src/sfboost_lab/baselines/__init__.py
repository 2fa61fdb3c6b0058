"""The systems one compares with, behind two small contracts: trainers and test-time adapters.

Layering, lowest first: `contract`, `registry` · one module per method · `harness` · `table_one`.
"""

from __future__ import annotations

from sfboost_lab.baselines.contract import HeadAdapter, LabelledRows, Method
from sfboost_lab.baselines.harness import run
from sfboost_lab.baselines.registry import ADAPTERS, TRAINERS

__all__ = ["ADAPTERS", "TRAINERS", "HeadAdapter", "LabelledRows", "Method", "run"]
