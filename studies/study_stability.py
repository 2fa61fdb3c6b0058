"""Both kinds of stability: what the right one gains, what the wrong one costs, and what the test says.

    python studies/study_stability.py --repeats 20
    python studies/study_stability.py --wine winequality-white.csv

Simulated worlds: label shift (P(X_S | Y) transports) and covariate shift (P(Y | X_S) does). Real data: the
white wines of the UCI wine quality table, good (6 or more) against the rest. The rows of each domain are
drawn by label, so that P(X | Y) is the same everywhere, or by alcohol, so that P(Y | X_S) is.
The figures of docs/diagnostics.md come from here.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np

from sfboost import AdaptationWarning, StableFeatureBoosting
from sfboost.adaptation import adapt
from sfboost_lab.testing import Dials, simulate

STABLE_WINE = (10, 7)  # alcohol, density
UNSTABLE_WINE = (1, 3, 4, 5, 6)


def read_wine(path: Path) -> np.ndarray:
    """The table as numbers, whether its columns are parted by semicolons or commas."""
    return np.loadtxt([line.replace(";", ",") for line in path.read_text().splitlines()[1:]], delimiter=",")


def simulated(world: str, seed: int) -> tuple[np.ndarray, ...]:
    """Rows of three training domains and a new one."""
    shift = {"label_shift": 1.0} if world == "label shift" else {"covariate_shift": 1.5}
    problem = simulate(Dials(n_domains=3, n_rows=3000, strength=0.8, **shift), seed)
    X, y, domain = problem.training_rows()
    return X, y, domain, problem.new.X, problem.new.y


def resampled(table: np.ndarray, world: str, seed: int) -> tuple[np.ndarray, ...]:
    """Domains drawn from a real table: by label, or by a stable column."""
    rng = np.random.default_rng(seed)
    X, y = table[:, [*STABLE_WINE, *UNSTABLE_WINE]], (table[:, -1] >= 6).astype(int)
    group = y if world == "label shift" else (X[:, 0] > np.median(X[:, 0])).astype(int)
    halves = np.array_split(rng.permutation(len(y)), 2)
    parts = []
    for share, rows in ((0.35, halves[0]), (0.65, halves[0]), (0.5, halves[0]), (0.12, halves[1])):
        wanted = (rng.random(1500) < share).astype(int)
        picks = np.empty(1500, dtype=int)
        for value in (0, 1):
            pool = rows[group[rows] == value]
            picks[wanted == value] = rng.choice(pool, int((wanted == value).sum()))
        parts.append((X[picks], y[picks]))
    domain = np.repeat([0, 1, 2], 1500)
    return np.vstack([p[0] for p in parts[:3]]), np.concatenate([p[1] for p in parts[:3]]), domain, *parts[3]


def score(rows: tuple[np.ndarray, ...], n_stable: int) -> tuple[dict[str, float], dict[str, str]]:
    """Accuracy with each stability, the estimated class share, and what the test says."""
    X, y, domain, X_new, y_new = rows
    result: dict[str, float] = {}
    for stability in ("posterior", "likelihood"):
        model = StableFeatureBoosting(stable_features=list(range(n_stable)), transport=stability)
        model.fit(X, y, sample_domain=domain)
        log_stable, unstable = model.stable_and_unstable(X_new)
        stable, told = np.exp(log_stable), {"classes": model.classes_, "training": model.training_}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", AdaptationWarning)
            adapted = adapt(stable, unstable, transport=stability, **told)
        result[stability] = np.mean(adapted.predict(stable, unstable) == y_new)
        result[f"{stability} prior error"] = abs(float(adapted.prior[1] - y_new.mean()))
    result["stable"] = np.mean(model.classes_[stable.argmax(axis=1)] == y_new)
    kind = model.diagnose(X, y, domain)["kind of stability"]
    said = {"holds": "posterior", "violated": "likelihood"}.get(kind.verdict, kind.verdict)
    return result, {"test": said}


def main() -> None:
    style = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=style)
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--wine", type=Path, help="winequality-white.csv of the UCI repository")
    arguments = parser.parse_args()
    table = None if arguments.wine is None else read_wine(arguments.wine)
    for data in ("simulated", "wine") if table is not None else ("simulated",):
        for world in ("label shift", "covariate shift"):
            outcomes = []
            for seed in range(arguments.repeats):
                rows = simulated(world, seed) if data == "simulated" else resampled(table, world, seed)
                outcomes.append(score(rows, 2))
            mean = {key: np.mean([scores[key] for scores, _ in outcomes]) for key in outcomes[0][0]}
            said = [names["test"] for _, names in outcomes]
            print(f"{data:<10} {world:<16} " + ", ".join(f"{k} {100 * v:.1f}" for k, v in mean.items()))
            print(" " * 28 + "test says " + ", ".join(f"{k}: {said.count(k)}" for k in sorted(set(said))))


if __name__ == "__main__":
    main()
