"""The change test in many new domains, with the rate of false discoveries held over all of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from sfboost.change.reference import Reference
from sfboost.change.result import Change, Verdict
from sfboost.change.testing import LEAST_POWER, change_in
from sfboost.change.view import View
from sfboost.marginal.probabilities import FloatArray


def changes_by_domain(
    reference: Reference, views: Mapping[Any, View], *, level: float = 0.05
) -> dict[Any, Change]:
    """`change_in` of each domain; of those called changed at most a share `level` is expected not to be.

    Each `Change` keeps its own p-value; its verdict is that of Benjamini and Hochberg over all domains. The
    tests share the own domains they compare with, so they lean to the same side, which the procedure allows.
    """
    found = {name: change_in(reference, view, level=level) for name, view in views.items()}
    adjusted = benjamini_hochberg(np.array([change.p_value for change in found.values()]))
    return {
        name: _judged(change, float(q))
        for (name, change), q in zip(found.items(), adjusted.tolist(), strict=True)
    }


def _judged(change: Change, adjusted: float) -> Change:
    if change.verdict != "changed" or adjusted < change.level:
        return change
    verdict: Verdict = "unchanged" if change.power >= LEAST_POWER else "cannot tell"
    return replace(change, verdict=verdict, changed=())


def benjamini_hochberg(p_values: FloatArray) -> FloatArray:
    """P-values adjusted so that those below a level have at most that share of false discoveries.

    Examples
    --------
    >>> benjamini_hochberg(np.array([0.01, 0.5, 0.03])).round(3).tolist()
    [0.03, 0.5, 0.045]
    """
    order = np.argsort(p_values)[::-1]
    adjusted = np.empty(len(p_values))
    factors = len(p_values) / np.arange(len(p_values), 0, -1)
    adjusted[order] = np.minimum(np.minimum.accumulate(factors * np.asarray(p_values)[order]), 1.0)
    return adjusted
