"""What every data set is: named domains of (X, y), and who may learn from which.

The contract is two frozen dataclasses. A data set does not know how to train, and a trainer does not know
where a data set came from.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

ROLES = ("train", "validate", "oracle", "test")


@dataclass(frozen=True, eq=False)
class Domain:
    """One place the rows come from: a hospital, a style of picture, a colouring.

    Parameters
    ----------
    name : str
        Unique within its data set.
    X : array, DataFrame or ImageSequence
        One entry per row; image arrays are (rows, channels, height, width).
    y : ndarray of shape (n_rows,)
        Indices into the classes of the data set; -1 where a row has no label.
    facts : mapping
        What is known of the domain, for example ``{"agreement": 0.9}``.

    Examples
    --------
    >>> import numpy as np
    >>> from sfboost.datasets import Domain
    >>> len(Domain("north", np.zeros((3, 2)), np.array([0, 1, 1])))
    3
    """

    name: str
    X: Any
    y: NDArray[Any]
    facts: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if len(self.X) != len(self.y):
            raise ValueError(
                f"Domain {self.name!r} has {len(self.X)} rows of X and {len(self.y)} labels; "
                "X and y need one entry per row."
            )

    def __len__(self) -> int:
        return len(self.y)

    @property
    def agreement(self) -> float | None:
        """Pr[unstable feature = label] where it is known, else None."""
        value = self.facts.get("agreement")
        return None if value is None else float(value)


@dataclass(frozen=True, eq=False)
class Dataset:
    """Named domains, their roles, and which features are known to be stable.

    Parameters
    ----------
    name : str
        The name it is found by.
    domains : tuple of Domain
        In their order; names are unique.
    train, validate, test : tuple of str
        Names of the domains that may be learned from, selected on, and are reported.
    oracle : tuple of str
        Validation domains that look like the test domain. A choice made on them must be marked ORACLE.
    classes : tuple
        The class names; an integer label is an index into them.
    stable_features, unstable_features : list of int or list of str, or None
        Columns of X known to be stable or unstable; None where nobody knows.
    feature_groups : mapping of str to list
        Finer named groups of columns, where a family has them.
    feature_names : list of str, optional
        Names of the columns where X is a plain matrix.
    citation, licence : str
        Whom to cite, and under which terms the data are given.

    Examples
    --------
    >>> from sfboost.datasets import colored_digits
    >>> digits = colored_digits(view="table")
    >>> digits.train
    ('train-0.9', 'train-0.8')
    >>> X, y = digits.xy("test-0.1")
    >>> X.shape, y.shape
    ((597, 66), (597,))
    >>> len(digits.stable_features), digits.unstable_features
    (64, [64, 65])
    """

    name: str
    domains: tuple[Domain, ...]
    train: tuple[str, ...]
    test: tuple[str, ...]
    validate: tuple[str, ...] = ()
    oracle: tuple[str, ...] = ()
    classes: tuple[Any, ...] = (0, 1)
    stable_features: list[int] | list[str] | None = None
    unstable_features: list[int] | list[str] | None = None
    feature_groups: Mapping[str, list[int] | list[str]] = field(default_factory=dict)
    feature_names: list[str] | None = None
    citation: str = ""
    licence: str = ""

    def __post_init__(self) -> None:
        names = self.domain_names
        if len(set(names)) != len(names):
            raise ValueError(f"Data set {self.name!r} has two domains of one name in {names}; rename one.")
        for role in ROLES:
            unknown = sorted(set(getattr(self, role)) - set(names))
            if unknown:
                raise ValueError(
                    f"Data set {self.name!r} names {unknown} as {role} domains, but its domains are "
                    f"{list(names)}; name one of these."
                )
        seen = set(self.train) & (set(self.test) | set(self.oracle))
        if seen:
            raise ValueError(f"{sorted(seen)} cannot be both training and test domains; choose one role.")

    @property
    def domain_names(self) -> tuple[str, ...]:
        """The names of the domains, in order."""
        return tuple(domain.name for domain in self.domains)

    def domain(self, name: str) -> Domain:
        """Return the domain of this name."""
        for domain in self.domains:
            if domain.name == name:
                return domain
        raise KeyError(f"No domain {name!r} in {self.name!r}; it has {', '.join(self.domain_names)}.")

    def xy(self, name: str) -> tuple[Any, NDArray[Any]]:
        """Return plain ``(X, y)`` of one domain."""
        domain = self.domain(name)
        return domain.X, domain.y

    def pooled(self, names: str | Iterable[str] = "train") -> tuple[Any, NDArray[Any], NDArray[np.str_]]:
        """Return ``(X, y, sample_domain)`` of several domains, one below the other.

        Parameters
        ----------
        names : str or iterable of str, default="train"
            A role, or the names of domains.
        """
        if isinstance(names, str):
            if names not in ROLES:
                raise ValueError(f"Got role {names!r}; the roles are {', '.join(ROLES)}.")
            names = getattr(self, names)
        chosen = [self.domain(name) for name in names]
        if not chosen:
            raise ValueError(f"Data set {self.name!r} has no domain in this role; name domains instead.")
        sample_domain = np.repeat([d.name for d in chosen], [len(d) for d in chosen])
        return _below([d.X for d in chosen]), np.concatenate([d.y for d in chosen]), sample_domain

    def with_roles(
        self, *, train: Iterable[str], test: Iterable[str], validate: Iterable[str] = ()
    ) -> Dataset:
        """Return the same domains with other roles, for example to leave another domain out."""
        return replace(self, train=tuple(train), test=tuple(test), validate=tuple(validate), oracle=())


def check_seed(random_state: int) -> int:
    """Return the seed as an int, or say why it is none.

    Data sets take whole numbers alone: "same seed, same rows" has no meaning for a generator that moves on.

    Examples
    --------
    >>> from sfboost.datasets.contract import check_seed
    >>> check_seed(3)
    3
    """
    if isinstance(random_state, bool) or not isinstance(random_state, (int, np.integer)) or random_state < 0:
        raise ValueError(f"Got random_state={random_state!r}; give a whole number of 0 or more.")
    return int(random_state)


def as_names(given: str | Iterable[str]) -> tuple[str, ...]:
    """Return one name or several as a tuple of names.

    Examples
    --------
    >>> from sfboost.datasets.contract import as_names
    >>> as_names("photo"), as_names(["photo", "sketch"])
    (('photo',), ('photo', 'sketch'))
    """
    return (given,) if isinstance(given, str) else tuple(given)


def unique_names(names: Iterable[str]) -> list[str]:
    """Return the names with a number after each that was there before.

    Examples
    --------
    >>> from sfboost.datasets.contract import unique_names
    >>> unique_names(["train-0.5", "train-0.5", "test-0.5"])
    ['train-0.5', 'train-0.5-2', 'test-0.5']
    """
    seen: dict[str, int] = {}
    fresh = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        fresh.append(name if seen[name] == 1 else f"{name}-{seen[name]}")
    return fresh


def _below(parts: list[Any]) -> Any:
    """Stack arrays, frames or image sequences without asking which extra is installed."""
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts)
    if hasattr(parts[0], "iloc"):
        import pandas as pd

        return pd.concat(parts, ignore_index=True)
    return functools.reduce(operator.add, parts)
