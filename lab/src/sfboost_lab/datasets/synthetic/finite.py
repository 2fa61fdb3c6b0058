"""Finite families: every domain is a `FiniteJoint`, so everything about it is exact."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from sfboost.datasets.contract import Dataset, Domain
from sfboost_lab.datasets.synthetic.settings import Setting, domain_rng
from sfboost_lab.theory import FiniteJoint

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class FiniteFamily:
    """Domains with finitely many values of X.

    Parameters
    ----------
    name : str
        Name of the family.
    cells : ndarray of shape (n_cells, n_features)
        The values of X, as the rows that are drawn.
    joints : mapping of str to FiniteJoint
        The law of each domain; its cells in order are those of ``cells``.
    settings : tuple of Setting
        Names, roles and dials of the domains.
    groups : mapping of str to list of int
        Columns by kind; ``"stable"`` is one of them.

    Examples
    --------
    >>> from sfboost_lab.datasets.synthetic import anti_causal
    >>> ac = anti_causal()
    >>> ac.ceiling("test-0.1", "stable"), ac.ceiling("test-0.1", "all")
    (0.75, 0.9)
    >>> ac.sample(5, random_state=1).domain("train-0.95").X.shape
    (5, 2)
    """

    name: str
    cells: Floats
    joints: Mapping[str, FiniteJoint]
    settings: tuple[Setting, ...]
    groups: Mapping[str, list[int]]
    citation: str = ""

    def ceiling(self, domain: str, features: str | Sequence[int] = "all") -> float:
        """Return the best accuracy in a domain with all, the stable, the unstable or any columns: exact."""
        masses = self.masses(domain)
        _, cell = np.unique(self.cells[:, pick(self.groups, features)], axis=0, return_inverse=True)
        seen = np.zeros((cell.max() + 1, masses.shape[1]))
        np.add.at(seen, cell.ravel(), masses)
        # Rounding of the last digits: sums of decimal probabilities should print as such.
        return round(float(seen.max(axis=1).sum()), 14)

    def masses(self, domain: str) -> Floats:
        """Return Pr[X = cell, Y = class] of a domain, of shape (n_cells, n_classes)."""
        joint = self.joint(domain)
        return joint.table.reshape(-1, joint.n_classes)

    def joint(self, domain: str) -> FiniteJoint:
        """Return the law of a domain."""
        if domain not in self.joints:
            raise KeyError(f"No domain {domain!r} in {self.name!r}; it has {', '.join(self.joints)}.")
        return self.joints[domain]

    def sample(self, n_rows: int = 1024, random_state: int = 0) -> Dataset:
        """Draw a data set: the same seed gives the same rows, and a larger one begins with the smaller."""
        domains = tuple(self._draw(setting, n_rows, random_state) for setting in self.settings)
        n_classes = next(iter(self.joints.values())).n_classes
        return dataset_of(
            self.name, domains, self.settings, self.groups, tuple(range(n_classes)), self.citation
        )

    def _draw(self, setting: Setting, n_rows: int, random_state: int) -> Domain:
        masses = self.masses(setting.name)
        cumulative = np.cumsum(masses.ravel())
        uniform = domain_rng(random_state, setting.name).random(check_rows(n_rows))
        # The last cell also takes what rounding left above the cumulative sum.
        drawn = np.minimum(np.searchsorted(cumulative, uniform, side="right"), masses.size - 1)
        cell, y = np.divmod(drawn, masses.shape[1])
        return Domain(setting.name, self.cells[cell], y.astype(np.int64), dict(setting.dials))


def build(
    name: str,
    settings: tuple[Setting, ...],
    values: Sequence[Sequence[float]],
    n_classes: int,
    probability: Callable[[Setting, tuple[float, ...], int], float],
    groups: Mapping[str, list[int]],
    encode: Callable[[tuple[float, ...]], Sequence[float]] = lambda cell: cell,
    citation: str = "",
) -> FiniteFamily:
    """Return the family whose cells are all combinations of ``values`` (X_S first), with the probabilities.

    Examples
    --------
    >>> from sfboost_lab.datasets.synthetic.finite import build
    >>> from sfboost_lab.datasets.synthetic.settings import settings
    >>> fair = build("fair", settings([0.5], [], [], {"agreement": 0.5}), [(0, 1)], 2,
    ...              lambda setting, cell, y: 0.25, {"stable": [0]})
    >>> fair.ceiling("train-0.5")
    0.5
    """
    cells = list(product(*values))
    joints = {}
    for setting in settings:
        masses = np.array([[probability(setting, cell, y) for y in range(n_classes)] for cell in cells])
        try:
            joints[setting.name] = FiniteJoint(masses.reshape(len(values[0]), -1, n_classes))
        except ValueError as error:
            raise ValueError(f"Domain {setting.name!r} of {name!r}: {error} Check the parameters.") from None
    encoded = np.array([encode(cell) for cell in cells], dtype=np.float64)
    return FiniteFamily(name, encoded, joints, settings, groups, citation)


def pick(groups: Mapping[str, list[int]], features: str | Sequence[int]) -> list[int]:
    """Return the columns of a named group: ``"all"``, ``"unstable"`` (all but the stable), or a group.

    Examples
    --------
    >>> from sfboost_lab.datasets.synthetic.finite import pick
    >>> pick({"stable": [0], "complementary": [1], "other": [2]}, "unstable")
    [1, 2]
    """
    if not isinstance(features, str):
        return list(features)
    unstable = sorted(c for group, columns in groups.items() if group != "stable" for c in columns)
    known = {**groups, "unstable": unstable, "all": sorted([*groups["stable"], *unstable])}
    if features not in known:
        raise ValueError(f"Got features={features!r}; give one of {', '.join(known)}, or a list of columns.")
    return known[features]


def dataset_of(
    name: str,
    domains: tuple[Domain, ...],
    settings: tuple[Setting, ...],
    groups: Mapping[str, list[int]],
    classes: tuple[int, ...],
    citation: str,
) -> Dataset:
    """Return drawn domains as a data set with the roles of their settings.

    Examples
    --------
    >>> from sfboost_lab.datasets.synthetic import anti_causal
    >>> anti_causal().sample(2).validate  # made by this function
    ('validate-0.6',)
    """
    roles = {
        role: tuple(s.name for s in settings if s.role == role) for role in ("train", "validate", "test")
    }
    return Dataset(
        name=name,
        domains=domains,
        train=roles["train"],
        validate=roles["validate"],
        test=roles["test"],
        classes=classes,
        stable_features=pick(groups, "stable"),
        unstable_features=pick(groups, "unstable"),
        feature_groups={group: list(columns) for group, columns in groups.items()},
        citation=citation,
        licence="drawn by sfboost, Apache-2.0",
    )


def check_rows(n_rows: int) -> int:
    """Return the number of rows, or say why it is none.

    Examples
    --------
    >>> from sfboost_lab.datasets.synthetic.finite import check_rows
    >>> check_rows(10)
    10
    """
    if isinstance(n_rows, bool) or not isinstance(n_rows, (int, np.integer)) or n_rows < 1:
        raise ValueError(f"Got n_rows={n_rows!r}; give a whole number of 1 or more.")
    return int(n_rows)
