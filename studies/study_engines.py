"""The case on README's first screen: turbofan engines whose fan fails, where training saw compressors alone.

python studies/study_engines.py [--out docs/engines.png] [--every 1]

Four fleets of FD001 are the source domains. Targets: the whole of FD003, each of its engines, and its
engines by what fails. The last is read off the end of life, which nobody knows in time, and marked ORACLE;
so are labels.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, roc_auc_score
from sklearn.model_selection import GroupKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sfboost import StableFeatureBoosting
from sfboost.figures import new_figure
from sfboost_lab.datasets.engines import STABLE, UNSTABLE, engines

SENSORS = {
    "s11": "stable: static pressure behind the compressor (s11)",
    "s7": "unstable: total pressure behind it (s7)",
}
COLOURS = {"FD001": "#4477aa", "FD003-compressor": "#228833", "FD003-fan": "#cc3311"}
NAMES = {
    "FD001": "trained on: compressor wears (FD001)",
    "FD003-compressor": "new: compressor wears (FD003)",
    "FD003-fan": "new: fan wears (FD003)",
}


def learner() -> Any:
    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))


def scores(made: dict[str, Any], X: Any, y: Any, engine: Any) -> dict[str, tuple[float, float]]:
    """Accuracy and AUROC of each system on one target domain."""
    started = time.process_time()
    adapted = made["ours"].adapt(X)
    proba = {
        "pooled": made["pooled"].predict_proba(X)[:, 1],
        "stable": made["stable"].predict_proba(X[:, : len(STABLE)])[:, 1],
        "answer": np.asarray(adapted.predict_proba(X))[:, 1],
    }
    if len(np.unique(engine)) > 1:
        folds = GroupKFold(min(10, len(np.unique(engine))))
        told = cross_val_predict(learner(), X, y, groups=engine, cv=folds, method="predict_proba")
        proba["labels (ORACLE)"] = told[:, 1]
    print(f"  {adapted.decision_}, {time.process_time() - started:.1f} s", flush=True)
    return {
        name: (100 * accuracy_score(y, p > 0.5), roc_auc_score(y, p) if len(np.unique(y)) > 1 else np.nan)
        for name, p in proba.items()
    }


def draw(out: Path) -> None:
    """Draw the course of a stable and an unstable sensor before failure, in standard deviations."""
    split = engines(by="fault")
    parts = {"FD001": split.pooled("train")[0], **{name: split.domain(name).X for name in split.test}}
    where = {name: split.domain(name) for name in (*split.train, *split.test)}
    figure = new_figure((9.5, 3.4))
    axes = figure.subplots(1, 2, sharex=True)
    columns = [*STABLE, *UNSTABLE]
    source = parts["FD001"]
    for axis, (sensor, title) in zip(axes, SENSORS.items(), strict=True):
        column = columns.index(sensor)
        mean, spread = source[:, column].mean(), source[:, column].std()
        for fleet, colour in COLOURS.items():
            names = split.train if fleet == "FD001" else (fleet,)
            courses = [c for name in names for c in by_engine(where[name], column)]
            longest = 150
            lines = np.full((len(courses), longest), np.nan)
            for line, course in zip(lines, courses, strict=True):
                line[-min(len(course), longest) :] = (course[-longest:] - mean) / spread
            low, middle, high = np.nanquantile(lines, [0.25, 0.5, 0.75], axis=0)
            left = np.arange(longest)[::-1]
            axis.plot(left, middle, color=colour, label=NAMES[fleet])
            axis.fill_between(left, low, high, color=colour, alpha=0.15, linewidth=0)
        axis.set_title(title, fontsize=10)
        axis.axvspan(0, 60, color="grey", alpha=0.1, linewidth=0)
        axis.set_xlabel("cycles left until the engine fails (grey: fewer than 60)")
    axes[0].invert_xaxis()
    axes[0].set_ylabel("sensor, standard deviations")
    axes[0].legend(fontsize=8, loc="upper left")
    figure.savefig(out, dpi=110)


def by_engine(domain: Any, column: int) -> list[Any]:
    engine = domain.facts["engine"]
    return [domain.X[engine == unit, column] for unit in np.unique(engine)]


def table(every: int) -> None:
    fleet, single, fault = engines(by="fleet"), engines(by="engine"), engines(by="fault")
    X, y, domain = fleet.pooled("train")
    ours = StableFeatureBoosting(list(range(len(STABLE))), list(range(len(STABLE), X.shape[1])))
    made = {
        "pooled": learner().fit(X, y),
        "stable": learner().fit(X[:, : len(STABLE)], y),
        "ours": ours.fit(X, y, sample_domain=domain),
    }
    found: dict[str, dict[str, tuple[float, float]]] = {}
    for name, split in (("the whole of FD003", fleet), *((f"{n} (ORACLE)", fault) for n in fault.test)):
        target = split.domain(split.test[0] if split is fleet else name.removesuffix(" (ORACLE)"))
        found[name] = scores(made, target.X, target.y, target.facts["engine"])
    faults = {unit: n for n in fault.test for unit in np.unique(fault.domain(n).facts["engine"])}
    alone: dict[str, list[dict[str, tuple[float, float]]]] = {n: [] for n in fault.test}
    for name in single.test[::every]:
        target = single.domain(name)
        alone[faults[target.facts["engine"][0]]].append(
            scores(made, target.X, target.y, target.facts["engine"])
        )
    for name, rows in alone.items():
        mean = {s: tuple(np.nanmean([row[s] for row in rows], axis=0)) for s in rows[0]}
        found[f"{len(rows)} engines, each alone: {name} (ORACLE)"] = mean
    systems = ("pooled", "stable", "answer", "labels (ORACLE)")
    print(f"\n{fleet.name}: accuracy (AUROC)\n| target domain | {' | '.join(systems)} |")
    print(f"|---|{'---|' * len(systems)}")
    for name, row in found.items():
        cells = (f"{row[s][0]:.1f} ({row[s][1]:.2f})" if s in row else "" for s in systems)
        print(f"| {name} | {' | '.join(cells)} |")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path("docs/engines.png"), help="where the picture goes")
    parser.add_argument("--every", type=int, default=1, help="only every so many single engines")
    told = parser.parse_args()
    draw(told.out)
    table(told.every)


if __name__ == "__main__":
    main()
