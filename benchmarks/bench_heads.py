"""Soft-label head against scikit-learn's LogisticRegression on duplicated weighted rows, at equal objective.

Run: python benchmarks/bench_heads.py [--repeats 3]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression

from sfboost.heads import SoftLogisticRegression
from sfboost.heads.objectives import CrossEntropy

#: rows, features, classes, ratio wanted
CASES = ((20_000, 256, 7, 2.0), (200_000, 8, 2, 1.0))


def make_rows(n: int, d: int, k: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    return X, softmax(X @ rng.normal(size=(d, k)) * 2 / np.sqrt(d) + rng.gumbel(size=(n, k)), axis=1)


def objective(X: Any, targets: Any, coef: Any, intercept: Any, l2: float) -> float:
    loss = CrossEntropy(targets, np.full(len(X), 1 / len(X)))
    value, _ = loss.value_and_gradient(X @ coef.T + intercept)
    return value + 0.5 * l2 * float(np.vdot(coef, coef))


def timed(run: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = run()
    return time.perf_counter() - start, result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    for n, d, k, wanted in CASES:
        X, targets = make_rows(n, d, k)
        l2 = 1.0 / n

        def ours(X: Any = X, targets: Any = targets, l2: float = l2) -> Any:
            return SoftLogisticRegression(l2=l2, tol=1e-6).fit(X, targets)

        def theirs(X: Any = X, targets: Any = targets, n: int = n, k: int = k) -> Any:
            rows, labels = np.tile(X, (k, 1)), np.repeat(np.arange(k), n)
            return LogisticRegression(C=1.0, max_iter=1000).fit(rows, labels, sample_weight=targets.T.ravel())

        runs = [(timed(ours), timed(theirs)) for _ in range(options.repeats)]
        our_time, their_time = (float(np.median([run[i][0] for run in runs])) for i in (0, 1))
        values = [objective(X, targets, run.coef_, run.intercept_, l2) for _, run in runs[-1]]
        print(f"n={n} d={d} K={k}: ours {our_time:.2f} s, scikit-learn {their_time:.2f} s")
        print(f"  ratio {their_time / our_time:.1f} (wanted: at least {wanted})")
        print(f"  objective {values[0]:.9f} and {values[1]:.9f}: ours is {values[1] - values[0]:+.1e} better")


if __name__ == "__main__":
    main()
