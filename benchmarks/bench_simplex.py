"""Batched simplex least squares against a loop over scipy.optimize.nnls.

Run: python benchmarks/bench_simplex.py [--rows 100000]
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from scipy.optimize import nnls

from sfboost.marginal import simplex_least_squares


def by_nnls(matrix: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """The usual way: the sum as a heavily weighted extra equation, one row at a time."""
    heavy = 1e6
    system = np.vstack([matrix, np.full(matrix.shape[1], heavy)])
    return np.array([nnls(system, np.append(target, heavy))[0] for target in targets])


def kkt_residual(matrix: np.ndarray, targets: np.ndarray, points: np.ndarray) -> float:
    gradient = (points @ matrix.T - targets) @ matrix
    gap = (points * (gradient - gradient.min(axis=1, keepdims=True))).sum(axis=1)
    return float(max(gap.max(), np.abs(points.sum(axis=1) - 1).max(), -points.min()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    for k, rows, strength in ((7, options.rows, 0.3), (7, options.rows, 1.0), (100, 300, 30.0)):
        matrix = rng.dirichlet(np.ones(k), size=k).T + strength * np.eye(k)
        matrix /= matrix.sum(axis=0)
        targets = rng.dirichlet(np.full(k, 0.5), size=rows)
        start = time.perf_counter()
        ours = simplex_least_squares(matrix, targets)
        middle = time.perf_counter()
        theirs = by_nnls(matrix, targets)
        end = time.perf_counter()
        print(f"K={k} n={rows} condition {np.linalg.cond(matrix):.1f}")
        print(f"  ours {1e6 * (middle - start) / rows:.1f} us a row, loop {1e6 * (end - middle) / rows:.1f}")
        wanted = " (wanted: at least 3)" if k == 7 else " (wanted: that it works)"
        print(f"  ratio {(end - middle) / (middle - start):.1f}{wanted}")
        apart = np.abs(ours - theirs).max()
        print(f"  KKT residual {kkt_residual(matrix, targets, ours):.1e}, apart {apart:.1e}")


if __name__ == "__main__":
    main()
