"""Is the default answer as good as it was, and what does it cost? Rows to hold one commit to another.

    python studies/acceptance.py --out now.jsonl [--full] [--only impact "coloured digits"]
    python studies/acceptance.py --compare records/acceptance.jsonl.gz now.jsonl

Quick takes a few minutes of one core, `--full` about an hour; the rows of quick are among those of full. A
row is one case, change, learner and new domain: Brier score, log loss and accuracy of the default answer
(`adapt`, with nothing chosen but the learner), of one classifier of all columns (pooled) and of one of the
stable columns, both fitted here; what was decided; CPU seconds of `fit` and `adapt`, and how many fits of
pooled they are, in the same process with one thread. Labels of a new domain are used for scores alone. Rows
that `--out` holds are not made again.

Cases: real tables (of the shift suite, and of R packages) as they are and changed; digits by agreement of
colour and label; drawn tables; engines and weather, which changed by nature; learned features (full); some
of the paper's records, made again. `--compare` holds the `GATES`, and exits with 1 if one fails.
"""

import argparse
import gzip
import json
import runpy
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
import pandas as pd
from rich.progress import track
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from sfboost import StableFeatureBoosting
from sfboost_lab.datasets import load
from sfboost_lab.datasets.engines import engines
from sfboost_lab.datasets.weather import weather
from sfboost_lab.experiments.committed import committed_records, kind, sample
from sfboost_lab.experiments.origin import origin
from sfboost_lab.experiments.registry import planned_groups
from sfboost_lab.experiments.run import Run, digest
from sfboost_lab.experiments.shifts.kinds import KINDS, SplitRows, strongest_mirrored
from sfboost_lab.experiments.shifts.suite_domains import COLOURED, TABLES, suite_domains
from sfboost_lab.experiments.shifts.systems import LEARNERS, Fitted, make_learner
from sfboost_lab.experiments.shifts.unseen import UNSEEN, load_unseen
from sfboost_lab.experiments.sweep import sweep

#: The most rows of a table's domain.
MOST = 1000
STABLE_MIRRORED = "strongest stable column mirrored"
#: Changes of the quick version; the full one has every kind of the suite.
QUICK = ("as is", "strongest mirrored", "all shuffled", "shares moved", STABLE_MIRRORED)
DIGITS = {"colored_digits": "coloured digits", "colored_mnist": "ColoredMNIST"}
DRAWN = ("plain", "few", "rare", "boosting", "five classes, skewed", "twelve domains")
#: Protocols of the paper's records → seconds of runs that are made again, in quick and in full.
PAPER = {
    **dict.fromkeys(("synthetic", "cmnist", "corrections", "sample-size"), (15.0, 90.0)),
    "pacs": (0.0, 30.0),
}
KEY = ["group", "case", "change", "learner", "target", "draw"]
#: How much worse it may be in the mean: Brier score over tables, accuracy over agreements (points).
GATES = {"brier": 0.002, "points": 0.5}

MAKE: dict[str, Callable[[], Any]] = {
    **{name: partial(make_learner, name, hyper) for name, hyper in LEARNERS.items()},
    "forest": lambda: RandomForestClassifier(60, min_samples_leaf=4, random_state=0),
}
Rows = Iterator[dict[str, Any]]
#: Name of the new domain, what was done to it, X, y.
Target = tuple[str, str, Any, Any]


class Task(NamedTuple):
    """What is fitted once and gives some rows; `rows` makes them."""

    group: str
    case: str
    learner: str
    rows: Callable[[], Rows]
    part: str = ""
    draw: int = 0


class Problem(NamedTuple):
    """Labelled rows, stable columns first, and the new domains."""

    X: Any
    y: Any
    domain: Any
    n_stable: int
    targets: Iterable[Target]


def measured(problem: Callable[[], Problem], learner: str) -> Rows:
    """Fit pooled, stable and ours; one row for each target."""
    told, make = problem(), MAKE[learner]
    X, y, n = told.X, told.y, told.n_stable
    tries = [cpu(lambda: make().fit(X, y)) for _ in range(3)]
    pooled, stable = tries[0][0], make().fit(X[:, :n], y)
    columns = list(range(n)), list(range(n, X.shape[1]))
    ours = StableFeatureBoosting(*columns, stable=make())
    model, fit = cpu(lambda: ours.fit(X, y, sample_domain=told.domain))
    unit = min(seconds for _, seconds in tries)
    for target, change, new, labels in told.targets:
        others = {"pooled": pooled.predict_proba(new), "stable": stable.predict_proba(new[:, :n])}
        yield {"change": change, "target": target, **row(model, new, labels, others, fit, unit)}


def row(model: Any, X: Any, y: Any, others: dict[str, Any], fit: float, unit: float) -> dict[str, Any]:
    """Adapt to a new domain and score everyone."""
    (adapted, proba), adapt = cpu(lambda: answer(model, X))
    scores = {"": proba, **{f"{name}_": other for name, other in others.items()}}
    made = {f"{name}{k}": v for name, p in scores.items() for k, v in score(p, y, model.classes_).items()}
    spent = {
        "pooled_fit": unit,
        "fit": fit,
        "adapt": adapt,
        "fit_ratio": fit / unit,
        "adapt_ratio": adapt / unit,
    }
    spent = {name: float(f"{value:.4g}") for name, value in spent.items()}
    return {"n": len(y), **made, "decision": str(adapted.decision_), **spent}


def answer(model: Any, X: Any) -> tuple[Any, Any]:
    adapted = model.adapt(X)
    return adapted, np.asarray(adapted.predict_proba(X))


def score(proba: Any, y: Any, classes: Any) -> dict[str, float]:
    """Brier score (half the squared distance), log loss and accuracy; nobody is right about a new class."""
    truth = np.asarray(y)[:, None] == np.asarray(classes)
    p = np.where(truth, proba, 0.0).sum(axis=1)
    found = {
        "brier": ((proba - truth) ** 2).sum(axis=1).mean() / 2,
        "log_loss": -np.log(np.clip(p, 1e-6, None)).mean(),
        "accuracy": truth[np.arange(len(truth)), proba.argmax(axis=1)].mean(),
    }
    return {name: round(float(value), 6) for name, value in found.items()}


def cpu(work: Callable[[], Any]) -> tuple[Any, float]:
    start = time.process_time()
    return work(), time.process_time() - start


def real_tables(full: bool, only: list[str]) -> Iterator[Task]:
    """Each domain of each table in turn the new one; in quick two of them, and one with boosting."""
    for name in filter(partial(wanted, only), (*TABLES, *UNSEEN)):
        count = TABLES.get(name) or len(load_unseen(name).domains)
        for learner in LEARNERS:
            few = (0, count // 2) if learner == "logistic" else (0,)
            for new in range(count) if full else few:
                made = partial(changed_table, name, learner, new, tuple(KINDS) if full else QUICK[:-1])
                yield Task("tables", name, learner, partial(measured, made, learner), str(new))


def changed_table(name: str, learner: str, new: int, kinds: tuple[str, ...]) -> Problem:
    made = suite_domains(Run(name, learner, 0, "acceptance", data={"new": new, "most": MOST}))
    ((target, rows),) = made.new.items()

    def targets() -> Iterator[Target]:
        features = Fitted(made, learner, LEARNERS[learner]).features
        for change in kinds:
            shifted = KINDS[change](rows, features, np.random.default_rng([new, crc32(change.encode())]))
            if shifted is not None:
                yield target, change, shifted.rows.matrix(), shifted.rows.y
        groups = np.arange(rows.stable.shape[1])
        turned = replace(made, own=swapped(made.own), groups=groups)
        features = Fitted(turned, learner, LEARNERS[learner]).features
        moved = swapped(strongest_mirrored(swapped(rows), features, np.random.default_rng(0)).rows)
        yield target, STABLE_MIRRORED, moved.matrix(), moved.y

    return Problem(made.own.matrix(), made.own.y, made.domain, rows.stable.shape[1], targets())


def swapped(rows: SplitRows) -> SplitRows:
    return SplitRows(rows.unstable, rows.stable, rows.y)


def digits(full: bool) -> Iterator[Task]:
    """Grey pixels are stable, colour is not; eleven agreements of colour and label."""
    draws = {
        ("colored_digits", "logistic"): (5, 10),
        ("colored_digits", "forest"): (2, 6),
        ("colored_digits", "boosting"): (0, 2),
        ("colored_mnist", "logistic"): (2, 5),
    }
    for (name, learner), counts in draws.items():
        for draw in range(counts[full]):
            made = partial(coloured, name, draw)
            yield Task("digits", DIGITS[name], learner, partial(measured, made, learner), draw=draw)


def coloured(name: str, draw: int) -> Problem:
    made = suite_domains(Run(name, "logistic", draw, "acceptance", data={"most": COLOURED[name]}))
    targets = ((target, "as is", rows.matrix(), rows.y) for target, rows in made.new.items())
    return Problem(made.own.matrix(), made.own.y, made.domain, made.own.stable.shape[1], targets)


def drawn_tables(full: bool) -> Iterator[Task]:
    study = runpy.run_path(str(Path(__file__).with_name("study_drawn_tables.py")))
    for case in study["CASES"] if full else DRAWN:
        learner = study["CASES"][case].learner
        for draw in range(3 if full else 1):
            made = partial(drawn, study, case, draw)
            yield Task("drawn", f"drawn: {case}", learner, partial(measured, made, learner), draw=draw)


def drawn(study: dict[str, Any], case: str, draw: int) -> Problem:
    world = study["World"](study["CASES"][case], draw)
    own, (S, U, y) = [world.domain() for _ in range(world.setting.own)], world.domain()
    X, labels = np.concatenate([np.hstack(d[:2]) for d in own]), np.concatenate([d[2] for d in own])
    targets = (("new", change, np.hstack([S, V]), y) for change, V in study["kinds"](U, y, world.rng))
    return Problem(X, labels, np.repeat(np.arange(len(own)), len(S)), S.shape[1], targets)


def by_nature(full: bool) -> Iterator[Task]:
    """Engines of a second fleet, one by one and together, and a city south of the equator."""
    for learner in LEARNERS if full else ("logistic",):
        made = partial(fleets, 1 if full else 6)
        yield Task("nature", "engines", learner, partial(measured, made, learner))
    for learner in LEARNERS:
        yield Task("nature", "weather", learner, partial(measured, southern, learner))


def fleets(every: int) -> Problem:
    single, fault = engines(by="engine"), engines(by="fault")
    change = "subset" if single.name.endswith("subset") else "as is"
    faults = [fault.domain(name) for name in fault.test]
    whole = np.concatenate([d.X for d in faults]), np.concatenate([d.y for d in faults])
    targets = [("FD003", change, *whole), *((f"{d.name} (ORACLE)", change, d.X, d.y) for d in faults)]
    targets += [(name, change, *single.xy(name)) for name in single.test[::every]]
    return Problem(*single.pooled("train"), len(single.stable_features or ()), targets)


def southern() -> Problem:
    made = weather()
    targets = [(name, "as is", *made.xy(name)) for name in made.test]
    return Problem(*made.pooled("train"), len(made.stable_features or ()), targets)


def learned(full: bool) -> Iterator[Task]:
    """Learned features; only in full."""
    for name, draws in {"colored_digits": 2, "ac": 1}.items() if full else ():
        for draw in range(draws):
            yield Task("learned", f"learned: {name}", "network", partial(networks, name, draw), draw=draw)


def networks(name: str, draw: int) -> Rows:
    from sfboost.torch import SFBClassifier

    data = load(name, random_state=draw, **({"n_rows": 1024} if name == "ac" else {}))
    X, y, domain = data.pooled("train")
    pooled, unit = cpu(lambda: LogisticRegression(max_iter=1000).fit(X.reshape(len(X), -1), y))
    model, fit = cpu(lambda: SFBClassifier(random_state=draw).fit(X, y, sample_domain=domain))
    for target in data.test:
        new, labels = data.xy(target)
        others = {
            "pooled": pooled.predict_proba(new.reshape(len(new), -1)),
            "stable": model.predict_proba(new),
        }
        yield {"change": "as is", "target": target, **row(model, new, labels, others, fit, unit)}


def paper(full: bool) -> Iterator[Task]:
    """Some runs of each protocol of the paper's tables, beside their committed records."""
    for protocol, seconds in PAPER.items():
        if seconds[full]:
            yield Task("paper", f"paper: {protocol}", "", partial(canary, protocol, seconds[full]))


def canary(protocol: str, seconds: float) -> Rows:
    records = committed_records(protocol)
    with tempfile.TemporaryDirectory() as folder:
        again = sweep(sample(planned_groups(protocol), records, seconds), folder).records
    for name, record in again.items():
        run = record.run
        settings = digest([run.data, run.hyper, run.adapter_hyper, run.left_out])[:8]
        key = {"change": kind(run), "learner": f"{run.dataset} {settings}", "draw": run.seed}
        metrics = record.measured.metrics if record.measured else {}
        for place in (place for place in metrics if "accuracy" in metrics[place]):
            known = records[name].value(place)
            yield {**key, "target": place, "accuracy": record.value(place), "committed": known}


def make(out: Path, full: bool, only: list[str]) -> bool:
    """Make the rows that the file does not hold; return whether all of them could be made."""
    known, mode = read(out) if out.exists() else [], "full" if full else "quick"
    keys, done = {tuple(r[k] for k in KEY) for r in known}, {(r["task"], r["mode"]) for r in known}
    whole = True
    kinds = (digits, drawn_tables, by_nature, paper, learned)
    tasks = [*real_tables(full, only), *(task for tasks in kinds for task in tasks(full))]
    for task in track([task for task in tasks if wanted(only, task.case)], "Fitting and adapting"):
        name = f"{task.case}, {task.learner} {task.part}".rstrip(", ") + f" #{task.draw}"
        if {(name, mode), (name, "full")} & done:
            continue
        key = {"group": task.group, "case": task.case, "learner": task.learner, "draw": task.draw}
        key |= {"task": name, "mode": mode, **origin()}
        try:
            made = [key | found for found in task.rows()]
        except Exception:
            print(f"{name}:", traceback.format_exc(), sep="\n")
            made, whole = [], False
        with out.open("a") as file:
            fresh = [found for found in made if tuple(found[k] for k in KEY) not in keys]
            file.writelines(json.dumps(found) + "\n" for found in fresh)
    return whole


def wanted(only: list[str], case: str) -> bool:
    return not only or any(name in case for name in only)


def read(path: Path) -> list[dict[str, Any]]:
    with (gzip.open if path.suffix == ".gz" else open)(path, "rt") as file:
        return [json.loads(line) for line in file]


def compare(base: Path, new: Path, only: list[str]) -> bool:
    """Print what differs; return whether every gate holds (of those that `only` leaves rows for)."""
    old, now = (pd.DataFrame([r for r in read(path) if wanted(only, r["case"])]) for path in (base, new))
    both = old.merge(now, on=KEY, suffixes=("_old", "_new"))
    both["brier"] = both["brier_new"] - both["brier_old"]
    both["points"] = 100 * (both["accuracy_new"] - both["accuracy_old"])
    records, both = both[both["group"] == "paper"], both[both["group"] != "paper"]
    quick = old[(old["mode"] == "quick") & (old["group"] != "paper")]
    lost = len(quick) - len(quick.merge(both, on=KEY))
    print(*old["commit"].unique(), "→", *now["commit"].unique(), f"({len(both)} and {len(records)} rows)")
    holds = [told(f"{lost} rows of quick are missing", lost == 0)]
    tables = both[both["group"] == "tables"]
    as_is = tables["change"] == "as is"
    for name, part in {"as is": tables[as_is], "changed": tables[~as_is], "all": tables}.items():
        values = part.groupby("case")["brier"].mean()
        if len(values) or not only:
            held = values.mean() <= GATES["brier"]
            holds.append(told(f"real tables, {name}: Brier score {spread(values, 5)}", held))
    for case in DIGITS.values():
        values = both[both["case"] == case].groupby("target")["points"].mean()
        if len(values) or not only:
            held = values.mean() >= -GATES["points"]
            holds.append(told(f"{case}: points over agreements {spread(values, 2)}", held))
    differ = int((records["accuracy_old"] != records["accuracy_new"]).sum())
    if len(records) or not only:
        line = f"paper: {differ} of {len(records)} accuracies differ"
        holds.append(told(line, len(records) > 0 and differ == 0))
    show(both)
    return all(holds)


def spread(values: Any, digits: int) -> str:
    """Mean, standard error, how many there are, the least and the largest."""
    mean, error, least, most = (
        f"{v:+.{digits}f}" for v in (values.mean(), values.sem(), values.min(), values.max())
    )
    return f"{mean} ± {error[1:]} ({len(values)}, from {least} to {most})"


def told(line: str, held: bool) -> bool:
    print("holds" if held else "FAILS", line)
    return bool(held)


def show(both: Any) -> None:
    """What is no gate: differences and cost by group, and the rows that differ most."""
    parts = both.groupby(["group", "learner"])
    shown = parts[["brier", "points"]].mean().round(5).assign(rows=parts.size())
    for name in ("fit_ratio", "adapt_ratio", "fit", "adapt"):
        medians = [parts[f"{name}_{which}"].median().map("{:.3g}".format) for which in ("old", "new")]
        shown[name] = medians[0] + " → " + medians[1]
    print(
        "\nMeans of differences; medians of cost in fits of pooled, and in seconds",
        shown.to_string(),
        sep="\n",
    )
    sides = [f"{name}_{which}" for name in ("brier", "decision") for which in ("old", "new")]
    far = both.loc[both["brier"].abs().nlargest(5).index, [*KEY[1:], *sides]]
    print("\nThe five that differ most", far.to_string(index=False), sep="\n")


def main() -> None:
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=form)
    parser.add_argument("--out", type=Path, help="Rows, one line each; resumable.")
    parser.add_argument("--full", action="store_true", help="Every domain, every change, more draws.")
    parser.add_argument("--only", nargs="+", default=[], help="Cases whose name has one of these in it.")
    parser.add_argument("--compare", nargs=2, type=Path, metavar=("BASE", "NEW"))
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    if args.compare:
        sys.exit(not compare(*args.compare, args.only))
    if args.out is None:
        parser.error("Got neither --out nor --compare; name a file for the rows.")
    with threadpool_limits(1):
        sys.exit(not make(args.out, args.full, args.only))


if __name__ == "__main__":
    main()
