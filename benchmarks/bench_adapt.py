"""`adapt()` against one LogisticRegression fit on hard labels of the same rows; time and peak memory.

Run: python benchmarks/bench_adapt.py [--rows 1000000] [--features 20] [--repeats 3]
"""

from __future__ import annotations

import argparse
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

import sfboost


def make_rows(n: int, d: int, seed: int = 0) -> tuple[Any, Any, Any]:
    """Two classes, a stable score worth about 75 %, d unstable features."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    score = (2 * y - 1) * 0.67 + rng.normal(size=n)
    stable = 1 / (1 + np.exp(-2 * 0.67 * score))
    X = rng.normal(size=(n, d)) + np.outer(2 * y - 1, rng.normal(size=d) * 0.4)
    return stable, X, y


def timed(run: Callable[[], Any]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def peak_memory(run: Callable[[], Any]) -> int:
    """Largest amount that numpy held at once above what was there before, in bytes."""
    tracemalloc.start()
    run()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--features", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    stable, X, y = make_rows(options.rows, options.features)
    hard = (stable > 0.5).astype(int)

    def ours() -> Any:
        return sfboost.adapt(stable, X)

    def theirs() -> Any:
        return LogisticRegression(max_iter=1000).fit(X, hard)

    rounds = [(timed(ours), timed(theirs)) for _ in range(options.repeats)]
    our_time, their_time = (float(np.median(column)) for column in zip(*rounds, strict=True))
    share = peak_memory(ours) / (X.nbytes + stable.nbytes)
    accuracy = (ours().predict(stable, X) == y).mean()
    print(f"n={options.rows} d={options.features} K=2   accuracy {(hard == y).mean():.4f} -> {accuracy:.4f}")
    print(f"adapt {our_time:.2f} s, LogisticRegression on hard labels {their_time:.2f} s")
    print(f"ratio {our_time / their_time:.2f} (wanted: at most 3)")
    print(f"peak memory {share:.2f} x the input (wanted: at most 3)")


if __name__ == "__main__":
    main()
