"""Coverage of the 95 % intervals of an adaptation, conditional on f_S.

    python benchmarks/study_coverage.py --repeats 400

Two and three classes with the true posterior as f_S; the target of each interval is its value in a draw of
100 000 rows. The figures of docs/guard.md come from here.
"""

from __future__ import annotations

import argparse

import numpy as np

from sfboost import adapt


def draw(n_rows: int, n_classes: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Stable probabilities and two unstable features of one domain."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n_rows)
    x = 1.4 * np.eye(n_classes)[y] + rng.normal(size=(n_rows, n_classes))
    f = np.exp(1.4 * x)
    means = np.array([[0.0, 0.0], [1.2, -0.8], [0.0, 1.2]])[:n_classes]
    return f / f.sum(axis=1, keepdims=True), means[y] + rng.normal(size=(n_rows, 2))


def estimates(
    n_rows: int, n_classes: int, correction: str, seed: int
) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Values and standard errors by name."""
    stable, unstable = draw(n_rows, n_classes, seed)
    found = adapt(stable, unstable, correction=correction, l2=1e-6, uncertainty=True).uncertainty
    named = {"epsilon": found.confusion, "coef": found.coef, "accuracy": found.accuracy}
    return {name: (np.ravel(e.value), np.ravel(e.standard_error)) for name, e in named.items()}


def main() -> None:
    style = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=style)
    parser.add_argument("--repeats", type=int, default=400)
    parser.add_argument("--rows", type=int, default=1000)
    arguments = parser.parse_args()
    for n_classes in (2, 3):
        for correction in ("likelihood", "forward", "posthoc"):
            truth = estimates(100_000, n_classes, correction, seed=10**6)
            hits: dict[str, list[np.ndarray]] = {name: [] for name in truth}
            for seed in range(arguments.repeats):
                for name, (value, error) in estimates(arguments.rows, n_classes, correction, seed).items():
                    hits[name].append(np.abs(value - truth[name][0]) <= 1.96 * error)
            rates = {name: np.mean(parts) for name, parts in hits.items()}
            print(
                f"K {n_classes} {correction:<10} n {arguments.rows}: "
                + ", ".join(f"{name} {rate:.3f}" for name, rate in rates.items()),
                flush=True,
            )


if __name__ == "__main__":
    main()
