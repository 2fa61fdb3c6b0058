"""Harm and gain of adapting with and without the guard, on random problems whose truth is known.

    python studies/study_guard.py --problems 120 --out build/study_guard.jsonl
    python studies/study_guard.py --summary --out build/study_guard.jsonl

Each line of the output file is one problem, so that a stopped run resumes where it was. The figures of
docs/guard.md come from here.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np

from sfboost import AdaptationWarning, StableFeatureBoosting
from sfboost.boosting.diagnosing import new_rows
from sfboost.diagnostics import random_dials, simulate
from sfboost.diagnostics.feasibility import feasibility
from sfboost.diagnostics.linearity import linearity_test
from sfboost.marginal import PseudoLabelStatistics, log_combine

SCENARIOS = ("none", "training and new", "new only", "two-valued none", "two-valued new only")


def run_problem(scenario: str, number: int) -> dict[str, object]:
    """One random problem: accuracy of stable, unguarded and guarded, and what the tests say."""
    rng = np.random.default_rng([SCENARIOS.index(scenario), number])
    two_valued = scenario.startswith("two-valued ")
    dials = random_dials(rng, scenario.removeprefix("two-valued "))
    if two_valued:
        dials = replace(dials, n_classes=2, n_unstable=1, family="discrete", covariate_shift=0.0)
    problem = simulate(dials, int(rng.integers(2**31)))
    X, y, domain = problem.training_rows()
    new = problem.new
    model = StableFeatureBoosting(stable_features=list(range(problem.n_stable)))
    model.fit(X, y, sample_domain=domain)
    stable = model.predict_proba(new.X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AdaptationWarning)
        guarded = model.adapt(new.X)
    # answer="paper" fits the same f_U and combines it as it is (tests/adaptation/test_guard.py).
    adaptation = guarded.adaptation
    fitted = adaptation.unstable or adaptation.withheld
    plain = stable
    if fitted is not None:
        log_unstable = fitted.log_proba(adaptation.standardizer.apply(new.X_unstable))
        plain = log_combine(stable, log_unstable, adaptation.divisor)
    rows = new_rows(model, new.X)
    linear = linearity_test(rows)
    confusion = PseudoLabelStatistics.from_proba(stable).confusion
    singular = np.linalg.cond(confusion) > 1e6
    record: dict[str, object] = {
        "scenario": scenario,
        "number": number,
        "n_classes": dials.n_classes,
        "s": dials.informativeness,
        "n_rows": dials.n_rows,
        "n_training_rows": dials.n_training_rows,
        "training_violation": dials.training_violation,
        "new_violation": dials.new_violation,
        "stable": float(np.mean(stable.argmax(axis=1) == new.y)),
        "unguarded": float(np.mean(plain.argmax(axis=1) == new.y)),
        "guarded": float(guarded.score(new.X, new.y)),
        "decision": guarded.decision_,
        "leak": guarded.leak_,
        "break_even": guarded.break_even_,
        "p_linearity": None if linear is None else linear[0].p_value,
        "unexplained": None if linear is None else linear[1],
        "p_feasibility": None if singular else feasibility(rows, confusion, 0)[2],
    }
    return record


def summarise(records: list[dict[str, object]]) -> str:
    """One line per scenario and method; harm is accuracy lost against the stable predictor, in points.

    "seen" is how many of the problems that lose more than a point unguarded the checks of the new domain
    reject at level .05 (linearity or feasibility).
    """
    lines = [
        "scenario              problems  method      mean harm   worst  > 1 point  gain kept  |  "
        "kept blended adapted  |  seen",
    ]
    for scenario in SCENARIOS:
        part = [record for record in records if record["scenario"] == scenario]
        if not part:
            continue
        table = {
            key: np.array([record[key] for record in part], dtype=float)
            for key in ("stable", "unguarded", "guarded", "n_rows", "s")
        }
        asked = (table["n_rows"] >= 1000) & (table["s"] >= 0.1)
        possible = (table["unguarded"] - table["stable"])[asked].sum()
        for method in ("unguarded", "guarded"):
            harm = 100 * (table["stable"] - table[method])
            kept = np.nan if not possible else (table[method] - table["stable"])[asked].sum() / possible
            tail = ""
            if method == "guarded":
                kinds = ("kept stable", "blended", "adapted")
                counts = " ".join(f"{sum(r['decision'] == kind for r in part):>6}" for kind in kinds)
                tail = f"  |  {counts}  |  {_seen(part)}"
            cells = f"{harm.mean():>10.2f}{harm.max():>8.2f}{(harm > 1.0).sum():>9}{kept:>12.3f}{tail}"
            lines.append(f"{scenario:<22}{len(part):>7}   {method:<10}{cells}")
    return "\n".join(lines)


def _seen(part: list[dict[str, object]]) -> str:
    """How many of the harmful problems a check of the new domain rejects, as "seen of harmful"."""
    harmful = [record for record in part if record["stable"] - record["unguarded"] > 0.01]
    p_values = [(record["p_linearity"], record["p_feasibility"]) for record in harmful]
    seen = sum(any(p is not None and p < 0.05 for p in pair) for pair in p_values)
    return f"{seen} of {len(harmful)}"


def main() -> None:
    style = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=style)
    parser.add_argument("--problems", type=int, default=120, help="problems per scenario")
    parser.add_argument("--first", type=int, default=0, help="number of the first problem")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop then; run again to resume")
    parser.add_argument("--out", type=Path, default=Path("build/study_guard.jsonl"))
    parser.add_argument("--summary", action="store_true", help="only print the table of what is there")
    arguments = parser.parse_args()
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    lines = arguments.out.read_text().splitlines() if arguments.out.exists() else []
    records = [json.loads(line) for line in lines]
    done = {(record["scenario"], record["number"]) for record in records}
    start = time.monotonic()
    with arguments.out.open("a") as file:
        for number in range(arguments.first, 0 if arguments.summary else arguments.problems):
            for scenario in SCENARIOS:
                if (scenario, number) in done or time.monotonic() - start > arguments.seconds:
                    continue
                records.append(run_problem(scenario, number))
                file.write(json.dumps(records[-1]) + "\n")
                file.flush()
    print(summarise(records))


if __name__ == "__main__":
    main()
