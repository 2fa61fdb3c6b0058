"""Which rows are of which domain."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from sfboost.adaptation.checks import is_missing
from sfboost.marginal.probabilities import IntArray


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
