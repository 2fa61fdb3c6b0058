"""Whose meaning changed, tried out: a change that is still there without the suspects is not theirs alone."""

from __future__ import annotations

from sfboost.answers.mending import Habits
from sfboost.change import Change, DomainData, Reference, change_in
from sfboost.change.testing import still_says


def change_of_rows(reference: Reference, habits: Habits | None, rows: DomainData) -> Change:
    """The change test, and all features suspected where those that stand out do not explain what it saw."""
    change = change_in(reference, rows)
    if explains(change, reference, habits, rows):
        return change
    return change_in(reference, rows, everywhere=True)


def explains(change: Change, reference: Reference, habits: Habits | None, rows: DomainData) -> bool:
    """Whether the suspects explain the change that was found in these rows, as far as that can be tried out.

    Many features that each say little may all have turned, and none of them stands out. Then what is left
    without the suspects says less than its share.
    """
    columns, left = change.columns_left(change.suspects)
    alone = len(columns) < len(reference.importance)
    if change.verdict != "changed" or not alone or habits is None or rows.ask is None:
        return True
    without = rows.with_unstable(habits.mend(rows, columns, [0.0] * len(left)).apply(rows))
    share = float(reference.importance[columns].sum())
    return still_says(reference, without, share) >= change.level
