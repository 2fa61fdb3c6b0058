"""False-alarm rate and power of the checks, on simulated data whose truth is known.

    python benchmarks/study_checks.py size --repeats 400 --out build/study_size.jsonl
    python benchmarks/study_checks.py power --repeats 200 --out build/study_power.jsonl

"size": every assumption holds (n rows a domain, K classes, shift of X_S between domains, f_S the true
posterior, or with --fitted a cross-fitted and calibrated logistic regression). "power": one dial at a time
leaves zero. Each line of the output file is one cell, so that a stopped run resumes. The figures of
docs/diagnostics.md come from here.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np

from sfboost import StableFeatureBoosting
from sfboost.boosting.diagnosed import held_out_rows
from sfboost.diagnostics import Dials, Material, SimulatedProblem, make_new_rows, make_training_rows, simulate
from sfboost.diagnostics.calibration import check_calibration
from sfboost.diagnostics.complementarity import check_complementarity
from sfboost.diagnostics.feasibility import check_feasibility
from sfboost.diagnostics.gain import independence_p_value
from sfboost.diagnostics.informativeness import check_lower_bound
from sfboost.diagnostics.kind import intercept_slope
from sfboost.diagnostics.linearity import check_linearity
from sfboost.diagnostics.result import CheckResult
from sfboost.diagnostics.stability import check_stability
from sfboost.diagnostics.support import check_support

LEVEL = 0.05
CHECKS: dict[str, Callable[[Material], CheckResult]] = {
    "stability": check_stability,
    "calibration": check_calibration,
    "complementarity": check_complementarity,
    "linearity": check_linearity,
    "feasibility": check_feasibility,
    "informativeness bound": check_lower_bound,
    "support": check_support,
}


def material_of(problem: SimulatedProblem, fitted: bool) -> Material:
    """The rows of a problem, with the true posterior or a fitted f_S."""
    X, y, domain = problem.training_rows()
    k, new = problem.n_stable, problem.new
    if fitted:
        model = StableFeatureBoosting(stable_features=list(range(k)))
        rows = held_out_rows(model, X, y, domain)
        return Material(rows, make_new_rows(model.predict_proba(new.X), new.X_unstable, new.X_stable), LEVEL)
    stable = np.vstack([part.posterior for part in problem.training])
    return Material(
        make_training_rows(stable, y, domain, X[:, k:], X[:, :k]),
        make_new_rows(new.posterior, new.X_unstable, new.X_stable),
        LEVEL,
    )


def rejections(problem: SimulatedProblem, fitted: bool) -> dict[str, bool]:
    """Which checks raise an alarm: a verdict of doubtful or violated, and the raw tests at the level."""
    material = material_of(problem, fitted)
    found: dict[str, bool] = {}
    for name, check in CHECKS.items():
        result = check(material)
        found[name] = result.verdict in ("doubtful", "violated")
        if result.p_value is not None:
            found[f"{name}, test"] = result.p_value < LEVEL
    slope = intercept_slope(material.labelled)
    if slope is not None:
        found["slope 0 (posterior)"] = slope.p_posterior < LEVEL
        found["slope 1 (likelihood)"] = slope.p_likelihood < LEVEL
    # Independence of X_S and X_U is what "nothing to gain" means: break the rows' pairing.
    shuffled = np.random.default_rng(0).permutation(material.fresh.unstable)
    found["anything to gain, shuffled"] = independence_p_value(material.fresh.stable, shuffled) < LEVEL
    found["anything to gain"] = independence_p_value(material.fresh.stable, material.fresh.unstable) < LEVEL
    return found


def size_cells() -> list[Dials]:
    """N 300 to 10⁴ and K 2 to 5, everything as the theorem wants it."""
    return [
        Dials(n_classes=k, n_rows=n, n_training_rows=n, n_unstable=2, covariate_shift=0.3, n_domains=3)
        for n in (300, 1000, 3000, 10_000)
        for k in (2, 3, 5)
    ]


def power_cells() -> list[Dials]:
    """One dial at a time: a leak in training and in the new domain, label shift between domains."""
    base = Dials(n_domains=3, covariate_shift=0.3)
    cells = []
    for n in (500, 2000):
        at = replace(base, n_rows=n, n_training_rows=n)
        cells += [replace(at, training_leak=leak, new_leak=leak) for leak in (0.1, 0.2, 0.4, 0.8)]
        cells += [replace(at, covariate_shift=0.0, label_shift=shift) for shift in (0.3, 0.6, 1.0)]
    return cells


def main() -> None:
    style = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=style)
    parser.add_argument("what", choices=("size", "power"))
    parser.add_argument("--repeats", type=int, default=400)
    parser.add_argument("--fitted", action="store_true", help="fit f_S instead of using the true posterior")
    parser.add_argument("--most-rows", type=int, default=10_000, help="skip cells with more rows")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop then; run again to resume")
    parser.add_argument("--out", type=Path, default=Path("build/study_checks.jsonl"))
    arguments = parser.parse_args()
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    lines = arguments.out.read_text().splitlines() if arguments.out.exists() else []
    records = [json.loads(line) for line in lines]
    done = {json.dumps(record["dials"], sort_keys=True) for record in records}
    start = time.monotonic()
    with arguments.out.open("a") as file:
        for dials in size_cells() if arguments.what == "size" else power_cells():
            key = json.dumps(asdict(dials), sort_keys=True)
            if (
                key in done
                or time.monotonic() - start > arguments.seconds
                or dials.n_rows > arguments.most_rows
            ):
                continue
            # Under label shift a domain's own posterior is not the pooled one that f_S is.
            fitted = arguments.fitted or dials.label_shift > 0.0
            outcomes = [rejections(simulate(dials, seed), fitted) for seed in range(arguments.repeats)]
            rates = {
                name: float(np.mean([outcome[name] for outcome in outcomes if name in outcome]))
                for name in dict.fromkeys(key for outcome in outcomes for key in outcome)
            }
            records.append({"dials": asdict(dials), "repeats": arguments.repeats, "rates": rates})
            file.write(json.dumps(records[-1]) + "\n")
            file.flush()
    for record in records:
        dial = record["dials"]
        print(
            f"n {dial['n_rows']:>6} K {dial['n_classes']} leak {dial['new_leak']:g} "
            f"label shift {dial['label_shift']:g}: "
            + ", ".join(f"{name} {rate:.3f}" for name, rate in record["rates"].items())
        )


if __name__ == "__main__":
    main()
