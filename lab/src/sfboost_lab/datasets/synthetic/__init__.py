"""Synthetic families: draws of any size, with the ceiling that nobody can pass.

``family(name)`` gives the family (ceilings, exact joints), ``sfboost.datasets.load(name)`` its rows.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sfboost.datasets.contract import Dataset
from sfboost_lab.datasets.synthetic.families import (
    anti_causal,
    cause_effect_direct,
    multiclass_anti_causal,
    three_parts,
)
from sfboost_lab.datasets.synthetic.finite import FiniteFamily
from sfboost_lab.datasets.synthetic.gaussian import GaussianFamily, gaussian

FAMILIES: dict[str, Callable[..., FiniteFamily | GaussianFamily]] = {
    "ac": anti_causal,
    "ce_dd": cause_effect_direct,
    "multiclass_ac": multiclass_anti_causal,
    "three_parts": three_parts,
    "gaussian": gaussian,
}


def family(name: str, **parameters: Any) -> FiniteFamily | GaussianFamily:
    """Return a family by name.

    Examples
    --------
    >>> from sfboost_lab.datasets.synthetic import family
    >>> family("ac", stable_accuracy=0.8).ceiling("test-0.1", "stable")
    0.8
    """
    if name not in FAMILIES:
        raise KeyError(f"No synthetic family {name!r}; there are {', '.join(FAMILIES)}.")
    return FAMILIES[name](**parameters)


def _loader(name: str) -> Callable[..., Dataset]:
    def load_rows(
        *, n_rows: int = 1024, random_state: int = 0, data_dir: Path | None = None, **parameters: Any
    ) -> Dataset:
        return family(name, **parameters).sample(n_rows, random_state)

    # The options of the family are the options of its rows: listings and checks read the signature.
    shared = [p for p in inspect.signature(load_rows).parameters.values() if p.kind is p.KEYWORD_ONLY]
    own = [p.replace(kind=p.KEYWORD_ONLY) for p in inspect.signature(FAMILIES[name]).parameters.values()]
    load_rows.__signature__ = inspect.Signature([*own, *shared])  # type: ignore[attr-defined]
    return load_rows


load_ac = _loader("ac")
load_ce_dd = _loader("ce_dd")
load_multiclass_ac = _loader("multiclass_ac")
load_three_parts = _loader("three_parts")
load_gaussian = _loader("gaussian")

__all__ = [
    "FAMILIES",
    "FiniteFamily",
    "GaussianFamily",
    "anti_causal",
    "cause_effect_direct",
    "family",
    "gaussian",
    "multiclass_anti_causal",
    "three_parts",
]
