"""Stress domains: labelled training rows resampled until the unstable features mean something else.

An adaptation is chosen honestly by adapting, with labels hidden, to domains that look like the feared test
domain. Training rows resampled by (Y, Û), where Û is the class that the unstable features suggest, give
such domains at any agreement Pr[Û = Y]. No test label is needed. Limit: only shifts in how Û goes with Y
are imitated.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from sfboost.marginal.probabilities import IntArray

AGREEMENTS = (0.1, 0.3, 0.5, 0.7, 0.9)


class StressDomain(NamedTuple):
    """Rows that together have the wanted agreement, Pr[Û = Y]: positions in the labelled rows, none twice."""

    agreement: float
    rows: IntArray


def stress_domains(
    y: Any,
    guess: Any,
    *,
    agreements: Sequence[float] = AGREEMENTS,
    n_rows: int | None = None,
    random_state: int = 0,
) -> list[StressDomain]:
    """Resample labelled rows, without replacement, to domains of the wanted agreements.

    Leave out rows where the unstable features are right, and they are wrong more often: a domain with
    another meaning, made of rows whose labels are known.

    The class shares stay as they are; among rows with Û ≠ Y the wrong guesses keep their shares.

    Parameters
    ----------
    y : array of shape (n,)
        Labels.
    guess : array of shape (n,)
        Û, see `sfboost.diagnostics.unstable_guess`.
    agreements : sequence of float
        Wanted Pr[Û = Y].
    n_rows : int, optional
        Rows per domain; the most there are if None or if there are fewer.
    random_state : int
        Seed of the draws.

    Returns
    -------
    list of StressDomain

    Examples
    --------
    >>> import numpy as np
    >>> y = np.tile([0, 1], 200)
    >>> guess = np.where(np.arange(400) < 340, y, 1 - y)
    >>> domain = stress_domains(y, guess, agreements=[0.25])[0]
    >>> float((guess[domain.rows] == y[domain.rows]).mean())
    0.25

    References
    ----------
    .. [1] S. Sagawa, P. W. Koh, T. B. Hashimoto and P. Liang (2020). Distributionally Robust Neural
       Networks for Group Shifts. ICLR. (Groups of label and spurious feature.)
    """
    y, guess = np.asarray(y), np.asarray(guess)
    rng = np.random.default_rng(random_state)
    classes, counts = np.unique(y, return_counts=True)
    shares = counts / len(y)
    domains = []
    for agreement in agreements:
        if not 0 <= agreement <= 1:
            raise ValueError(f"An agreement is a probability, Pr[guess = y]; got {agreement}.")
        wanted = [
            (c, right, p * (agreement if right else 1 - agreement))
            for c, p in zip(classes, shares, strict=True)
            for right in (True, False)
        ]
        cells = [(np.flatnonzero((y == c) & ((guess == y) == right)), share) for c, right, share in wanted]
        largest = min(len(rows) / share for rows, share in cells if share > 0)
        total = largest if n_rows is None else min(largest, float(n_rows))
        drawn = [rng.choice(rows, round(total * share), replace=False) for rows, share in cells if share > 0]
        chosen = np.concatenate(drawn)
        if len(chosen) < 2 * len(classes):
            raise ValueError(
                f"Only {len(chosen)} rows can be brought to agreement {agreement}: some class "
                "never (or always) has "
                "the guess of its own name. Leave this agreement out, or pass more labelled rows."
            )
        domains.append(StressDomain(float(agreement), np.sort(chosen)))
    return domains
