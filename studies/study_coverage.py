"""Coverage of the 95 % intervals of an adaptation, conditional on f_S.

    python studies/study_coverage.py --repeats 2000 --out build/study_coverage.jsonl

Two and three classes with the true posterior as f_S; the target of each interval is its value in a draw of
400 000 rows. Beside the coverage stand the mean and the standard deviation of (estimate − target) / standard
error, which should be 0 and 1. Each line of the output file is a block of draws, so that a stopped run
resumes. The figures of docs/diagnostics.md come from here.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np

from sfboost import Settings, adapt
from sfboost.heads import SoftLogisticRegression

BLOCK = 100
TARGET_ROWS = 400_000
CORRECTIONS = ("likelihood", "posthoc")


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
    # A head of our own spares the cross-fitting, which is not asked here; the fit is the same.
    head = SoftLogisticRegression(l2=1e-6)
    found = adapt(
        stable, unstable, settings=Settings(correction=correction, head=head), uncertainty=True
    ).uncertainty
    named = {
        "epsilon": found.confusion,
        "s": found.informativeness,
        "coef": found.coef,
        "accuracy": found.accuracy,
        "stable accuracy": found.stable_accuracy,
    }
    return {name: (np.ravel(e.value), np.ravel(e.standard_error)) for name, e in named.items()}


def run_block(cell: dict[str, object], truth: dict[str, np.ndarray], first: int) -> dict[str, object]:
    """Hits, and sums of z and z², of the draws of one block; several numbers of a name are averaged."""
    sums = {name: np.zeros(3) for name in truth}
    for seed in range(first, first + BLOCK):
        for name, (value, error) in estimates(**cell, seed=seed).items():
            z = (value - truth[name]) / error
            sums[name] += np.mean([np.abs(z) <= 1.96, z, z**2], axis=1)
    return cell | {"first": first, "sums": {name: total.tolist() for name, total in sums.items()}}


def summarise(records: list[dict]) -> str:
    """One line a cell: coverage, and mean and standard deviation of z."""
    cells: dict[tuple, list[dict]] = {}
    for record in records:
        cells.setdefault((record["n_classes"], record["correction"], record["n_rows"]), []).append(record)
    lines = []
    for (n_classes, correction, n_rows), blocks in cells.items():
        draws = BLOCK * len(blocks)
        parts = []
        for name in blocks[0]["sums"]:
            hits, z, square = np.sum([block["sums"][name] for block in blocks], axis=0) / draws
            parts.append(f"{name} {hits:.3f} (z {z:+.2f} ± {np.sqrt(square - z**2):.2f})")
        lines.append(f"K {n_classes} {correction:<10} n {n_rows} draws {draws}: {', '.join(parts)}")
    return "\n".join(lines)


def main() -> None:
    style = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=style)
    parser.add_argument("--repeats", type=int, default=2000, help="draws a cell, in blocks of 100")
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop then; run again to resume")
    parser.add_argument("--out", type=Path, default=Path("build/study_coverage.jsonl"))
    arguments = parser.parse_args()
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    lines = arguments.out.read_text().splitlines() if arguments.out.exists() else []
    records = [json.loads(line) for line in lines]
    done = {(r["n_classes"], r["correction"], r["n_rows"], r["first"]) for r in records}
    start = time.monotonic()
    with arguments.out.open("a") as file:
        for n_classes in (2, 3):
            for correction in CORRECTIONS:
                cell = {"n_rows": arguments.rows, "n_classes": n_classes, "correction": correction}
                blocks = [
                    first
                    for first in range(0, arguments.repeats, BLOCK)
                    if (n_classes, correction, arguments.rows, first) not in done
                ]
                if not blocks:
                    continue
                target = estimates(TARGET_ROWS, n_classes, correction, seed=10**6)
                truth = {name: value for name, (value, _) in target.items()}
                for first in blocks:
                    if time.monotonic() - start > arguments.seconds:
                        break
                    records.append(run_block(cell, truth, first))
                    file.write(json.dumps(records[-1]) + "\n")
                    file.flush()
    print(summarise(records))


if __name__ == "__main__":
    main()
