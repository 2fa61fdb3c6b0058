"""For tests: the contracts that one's own trainer or adapter must keep, and problems whose truth is known."""

from __future__ import annotations

from sfboost_lab.testing.checks import ADAPTER_CHECKS, TRAINER_CHECKS, check_adapter, check_trainer, example
from sfboost_lab.testing.simulation import Dials, SimulatedDomain, SimulatedProblem, random_dials, simulate

__all__ = [
    "ADAPTER_CHECKS",
    "TRAINER_CHECKS",
    "Dials",
    "SimulatedDomain",
    "SimulatedProblem",
    "check_adapter",
    "check_trainer",
    "example",
    "random_dials",
    "simulate",
]
