"""Rows of many domains as a few stacks of equal size, so that one product serves hundreds of domains."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from sfboost.marginal.probabilities import FloatArray, IntArray

# Domains of a stack differ in size by at most this factor: so much of a stack may be empty places.
_SPREAD = 1.2
# Numbers in a stack: it stays in the processor's cache.
_NUMBERS = 2**19


@dataclass(frozen=True, eq=False)
class DomainStack:
    """Domains of about one size.

    Attributes
    ----------
    domains : integer array of shape (D,)
        Their numbers.
    stable : array of shape (D, K, m)
        f_S; an empty place has one everywhere.
    design : array of shape (D, d + 1, m)
        X_U and a last row of ones; an empty place has zero.
    weight : array of shape (D, m)
        One, and zero for an empty place.
    """

    domains: IntArray
    stable: FloatArray
    design: FloatArray
    weight: FloatArray


def stacks(
    stable: FloatArray, X: FloatArray, domain: IntArray, n_domains: int, wanted: IntArray | None = None
) -> list[DomainStack]:
    """All rows of the wanted domains, by default all; `domain` is the number of the domain of each."""
    wanted = np.arange(n_domains) if wanted is None else wanted
    order = np.argsort(domain, kind="stable")
    sizes = np.bincount(domain, minlength=n_domains)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    return [
        _stack(stable, X, wanted[members], order, starts, sizes)
        for members in _of_one_size(sizes[wanted], X.shape[1] + 1)
    ]


def _of_one_size(sizes: IntArray, width: int) -> Iterator[IntArray]:
    by_size = np.argsort(sizes, kind="stable")
    first = 0
    while first < len(by_size):
        smallest = max(int(sizes[by_size[first]]), 1)
        last = int(np.searchsorted(sizes[by_size], _SPREAD * smallest, side="right"))
        last = min(max(last, first + 1), first + max(1, _NUMBERS // int(width * _SPREAD * smallest)))
        yield by_size[first:last]
        first = last


def _stack(
    stable: FloatArray, X: FloatArray, members: IntArray, order: IntArray, starts: IntArray, sizes: IntArray
) -> DomainStack:
    places = np.arange(max(int(sizes[members].max()), 1))
    there = places < sizes[members][:, None]
    rows = order[np.minimum(starts[members][:, None] + places, len(order) - 1)]
    design = np.ones((len(members), X.shape[1] + 1, len(places)))
    design[:, :-1] = X[rows].transpose(0, 2, 1)
    design *= there[:, None]
    shown = np.where(there[:, :, None], stable[rows], 1.0).transpose(0, 2, 1)
    return DomainStack(members, np.ascontiguousarray(shown), design, there.astype(np.float64))
