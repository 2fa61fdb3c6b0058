"""Methods by name, with every hyper-parameter spelled out: what a run's identity is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from sfboost_lab.baselines import ADAPTERS, TRAINERS


def trainer_hyper(name: str, dataset: str, **changes: Any) -> dict[str, Any]:
    """Return every hyper-parameter of a trainer: published settings of the data set, then the changes.

    All of them are part of a run's identity, so that a default that changes one day makes another run.

    Examples
    --------
    >>> trainer_hyper("pooled", "ac")
    {'estimator': None}
    """
    return asdict(TRAINERS[name].preset(dataset, **changes))


def adapter_hyper(name: str, dataset: str, **changes: Any) -> dict[str, Any]:
    """Return every hyper-parameter of an adapter.

    Examples
    --------
    >>> adapter_hyper("t3a", "ac")
    {'filter_size': 100}
    """
    return asdict(ADAPTERS[name].preset(dataset, **changes))


def tuned(hyper: Mapping[str, Any], on: str, **grid: Sequence[Any]) -> dict[str, Any]:
    """Return hyper-parameters of which some are chosen within the run, blind, on places of this prefix.

    Examples
    --------
    >>> tuned({"steps": 20, "rounds": 1}, "validate", steps=[1, 2])
    {'rounds': 1, 'tuned': {'steps': [1, 2]}, 'tuned_on': 'validate'}
    """
    fixed = {name: value for name, value in hyper.items() if name not in grid}
    return {**fixed, "tuned": {name: list(values) for name, values in grid.items()}, "tuned_on": on}
