"""Which columns could be stable: ranked by their drift between source domains, with what each is worth."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sfboost.cli.console import Line
from sfboost.columns import Selection, StableFeatureSelector
from sfboost.frames import Encoder
from sfboost.frames.preparing import TrainingTable
from sfboost.frames.roles import Roles
from sfboost.marginal.probabilities import FloatArray
from sfboost.report.training import ranked

# More columns are not printed, and what they are worth is not measured.
_MOST_COLUMNS = 12
# Rows, and groups of domains that are left out, to measure it with: plenty for a point of accuracy.
_MOST_ROWS, _MOST_FOLDS = 20_000, 5


def rank_columns(training: TrainingTable) -> tuple[Selection, list[dict[str, Any]]]:
    """What a search for stable columns finds, and the columns in order, the least drift first."""
    candidates = Encoder(
        tuple(c for c in training.encoder.columns if c.name in training.roles.stable and c.outputs)
    )
    numbers = candidates.encode(training.X)
    # The codes of a category are stable together, or not at all.
    names = np.array([column.name for column in candidates.columns for _ in column.outputs])
    selector = StableFeatureSelector(groups=names).fit(numbers, training.y, sample_domain=training.domain)
    first = [column.name for column in selector.selection_.in_order[:_MOST_COLUMNS]]
    costs = _costs_of_dropping(numbers, names, training, first)
    return selector.selection_, ranked(selector.selection_, costs)


def _costs_of_dropping(
    numbers: FloatArray, names: Any, training: TrainingTable, asked: list[str]
) -> dict[str, tuple[float, float]]:
    """Accuracy that is lost without a column, and its standard error over domains that are left out."""
    rows = np.random.RandomState(0).permutation(len(training.y))[:_MOST_ROWS]
    X, y, groups = numbers[rows], np.asarray(training.y)[rows], training.domain[rows].astype(str)
    folds = GroupKFold(min(_MOST_FOLDS, len(training.domains)))
    splits = [(a, b) for a, b in folds.split(X, y, groups) if len(np.unique(y[a])) > 1]
    if len(splits) < 2:
        return {}
    classifier = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))

    def accuracy(columns: Any) -> Any:
        return cross_val_score(classifier, X[:, columns], y, cv=splits)

    every, costs = accuracy(names == names), {}
    for name in asked:
        if (names != name).any():
            lost = every - accuracy(names != name)
            costs[name] = (float(lost.mean()), float(lost.std(ddof=1) / np.sqrt(len(lost))))
    return costs


def stand_ins(roles: Roles, proposal: list[dict[str, Any]]) -> tuple[list[str], list[str]]:
    """What takes the place of stable and unstable columns in the test of shift, where none is shown stable.

    Those that the user calls unstable are; else the half of the columns that drifts most.
    """
    names = [column["name"] for column in proposal]
    half = len(names) if roles.unstable else (len(names) + 1) // 2
    return names[:half], [*names[half:], *roles.unstable]


def proposal_lines(proposal: list[dict[str, Any]]) -> list[Line]:
    """The ranked columns as a table: those that were chosen, then the least drift first."""
    if not proposal:
        return []
    first = proposal[:_MOST_COLUMNS]
    width = max(6, *(len(column["name"]) for column in first))
    costed = any(column["cost"] is not None for column in first)
    head = f"  {'column':<{width}}  drift  at most" + "  cost of dropping it" * costed
    lines: list[Line] = [
        "columns, those that may drift least between source domains first (*: shown to be stable)",
        head,
    ]
    for one in first:
        cost = (
            "" if one["cost"] is None else f"{100 * one['cost']:+.1f} ± {100 * one['cost_error']:.1f} points"
        )
        lines.append(
            f"{' *'[one['selected']]} {one['name']:<{width}}  {one['drift']:.3f}    {one['upper']:.3f}"
            + f"  {cost:>19}" * costed
            + f"  {one['why']}"
        )
    if len(proposal) > len(first):
        lines.append(f"  and {len(proposal) - len(first)} more (--json has all)")
    return lines
