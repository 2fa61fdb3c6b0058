"""What may happen to a new domain: one pure function for each kind of change, labelled rows in, rows out.

Each takes the rows, what is known of their unstable columns, and a generator; none writes to its input. A
kind that a table cannot undergo (no category to recode) returns None.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Generator = np.random.Generator

# A unit that is four times smaller, and counted from elsewhere.
_FACTOR, _OFFSET = 4.0, 1.0
# How far X_S moves: weights exp(0.8 z) along a random direction halve the effective number of rows.
_TILT = 0.8


@dataclass(frozen=True, eq=False)
class SplitRows:
    """Rows of one domain as numbers: stable columns, unstable columns, labels 0..K-1."""

    stable: Floats
    unstable: Floats
    y: npt.NDArray[np.intp]

    def __len__(self) -> int:
        return len(self.y)

    def matrix(self) -> Floats:
        """Stable columns, then unstable ones."""
        return np.hstack([self.stable, self.unstable])

    def take(self, rows: npt.NDArray[np.intp]) -> SplitRows:
        """Some of the rows."""
        return SplitRows(self.stable[rows], self.unstable[rows], self.y[rows])


@dataclass(frozen=True, eq=False)
class Features:
    """What is known of the unstable columns.

    Parameters
    ----------
    groups : integer array
        Columns of one feature (a category and its codes) have one number; numbers count from 0.
    importance : array
        Of each feature, in the pooled model of the own domains.
    """

    groups: npt.NDArray[np.intp]
    importance: Floats

    def strongest(self) -> npt.NDArray[np.intp]:
        """Columns of the most important feature."""
        return np.flatnonzero(self.groups == self.importance.argmax())

    def strongest_number(self) -> npt.NDArray[np.intp] | None:
        """Columns of the most important feature that is no category; None if there is none."""
        return self._columns(np.flatnonzero(np.bincount(self.groups) == 1))

    def strongest_category(self) -> npt.NDArray[np.intp] | None:
        """Columns of the most important category with three or more codes; None if there is none."""
        return self._columns(np.flatnonzero(np.bincount(self.groups) > 1))

    def _columns(self, features: npt.NDArray[np.intp]) -> npt.NDArray[np.intp] | None:
        if not len(features):
            return None
        return np.flatnonzero(self.groups == features[self.importance[features].argmax()])


@dataclass(frozen=True, eq=False)
class Shifted:
    """Rows after a change, and the unstable columns whose meaning it changed."""

    rows: SplitRows
    changed: tuple[int, ...] = ()


Kind = Callable[[SplitRows, Features, Generator], "Shifted | None"]


def as_is(rows: SplitRows, features: Features, rng: Generator) -> Shifted:
    """Nothing happens."""
    return Shifted(rows)


def strongest_mirrored(rows: SplitRows, features: Features, rng: Generator) -> Shifted:
    """The most important feature is mirrored at its mean: its relation to X_S turns round as well."""
    return _mirrored(rows, features.strongest())


def all_mirrored(rows: SplitRows, features: Features, rng: Generator) -> Shifted:
    """Every unstable feature is mirrored at its mean."""
    return _mirrored(rows, _every(rows))


def class_means_reversed(rows: SplitRows, features: Features, rng: Generator) -> Shifted:
    """U − 2 (mean_y − mean): class means change sides, dependence on X_S within a class stays."""
    U = rows.unstable
    means = np.array([U[rows.y == k].mean(axis=0) if (rows.y == k).any() else U[0] for k in range(_n(rows))])
    return _with_unstable(rows, U - 2.0 * (means[rows.y] - U.mean(axis=0)), _every(rows))


def strongest_shuffled(rows: SplitRows, features: Features, rng: Generator) -> Shifted:
    """The most important feature says nothing any more."""
    columns, U = features.strongest(), rows.unstable.copy()
    U[:, columns] = U[rng.permutation(len(rows))][:, columns]
    return _with_unstable(rows, U, columns)


def all_shuffled(rows: SplitRows, features: Features, rng: Generator) -> Shifted:
    """No unstable feature says anything any more; among themselves they are as they were."""
    return _with_unstable(rows, rows.unstable[rng.permutation(len(rows))], _every(rows))


def attenuated(rows: SplitRows, features: Features, rng: Generator) -> Shifted:
    """Half of the rows have the unstable features of other rows."""
    others = rows.unstable[rng.permutation(len(rows))]
    kept = rng.permutation(len(rows)) < len(rows) // 2
    return _with_unstable(rows, np.where(kept[:, None], rows.unstable, others), _every(rows))


def other_unit(rows: SplitRows, features: Features, rng: Generator) -> Shifted | None:
    """The most important number is written in another unit."""
    columns = features.strongest_number()
    if columns is None:
        return None
    U = rows.unstable.copy()
    U[:, columns] = _FACTOR * U[:, columns] + _OFFSET
    return _with_unstable(rows, U, columns)


def category_recoded(rows: SplitRows, features: Features, rng: Generator) -> Shifted | None:
    """The codes of the most important category go round: each level is written as another one."""
    columns = features.strongest_category()
    if columns is None:
        return None
    indicators = rows.unstable[:, columns]
    level = np.where(indicators.any(axis=1), indicators.argmax(axis=1) + 1, 0)  # 0: the one without a column
    n_levels = len(columns) + 1
    order = rng.permutation(n_levels)
    written = np.empty(n_levels, dtype=np.intp)
    written[order] = np.roll(order, 1)  # one cycle through all levels: none stays what it is
    U = rows.unstable.copy()
    U[:, columns] = np.eye(n_levels)[written[level]][:, 1:]
    return _with_unstable(rows, U, columns)


def shares_moved(rows: SplitRows, features: Features, rng: Generator) -> Shifted:
    """About half of the rows, drawn so that the last class is half or twice as frequent."""
    last = rows.y == _n(rows) - 1
    share = last.mean()
    wanted = np.clip(share * rng.choice([0.5, 2.0]), 0.02, 0.9)
    half = len(rows) // 2
    n_last = min(round(wanted * half), int(last.sum()))
    n_others = min(round(n_last * (1.0 - wanted) / wanted), int((~last).sum()))
    drawn = [
        rng.permutation(np.flatnonzero(last))[:n_last],
        rng.permutation(np.flatnonzero(~last))[:n_others],
    ]
    return Shifted(rows.take(rng.permutation(np.concatenate(drawn))))


def stable_resampled(rows: SplitRows, features: Features, rng: Generator) -> Shifted:
    """Half of the rows, drawn so that X_S moves along a random direction."""
    S = rows.stable
    spread = S.std(axis=0)
    along = ((S - S.mean(axis=0)) / np.where(spread > 0, spread, 1.0)) @ rng.normal(size=S.shape[1])
    return Shifted(_resampled(rows, np.exp(_TILT * (along - along.mean()) / max(along.std(), 1e-9)), rng))


#: Name → function.
KINDS: dict[str, Kind] = {
    "as is": as_is,
    "strongest mirrored": strongest_mirrored,
    "all mirrored": all_mirrored,
    "class means reversed": class_means_reversed,
    "strongest shuffled": strongest_shuffled,
    "all shuffled": all_shuffled,
    "attenuated": attenuated,
    "other unit": other_unit,
    "category recoded": category_recoded,
    "shares moved": shares_moved,
    "X_S resampled": stable_resampled,
}


def _n(rows: SplitRows) -> int:
    return int(rows.y.max()) + 1


def _every(rows: SplitRows) -> npt.NDArray[np.intp]:
    return np.arange(rows.unstable.shape[1])


def _mirrored(rows: SplitRows, columns: npt.NDArray[np.intp]) -> Shifted:
    U = rows.unstable.copy()
    U[:, columns] = 2.0 * U[:, columns].mean(axis=0) - U[:, columns]
    return _with_unstable(rows, U, columns)


def _with_unstable(rows: SplitRows, U: Floats, columns: npt.NDArray[np.intp]) -> Shifted:
    return Shifted(replace(rows, unstable=U), tuple(columns.tolist()))


def _resampled(rows: SplitRows, weight: Floats, rng: Generator) -> SplitRows:
    """Half of the rows, none twice: rows that repeat each other are not the rows of any domain."""
    drawn = rng.choice(len(rows), max(len(rows) // 2, 1), replace=False, p=weight / weight.sum())
    return rows.take(drawn)
