"""False-alarm rate and power of the checks, on simulated data whose truth is known.

    python studies/study_checks.py size --repeats 2000 --out build/study_size.jsonl
    python studies/study_checks.py power --repeats 200 --out build/study_power.jsonl

"size": every assumption holds (n rows a domain, K classes, shift of X_S between domains, f_S the true
posterior, or with --fitted a cross-fitted and calibrated logistic regression). "power": one dial at a time
leaves zero. Each line of the output file is a block of draws of one cell, so that a stopped run resumes. The
figures of docs/diagnostics.md come from here.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np

from sfboost import StableFeatureBoosting
from sfboost.boosting.diagnosing import held_out_rows
from sfboost.diagnostics import CHECKS, CheckInputs, make_new_rows, make_training_rows
from sfboost_lab.testing import Dials, SimulatedProblem, simulate

LEVEL = 0.05
BLOCK = 100
ALARMS = ("doubtful", "violated")


def inputs_of(problem: SimulatedProblem, fitted: bool) -> CheckInputs:
    """The rows of a problem, with the true posterior or a fitted f_S."""
    X, y, domain = problem.training_rows()
    k, new = problem.n_stable, problem.new
    if fitted:
        model = StableFeatureBoosting(stable_features=list(range(k)))
        rows = held_out_rows(model, X, y, domain)
        return CheckInputs(rows, make_new_rows(model.predict_proba(new.X), new.X_unstable), LEVEL)
    stable = np.vstack([part.posterior for part in problem.training])
    return CheckInputs(
        make_training_rows(stable, y, domain, X[:, k:], X[:, :k]),
        make_new_rows(new.posterior, new.X_unstable),
        LEVEL,
    )


def outcomes(problem: SimulatedProblem, fitted: bool, only: Sequence[str] = ()) -> dict[str, bool]:
    """Which checks raise an alarm: a verdict of doubtful or violated, and the raw tests at the level."""
    inputs = inputs_of(problem, fitted)
    found: dict[str, bool] = {}
    for check in CHECKS:
        if only and check.name not in only:
            continue
        result = check.run(inputs)
        if check.name == "kind of stability":  # no assumption that holds here or not
            for value, name in ((0, "posterior"), (1, "likelihood")):
                if result.details:
                    found[f"slope {value} ({name})"] = result.details[f"p_{name}"] < LEVEL
            continue
        found[check.name] = result.verdict in ALARMS
        if result.p_value is not None:
            found[f"{check.name}, test"] = result.p_value < LEVEL
    return found


def size_cells() -> list[Dials]:
    """N 300 to 10⁴ and K 2 to 5, everything as the theorem wants it."""
    return [
        Dials(n_classes=k, n_rows=n, n_training_rows=n, n_unstable=2, covariate_shift=0.3, n_domains=3)
        for n in (300, 1000, 3000, 10_000)
        for k in (2, 3, 4, 5)
    ]


def power_cells() -> list[Dials]:
    """One dial at a time: a violation in training and in the new domain, label shift between domains."""
    base = Dials(n_domains=3, covariate_shift=0.3)
    cells = []
    for n in (500, 2000):
        at = replace(base, n_rows=n, n_training_rows=n)
        cells += [replace(at, training_violation=size, new_violation=size) for size in (0.1, 0.2, 0.4, 0.8)]
        cells += [replace(at, covariate_shift=0.0, label_shift=shift) for shift in (0.3, 0.6, 1.0)]
    return cells


def run_block(dials: Dials, first: int, fitted: bool, only: Sequence[str] = ()) -> dict[str, object]:
    """One block of draws: how often each alarm was raised, and how often it could have been."""
    alarms: Counter[str] = Counter()
    asked: Counter[str] = Counter()
    for seed in range(first, first + BLOCK):
        found = outcomes(simulate(dials, seed), fitted, only)
        alarms.update({name: int(alarm) for name, alarm in found.items()})
        asked.update(found.keys())
    return {"dials": asdict(dials), "first": first, "fitted": fitted, "alarms": alarms, "asked": asked}


def summarise(records: list[dict]) -> str:
    """One line a cell: rates over all its blocks."""
    cells: dict[str, list[dict]] = {}
    for record in records:
        cells.setdefault(json.dumps([record["dials"], record["fitted"]], sort_keys=True), []).append(record)
    lines = []
    for blocks in cells.values():
        dial = blocks[0]["dials"]
        alarms, asked = Counter(), Counter()
        for block in blocks:
            alarms.update(block["alarms"])
            asked.update(block["asked"])
        lines.append(
            f"n {dial['n_rows']:>6} K {dial['n_classes']} violation {dial['new_violation']:g} "
            f"label shift {dial['label_shift']:g} draws {BLOCK * len(blocks)}: "
            + ", ".join(f"{name} {alarms[name] / asked[name]:.3f}" for name in asked)
        )
    return "\n".join(lines)


def main() -> None:
    style = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=style)
    parser.add_argument("what", choices=("size", "power"))
    parser.add_argument("--repeats", type=int, default=2000, help="draws a cell, in blocks of 100")
    parser.add_argument("--fitted", action="store_true", help="fit f_S instead of using the true posterior")
    parser.add_argument("--rows", type=int, nargs="*", help="only the cells with these numbers of rows")
    parser.add_argument("--classes", type=int, nargs="*", help="only the cells with these numbers of classes")
    parser.add_argument("--checks", nargs="*", default=(), help="only these checks, by name")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop then; run again to resume")
    parser.add_argument("--out", type=Path, default=Path("build/study_checks.jsonl"))
    arguments = parser.parse_args()
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    lines = arguments.out.read_text().splitlines() if arguments.out.exists() else []
    records = [json.loads(line) for line in lines]
    done = {json.dumps([record["dials"], record["first"]], sort_keys=True) for record in records}
    start = time.monotonic()
    with arguments.out.open("a") as file:
        for dials in size_cells() if arguments.what == "size" else power_cells():
            if dials.n_rows not in (arguments.rows or [dials.n_rows]):
                continue
            if dials.n_classes not in (arguments.classes or [dials.n_classes]):
                continue
            # Under label shift a domain's own posterior is not the pooled one that f_S is.
            fitted = arguments.fitted or dials.label_shift > 0.0
            for first in range(0, arguments.repeats, BLOCK):
                key = json.dumps([asdict(dials), first], sort_keys=True)
                if key in done or time.monotonic() - start > arguments.seconds:
                    continue
                records.append(run_block(dials, first, fitted, arguments.checks))
                file.write(json.dumps(records[-1]) + "\n")
                file.flush()
    print(summarise(records))


if __name__ == "__main__":
    main()
