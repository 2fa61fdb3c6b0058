"""Rows that are looked at: labelled ones of training domains, unlabelled ones of a new domain."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from sfboost.adaptation.checks import check_unstable, is_missing
from sfboost.marginal import as_probability_matrix
from sfboost.marginal.probabilities import FloatArray, IntArray

if TYPE_CHECKING:
    from sfboost.diagnostics.recalibration import Recalibration

Part = TypeVar("Part")


def rows_by_domain(domain: npt.NDArray[Any]) -> list[tuple[Any, IntArray]]:
    """Rows of each domain, domains in order of first appearance."""
    names, numbers = domain_numbers(domain)
    ends = np.cumsum(np.bincount(numbers, minlength=len(names)))[:-1]
    return list(zip(names, np.split(np.argsort(numbers, kind="stable"), ends), strict=True))


def domain_numbers(domain: npt.NDArray[Any]) -> tuple[list[Any], IntArray]:
    """The names of the domains in order of first appearance, and each row's place among them."""
    listed = domain.tolist()
    place = {name: i for i, name in enumerate(dict.fromkeys(listed))}
    return list(place), np.fromiter(map(place.__getitem__, listed), dtype=np.intp, count=len(listed))


def check_domain(sample_domain: Any, n_rows: int) -> npt.NDArray[Any]:
    """Domain of each row as an object array; one domain if None."""
    if sample_domain is None:
        return np.full(n_rows, "all", dtype=object)
    domain = np.asarray(sample_domain, dtype=object)
    if domain.shape != (n_rows,):
        raise ValueError(
            f"sample_domain has shape {domain.shape} but there are {n_rows} rows: pass one domain per row."
        )
    if any(is_missing(name) for name in set(domain.tolist())):
        raise ValueError(
            "sample_domain has missing entries: name the domain of every row, or drop those rows."
        )
    return domain


@dataclass(frozen=True, eq=False)
class TrainingRows:
    """Labelled rows of the training domains.

    Attributes
    ----------
    stable : array of shape (n, K)
        f_S on rows that it was not fitted to.
    y : integer array of shape (n,)
        Class positions.
    domain : object array of shape (n,)
    X_unstable, X_stable : arrays of shape (n, d), or None
    weight : array of shape (n,) or None
        Used in the size of the leak; tests count every row once.
    """

    stable: FloatArray
    y: IntArray
    domain: npt.NDArray[Any]
    X_unstable: FloatArray | None = None
    X_stable: FloatArray | None = None
    weight: FloatArray | None = None

    @cached_property
    def by_domain(self) -> tuple[tuple[Any, IntArray], ...]:
        """Rows of each domain, domains in order of first appearance."""
        return tuple(rows_by_domain(self.domain))

    @property
    def unstable(self) -> FloatArray:
        """X_U, which must be there."""
        return _there(self.X_unstable, "X_unstable")

    @property
    def n_classes(self) -> int:
        """K."""
        return self.stable.shape[1]

    @cached_property
    def onehot(self) -> FloatArray:
        """Labels as rows of the unit matrix."""
        return np.eye(self.n_classes)[self.y]


@dataclass(frozen=True, eq=False)
class NewRows:
    """Unlabelled rows of the new domain: f_S, and X_U if it is there.

    Without a recalibration, the checks take f_S to be Pr[Y | f_S].
    """

    stable: FloatArray
    X_unstable: FloatArray | None = None
    recalibration: Recalibration | None = None

    @property
    def unstable(self) -> FloatArray:
        """X_U, which must be there."""
        return _there(self.X_unstable, "X_unstable")


@dataclass(frozen=True, eq=False)
class CheckInputs:
    """All that a check may use.

    Attributes
    ----------
    level : float
        Nominal false-alarm rate of each check.
    """

    training: TrainingRows | None = None
    new: NewRows | None = None
    level: float = 0.05
    random_state: int = 0

    @cached_property
    def available(self) -> set[str]:
        """Names of the parts that are there."""
        there = {"training": self.training, "new": self.new}
        parts = {name for name, rows in there.items() if rows is not None}
        for name, rows in there.items():
            parts |= {f"{name} X_U"} if getattr(rows, "X_unstable", None) is not None else set()
        return parts

    @property
    def labelled(self) -> TrainingRows:
        """The training rows, which must be there."""
        return _there(self.training, "training rows")

    @property
    def fresh(self) -> NewRows:
        """The new rows, which must be there."""
        return _there(self.new, "new rows")


def _there(part: Part | None, name: str) -> Part:
    if part is None:
        raise ValueError(f"This check needs {name}: pass it to `diagnose`, which skips it otherwise.")
    return part


def make_training_rows(
    stable_proba: Any, y: Any, domain: Any = None, X_unstable: Any = None, X_stable: Any = None
) -> TrainingRows:
    """Check labelled rows; `y` holds class positions 0..K-1."""
    stable = as_probability_matrix(stable_proba)
    labels = np.asarray(y)
    if labels.shape != (len(stable),) or labels.dtype.kind not in "iub":
        raise ValueError(
            f"y has shape {labels.shape} and dtype {labels.dtype}: pass one class position (an integer) for "
            f"each of the {len(stable)} rows."
        )
    if labels.size and (labels.min() < 0 or labels.max() >= stable.shape[1]):
        raise ValueError(
            f"y holds {labels.min()}..{labels.max()} but stable_proba has {stable.shape[1]} columns: pass "
            "class positions 0..K-1."
        )
    names, features = check_domain(domain, len(stable)), (_matrix(X, stable) for X in (X_unstable, X_stable))
    return TrainingRows(stable, labels.astype(np.intp), names, *features)


def make_new_rows(stable_proba: Any, X_unstable: Any = None) -> NewRows:
    """Check unlabelled rows."""
    stable = as_probability_matrix(stable_proba)
    return NewRows(stable, _matrix(X_unstable, stable))


def _matrix(X: Any, stable: FloatArray) -> FloatArray | None:
    if X is None:
        return None
    matrix = check_unstable(X, n_rows=len(stable))
    return np.asarray(matrix.toarray() if hasattr(matrix, "toarray") else matrix)
