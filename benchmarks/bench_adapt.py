"""`adapt()` against one LogisticRegression fit on hard labels of the same rows: CPU time, memory, likelihood.

Both sides take turns in one run; the ratio is the median over the repeats. Rows are Gaussian classes, drawn
in two ways: "near" with unstable features that tell the classes a little, independent or (`--decay`) with the
falling spectrum of embeddings; "far" with class means that nearly separate them. "exact" is the penalised
likelihood of the same penalty after `fit_linear` to 1e-12 from where `adapt` stopped: the same local optimum.

Run: OMP_NUM_THREADS=1 python benchmarks/bench_adapt.py [--draws near far] [--decay 0.7] [--repeats 3]
     [--shapes 5000x2048x10]
"""

from __future__ import annotations

import argparse
import time
import tracemalloc
import warnings
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression

import sfboost
from sfboost.heads.linear import fit_linear
from sfboost.heads.objectives import LogLikelihood
from sfboost.marginal import log_weights

#: rows x features x classes → ratio wanted
SHAPES = {"5000x2048x10": 8.0, "20000x100x50": 5.0, "20000x100x10": 3.0, "1000000x20x2": 3.0}


def near(n: int, d: int, k: int, decay: float) -> tuple[Any, Any, Any]:
    """Exact f_S of three Gaussian features, and d unstable ones that tell the classes better."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, k, n)
    means = 1.2 * rng.normal(size=(k, 3))
    x = means[y] + rng.normal(size=(n, 3))
    stable = softmax(x @ means.T - 0.5 * (means**2).sum(axis=1), axis=1)
    X = rng.normal(size=(n, d)) + (rng.normal(size=(k, d)) * 3 / np.sqrt(d))[y]
    if decay:
        turn, _ = np.linalg.qr(rng.normal(size=(d, d)))
        X = (X * np.arange(1, d + 1) ** -decay) @ turn
    return stable, X, y


def far(n: int, d: int, k: int, _: float) -> tuple[Any, Any, Any]:
    """Exact f_S of eight features, and d unstable ones whose class means lie far apart."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, k, n)
    means = rng.normal(size=(k, 8))
    centres = rng.normal(size=(k, d)) * min(1.0, 8.0 / np.sqrt(d))
    x = means[y] + rng.normal(size=(n, 8))
    X = centres[y] + 1.5 * rng.normal(size=(n, d))
    return softmax(x @ means.T - 0.5 * (means**2).sum(axis=1), axis=1), X, y


DRAWS: dict[str, Callable[..., tuple[Any, Any, Any]]] = {"near": near, "far": far}


def timed(run: Callable[[], Any]) -> float:
    start = time.process_time()
    run()
    return time.process_time() - start


def peak_memory(run: Callable[[], Any]) -> int:
    """Largest amount that numpy held at once above what was there before, in bytes."""
    tracemalloc.start()
    run()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def exact_objective(adaptation: Any, stable: Any, X: Any) -> float:
    """The penalised −ℓ where no step lowers it any more."""
    head = adaptation.head
    loss = LogLikelihood(log_weights(stable, adaptation.divisor), np.full(len(stable), 1 / len(stable)))
    rows = adaptation.standardizer.apply(X)
    return fit_linear(rows, loss, l2=head.l2, start=head.linear_fit_, tolerance=1e-12).value


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--shapes", nargs="+", default=list(SHAPES))
    parser.add_argument("--draws", nargs="+", choices=list(DRAWS), default=list(DRAWS))
    parser.add_argument("--decay", type=float, default=0.0)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # LogisticRegression's own limit of 100 iterations
    for name, shape in product(options.draws, options.shapes):
        compare(f"{shape} {name}", *DRAWS[name](*map(int, shape.split("x")), options.decay), options.repeats)


def compare(name: str, stable: Any, X: Any, y: Any, repeats: int) -> None:
    """One line for each thing that is measured of one table."""
    hard = stable.argmax(axis=1)

    def ours() -> Any:
        return sfboost.adapt(stable, X, answer="paper")  # the wide shapes have few rows per parameter

    times = np.array(
        [(timed(ours), timed(lambda: LogisticRegression().fit(X, hard))) for _ in range(repeats)]
    )
    ratio = float(np.median(times[:, 0] / times[:, 1]))
    share = peak_memory(ours) / (X.nbytes + stable.nbytes)
    adaptation = ours()
    missing = adaptation.head.objective_ - exact_objective(adaptation, stable, X)
    accuracy = (adaptation.predict(stable, X) == y).mean()
    print(f"{name}: accuracy {(hard == y).mean():.4f} -> {accuracy:.4f}")
    print(f"  adapt {np.median(times[:, 0]):.2f} s, LogisticRegression {np.median(times[:, 1]):.2f} s")
    print(f"  ratio {ratio:.1f} (wanted: at most {SHAPES.get(name.split(maxsplit=1)[0], float('nan')):g})")
    print(f"  memory {share:.2f} x the input (wanted: at most 3)")
    print(f"  penalised likelihood {-adaptation.head.objective_:.9f}, {missing:.1e} below the exact one")


if __name__ == "__main__":
    main()
