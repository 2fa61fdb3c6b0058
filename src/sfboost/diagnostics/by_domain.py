"""Which rows are of which domain."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.intp]


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
