"""Harm and gain of adapting with and without the guard, on random problems whose truth is known.

    python studies/study_guard.py --problems 120 --out build/study_guard.jsonl
    python studies/study_guard.py --summary --out build/study_guard.jsonl
    python studies/study_guard.py --coverage --problems 40 --out build/study_delta.jsonl
    python studies/study_guard.py --digits 4

`--coverage` asks how often δ is large enough, with 300, 1000 and 20 000 rows in a training domain; `--digits`
is `sfboost demo` with the stable, the unguarded and the guarded answer. Each line of the output file is one
problem, so that a stopped run resumes where it was. The figures of docs/diagnostics.md come from here.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

from sfboost import AdaptationWarning, StableFeatureBoosting
from sfboost.boosting.diagnosing import new_rows
from sfboost.datasets import colored_digits
from sfboost.diagnostics import domain_leak, training_leak
from sfboost.diagnostics.new_domain import feasibility, linearity_test
from sfboost.marginal import log_combine
from sfboost_lab.testing import Dials, random_dials, simulate

COVERED = (300, 1000, 20_000)
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
        guarded = model.adapt(new.X, answer="safe")
    # answer="paper" fits the same f_U and combines it as it is (tests/adaptation/test_guard.py).
    adaptation = guarded.adaptation
    fitted = adaptation.unstable or adaptation.withheld
    plain = stable
    if fitted is not None:
        log_unstable = fitted.log_proba(adaptation.standardizer.apply(new.X_unstable))
        plain = log_combine(stable, log_unstable, adaptation.divisor)
    rows = new_rows(model, new.X)
    linear = linearity_test(rows)
    feasible = feasibility(rows, 0)
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
        "p_feasibility": None if feasible is None else feasible[2],
    }
    return record


def cover(n_training_rows: int, number: int) -> dict[str, object]:
    """Is the truth within what δ allows for? Two classes, and a leak of one size in all domains.

    "band" is the share of rows whose true Pr[Y | X_U] is in q̂ ± (δ + 1.64 SE) / s; "size" whether the leak of
    the new domain, measured on 50 000 labelled rows, is at most δ. Beside it stands δ as it was before: the
    largest of the lower confidence limits of the training domains.
    """
    rng = np.random.default_rng([99, number])
    violation = float(np.exp(rng.uniform(np.log(0.05), np.log(0.6))))
    dials = Dials(
        informativeness=float(rng.uniform(0.1, 0.5)),
        n_rows=50_000,
        n_training_rows=n_training_rows,
        n_domains=int(rng.integers(2, 5)),
        n_unstable=int(rng.integers(1, 4)),
        training_violation=violation,
        new_violation=violation,
    )
    problem = simulate(dials, int(rng.integers(2**31)))
    X, y, domain = problem.training_rows()
    model = StableFeatureBoosting(stable_features=[0, 1]).fit(X, y, sample_domain=domain)
    new, some = problem.new, problem.new.X[:20_000]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AdaptationWarning)
        adapted = model.adapt(some, answer="paper", uncertainty=True)
    adaptation = adapted.adaptation
    Z = adaptation.standardizer.apply(some[:, 2:])
    q = np.exp(adaptation.unstable.log_proba(Z))[:, 1]
    truth = LogisticRegression(C=1e6).fit(new.X_unstable, new.y).predict_proba(some[:, 2:])[:, 1]
    design = np.column_stack([Z, np.ones(len(Z))])
    spread = np.einsum("ij,jk,ik->i", design, adaptation.uncertainty.head_covariance, design)
    error = q * (1 - q) * np.sqrt(spread)
    actual = domain_leak(model.predict_proba(new.X), new.X_unstable, new.y, "new").size
    deltas = {"before": max(leak.lower for leak in model.leaks_), "now": training_leak(model.leaks_)}
    found: dict[str, object] = {"rows": n_training_rows, "number": number, "leak": actual}
    for name, delta in deltas.items():
        inside = np.abs(q - truth) <= delta / adaptation.informativeness + 1.64 * error
        found |= {
            f"{name} delta": delta,
            f"{name} band": float(inside.mean()),
            f"{name} size": delta >= actual,
        }
    return found


def summarise_coverage(records: list[dict]) -> str:
    """One line for each number of training rows."""
    lines = []
    for rows in COVERED:
        part = [record for record in records if record["rows"] == rows]
        cells = []
        for name in ("before", "now"):
            band, size, delta = (
                np.array([r[f"{name} {k}"] for r in part], float) for k in ("band", "size", "delta")
            )
            low, high = np.quantile(band, [0.1, 0.9])
            cells.append(
                f"{name}: δ {np.median(delta):.3f}, truth in band {100 * band.mean():.0f} % of rows "
                f"({100 * low:.0f} to {100 * high:.0f}), leak ≤ δ in {100 * size.mean():.0f} % of domains"
            )
        lines.append(f"{rows:>6} rows a domain, {len(part)} problems; {'; '.join(cells)}")
    return "\n".join(lines)


def digits(repeats: int) -> str:
    """Accuracy in % by agreement on coloured digits, with the forest of `sfboost demo`."""
    found: dict[float, list[list[float]]] = {}
    for seed in range(repeats):
        dataset = colored_digits(view="table", random_state=seed, n_validate=0, n_test=797)
        X, y, domain = dataset.pooled("train")
        forest = RandomForestClassifier(60, min_samples_leaf=4, random_state=seed)
        columns = (dataset.stable_features, dataset.unstable_features)
        model = StableFeatureBoosting(*columns, stable=forest).fit(X, y, sample_domain=domain)
        for name in dataset.test:
            rows, labels = dataset.xy(name)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", AdaptationWarning)
                answers = [model, *(model.adapt(rows, answer=answer) for answer in ("paper", "safe"))]
            scores = [100 * float(answer.score(rows, labels)) for answer in answers]
            found.setdefault(dataset.domain(name).agreement, []).append(scores)
    lines = ["agreement  stable  paper   safe"]
    for agreement, scores in found.items():
        stable, paper, safe = np.mean(scores, axis=0)
        lines.append(f"{agreement:9.1f}{stable:8.1f}{paper:7.1f}{safe:7.1f}")
    return "\n".join(lines)


def summarise(records: list[dict[str, object]]) -> str:
    """One line per scenario and method; harm is accuracy lost against the stable predictor, in points.

    "seen" is how many of the problems that lose more than a point unguarded the checks of the new domain
    reject at level .05 (linearity or feasibility).
    """
    lines = [
        "scenario              problems  method      mean harm   worst  > 1 point  gain kept  |  "
        "kept adapted  |  seen",
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
                kinds = ("kept stable", "adapted")
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
    parser.add_argument("--coverage", action="store_true", help="how often δ is large enough")
    parser.add_argument("--digits", type=int, metavar="N", help="splits of the coloured digits")
    arguments = parser.parse_args()
    if arguments.digits:
        print(digits(arguments.digits))
        return
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    lines = arguments.out.read_text().splitlines() if arguments.out.exists() else []
    records = [json.loads(line) for line in lines]
    key, kinds, run = ("rows", COVERED, cover) if arguments.coverage else ("scenario", SCENARIOS, run_problem)
    done = {(record[key], record["number"]) for record in records}
    start = time.monotonic()
    with arguments.out.open("a") as file:
        for number in range(arguments.first, 0 if arguments.summary else arguments.problems):
            for kind in kinds:
                if (kind, number) in done or time.monotonic() - start > arguments.seconds:
                    continue
                records.append(run(kind, number))
                file.write(json.dumps(records[-1]) + "\n")
                file.flush()
    print(summarise_coverage(records) if arguments.coverage else summarise(records))


if __name__ == "__main__":
    main()
