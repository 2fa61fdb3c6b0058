"""The paper's counter-examples and the raw CE-DD data, as draws with the exact f_S."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from sfboost.diagnostics.simulation import IntArray, SimulatedDomain
from sfboost.marginal.probabilities import FloatArray

Bits = npt.NDArray[np.intp]


def _bits(rng: np.random.Generator, n_rows: int, share: float = 0.5) -> Bits:
    return (rng.random(n_rows) < share).astype(np.intp)


def _rows(stable: Bits, unstable: Bits, y: IntArray, posterior: FloatArray) -> SimulatedDomain:
    """Rows whose f_S is `posterior[x_S]`."""
    return SimulatedDomain(
        stable[:, None].astype(float), unstable[:, None].astype(float), y, posterior[stable]
    )


def _xor(rng: np.random.Generator, n_rows: int) -> SimulatedDomain:
    stable, unstable = _bits(rng, n_rows), _bits(rng, n_rows)
    return _rows(stable, unstable, stable ^ unstable, np.full((2, 2), 0.5))


def _y1(rng: np.random.Generator, n_rows: int) -> SimulatedDomain:
    stable, unstable = _bits(rng, n_rows), _bits(rng, n_rows)
    return _rows(stable, unstable, stable * unstable, np.array([[1.0, 0.0], [0.5, 0.5]]))


def _y2(rng: np.random.Generator, n_rows: int) -> SimulatedDomain:
    stable, unstable = _bits(rng, n_rows), _bits(rng, n_rows)
    return _rows(stable, unstable, stable * (1 - unstable), np.array([[1.0, 0.0], [0.5, 0.5]]))


def _y3(rng: np.random.Generator, n_rows: int) -> SimulatedDomain:
    stable, unstable = _bits(rng, n_rows), _bits(rng, n_rows)
    return _rows(stable, unstable, unstable, np.full((2, 2), 0.5))


def _y4(rng: np.random.Generator, n_rows: int) -> SimulatedDomain:
    stable, unstable = _bits(rng, n_rows), _bits(rng, n_rows)
    return _rows(stable, unstable, _bits(rng, n_rows), np.full((2, 2), 0.5))


def _ce_dd(rng: np.random.Generator, n_rows: int) -> SimulatedDomain:
    stable = _bits(rng, n_rows)
    y = 1 - stable ^ _bits(rng, n_rows, 0.75)
    unstable = 1 - (1 - y ^ _bits(rng, n_rows, 0.9)) ^ stable
    return _rows(stable, unstable, y, np.array([[0.75, 0.25], [0.25, 0.75]]))


def _anti_causal(rng: np.random.Generator, n_rows: int) -> SimulatedDomain:
    y = _bits(rng, n_rows)
    stable, unstable = y ^ _bits(rng, n_rows, 0.25), y ^ _bits(rng, n_rows, 0.1)
    return _rows(stable, unstable, y, np.array([[0.75, 0.25], [0.25, 0.75]]))


def _copied_stable(rng: np.random.Generator, n_rows: int) -> SimulatedDomain:
    # The law of (X_S, X_U) is that of _anti_causal; only the labels tell them apart.
    y = _bits(rng, n_rows)
    stable = y ^ _bits(rng, n_rows, 0.25)
    unstable = stable ^ _bits(rng, n_rows, 0.3)
    return _rows(stable, unstable, y, np.array([[0.75, 0.25], [0.25, 0.75]]))


#: Name → draw. The last two share one law of (X_S, X_U): adapting gains 15 points in one, loses 15 in the
#: other.
COUNTER_EXAMPLES: dict[str, Callable[[np.random.Generator, int], SimulatedDomain]] = {
    "XOR": _xor,
    "Y1": _y1,
    "Y2": _y2,
    "Y3": _y3,
    "Y4": _y4,
    "CE-DD": _ce_dd,
    "AC": _anti_causal,
    "copied X_S": _copied_stable,
}


def counter_example(name: str, n_rows: int, seed: int) -> SimulatedDomain:
    """Draw rows of a counter-example.

    "XOR" (Section 4), "Y1" to "Y4" (Example A.1, as corrected), "CE-DD" with its raw columns; "AC" satisfies
    the assumptions, and "copied X_S" has the same law of (X_S, X_U) but X_U copies X_S.

    Examples
    --------
    >>> counter_example("XOR", 4, seed=0).posterior[0]
    array([0.5, 0.5])
    """
    if name not in COUNTER_EXAMPLES:
        raise ValueError(f"{name!r} is no counter-example: use one of {list(COUNTER_EXAMPLES)}.")
    return COUNTER_EXAMPLES[name](np.random.default_rng(seed), n_rows)
