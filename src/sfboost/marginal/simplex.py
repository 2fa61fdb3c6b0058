"""Exact simplex-constrained least squares for many right-hand sides at once.

For each row q solve  min ‖E p − q‖²  subject to  p ≥ 0, Σp = 1.  All rows share E, so a support (the
set of positive entries) determines an affine map q ↦ p that is computed once. Rows start with full
support, drop negative entries, and take back the entry that violates optimality most; rows that share
a support are solved by one product.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import nnls

from sfboost.marginal.probabilities import BoolArray, FloatArray, IntArray

# The normal equations square the condition number: beyond this one they lose the digits we promise.
_WORST_CONDITION = 1e3


def simplex_least_squares(matrix: FloatArray, targets: FloatArray) -> FloatArray:
    """Return for each row q of `targets` the simplex point p that minimises ‖matrix · p − q‖₂.

    Parameters
    ----------
    matrix : array of shape (m, K)
    targets : array of shape (n, m)

    Returns
    -------
    array of shape (n, K)
        Rows are non-negative and sum to one. Where `matrix` is singular the minimiser is not unique,
        and one of them is returned.

    Examples
    --------
    >>> import numpy as np
    >>> simplex_least_squares(np.eye(3), np.array([[0.6, 0.6, -0.2]]))
    array([[0.5, 0.5, 0. ]])

    References
    ----------
    .. [1] C. L. Lawson and R. J. Hanson (1974). Solving Least Squares Problems. Prentice-Hall. (Active
       sets.)
    """
    if np.linalg.cond(matrix) > _WORST_CONDITION:
        distinct, place = np.unique(targets, axis=0, return_inverse=True)
        return _row_by_row(matrix, distinct)[place.reshape(-1)]
    gram, projected = matrix.T @ matrix, targets @ matrix
    solution, unsolved = _pivot(gram, projected)
    if unsolved.any():
        solution[unsolved] = _row_by_row(matrix, targets[unsolved])
    return solution


def _pivot(gram: FloatArray, projected: FloatArray) -> tuple[FloatArray, BoolArray]:
    """Exchange supports until every row is optimal; second output: the rows that did not settle."""
    n_rows, n_classes = projected.shape
    solution = np.zeros((n_rows, n_classes))
    support = np.ones((n_rows, n_classes), dtype=bool)
    waiting = np.arange(n_rows)
    tolerance = 1e-12 * max(1.0, float(np.abs(gram).max()))
    maps: dict[bytes, tuple[FloatArray, FloatArray]] = {}
    for _ in range(4 * n_classes):
        point = _solve_on_supports(gram, projected[waiting], support[waiting], maps)
        negative = point < -tolerance
        infeasible = negative.any(axis=1)
        support[waiting[infeasible]] &= ~negative[infeasible]
        # Feasible rows are done unless an entry outside the support would lower the distance.
        feasible, point = waiting[~infeasible], point[~infeasible]
        worst, slack = _worst_outside(point @ gram - projected[feasible], support[feasible])
        open_again = slack < -tolerance
        support[feasible[open_again], worst[open_again]] = True
        solution[feasible[~open_again]] = np.maximum(point[~open_again], 0.0)
        waiting = np.concatenate([waiting[infeasible], feasible[open_again]])
        if not len(waiting):
            break
    unsolved = np.zeros(n_rows, dtype=bool)
    unsolved[waiting] = True
    return solution, unsolved


def _worst_outside(gradient: FloatArray, inside: BoolArray) -> tuple[IntArray, FloatArray]:
    """The entry outside each support with the lowest gradient, and how far it is above the level inside.

    At the optimum the gradient is level on the support and nowhere lower outside it (KKT).
    """
    level = np.einsum("ij,ij->i", gradient, inside) / inside.sum(axis=1)
    outside = np.where(inside, np.inf, gradient)
    worst = outside.argmin(axis=1)
    return worst, outside[np.arange(len(worst)), worst] - level


def _solve_on_supports(
    gram: FloatArray,
    projected: FloatArray,
    support: BoolArray,
    maps: dict[bytes, tuple[FloatArray, FloatArray]],
) -> FloatArray:
    """Equality-constrained solution of each row on its own support; `maps` is filled as needed."""
    order, starts = _sort_by_support(support)
    ordered = projected[order]
    solved = np.empty_like(ordered)
    for start, stop in pairwise([*starts, len(order)]):
        mask = support[order[start]]
        key = mask.tobytes()
        if key not in maps:
            maps[key] = _affine_map(gram, mask)
        slope, offset = maps[key]
        np.matmul(ordered[start:stop], slope, out=solved[start:stop])
        solved[start:stop] += offset
    point = np.empty_like(solved)
    point[order] = solved
    return point


def _sort_by_support(support: BoolArray) -> tuple[IntArray, list[int]]:
    """An order of the rows that brings equal supports together, and where each of them starts."""
    packed = np.packbits(support, axis=1)
    keys: npt.NDArray[Any] = packed[:, 0]
    if packed.shape[1] > 1:
        keys = np.unique(packed, axis=0, return_inverse=True)[1].reshape(-1)
    order = np.argsort(keys, kind="stable")
    return order, [0, *(np.flatnonzero(np.diff(keys[order])) + 1).tolist()]


def _affine_map(gram: FloatArray, support: BoolArray) -> tuple[FloatArray, FloatArray]:
    """The map c ↦ p = c · slope + offset that solves the KKT system of one support."""
    inside = np.flatnonzero(support)
    n_classes, size = len(gram), len(inside)
    system = np.zeros((size + 1, size + 1))
    system[:size, :size] = gram[np.ix_(inside, inside)]
    system[:size, size] = system[size, :size] = 1.0
    inverse = np.linalg.inv(system)
    slope, offset = np.zeros((n_classes, n_classes)), np.zeros(n_classes)
    slope[np.ix_(inside, inside)] = inverse[:size, :size].T
    offset[inside] = inverse[:size, size]
    return slope, offset


def _row_by_row(matrix: FloatArray, targets: FloatArray) -> FloatArray:
    """The same problem as non-negative least squares, one row at a time, for any `matrix`.

    On the simplex E p − q = (E − q1ᵀ) p. Minimising ‖(E − q1ᵀ) p‖² + (1ᵀp − 1)² over p ≥ 0 gives a
    multiple of the simplex solution: along a ray t·v the minimum over t increases with ‖(E − q1ᵀ) v‖.
    """
    n_classes = matrix.shape[1]
    rhs = np.zeros(matrix.shape[0] + 1)
    rhs[-1] = 1.0
    solution = np.empty((len(targets), n_classes))
    for i, target in enumerate(targets):
        system = np.vstack([matrix - target[:, None], np.ones(n_classes)])
        point = nnls(system, rhs)[0]
        solution[i] = point / point.sum()
    return solution
