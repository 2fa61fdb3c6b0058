"""Compare learners and mixtures of two on target domains as they are.

    python studies/mixture.py answer --out mixture.jsonl [--half develop] [--systems standardised ...]
    python studies/mixture.py table mixture.jsonl

Every domain of every open table is left out in turn. Members are fitted to the others; the mixture's weights
are found by leaving out each of these, as `StableFeatureBoosting(learner=...)` does; "standardised" is the
default with each domain's columns by its own means and standard deviations (`records/standardised.jsonl.gz`,
against "linear + small boosting"). Tables are halved as in
`studies/harm.py`: choose on one half, report on the other.
"""

import argparse
import json
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from harm import half_of, problems, scores
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler


def linear() -> Any:
    """Return logistic regression of standardised columns."""
    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))


def boosting() -> Any:
    """Return histogram boosting as scikit-learn has it."""
    return HistGradientBoostingClassifier(random_state=0)


def small() -> Any:
    """Return less of it: a companion costs a third."""
    return HistGradientBoostingClassifier(max_iter=60, max_leaf_nodes=15, random_state=0)


#: What is compared: learners, the base first, or one that is fitted as it is.
SYSTEMS = {
    "linear, as fitted": None,
    "boosting, as fitted": None,
    "linear": (linear,),
    "boosting": (boosting,),
    "linear + boosting": (linear, boosting),
    "linear + small boosting": (linear, small),
    "boosting + linear": (boosting, linear),
    "standardised": (linear, small),
}


def answer(out: Path, halves: list[str], systems: list[str]) -> None:
    """Score systems on every left-out domain; rows that `out` holds are not made again."""
    from sfboost import StableFeatureBoosting

    done = set()
    if out.exists():
        rows = map(json.loads, out.read_text().splitlines())
        done = {(row["table"], row["target"], row["system"]) for row in rows}
    for half in halves:
        for name, _, made in problems(half, []):
            ((target, rows),) = made.new.items()
            asked = [system for system in systems if (name, target, system) not in done]
            if not asked:
                continue
            X, y, n_stable = made.own.matrix(), made.own.y, rows.stable.shape[1]
            columns = list(range(n_stable)), list(range(n_stable, X.shape[1]))
            lines = []
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                for system in asked:
                    learners, start = SYSTEMS[system], time.process_time()
                    if learners is None:
                        model = (linear if system.startswith("linear") else boosting)().fit(X, y)
                    else:
                        scale = "domain" if system == "standardised" else None
                        both = tuple(one() for one in learners)
                        model = StableFeatureBoosting(*columns, learner=both, standardize=scale)
                        model.fit(X, y, sample_domain=made.domain.astype(str))
                    proba = np.zeros((len(rows.y), int(max(y.max(), rows.y.max())) + 1))
                    proba[:, model.classes_] = model.predict_proba(rows.matrix())
                    row = {"table": name, "target": target, "system": system, **scores(proba, rows.y)}
                    lines.append(json.dumps(row | {"fit": round(time.process_time() - start, 3)}))
            with out.open("a") as file:
                file.write("\n".join(lines) + "\n")


def table(path: Path, against: str) -> None:
    """Print means over tables by half, and gains over one system with their errors."""
    rows = pd.read_json(path, lines=True)
    rows["half"] = rows["table"].map(half_of)
    for half, part in rows.groupby("half"):
        for metric in ("accuracy", "brier", "log_loss"):
            by_table = part.pivot_table(index="table", columns="system", values=metric)
            scale, sign = (1.0 if metric == "log_loss" else 100.0), (1 if metric == "accuracy" else -1)
            gain = sign * scale * by_table.sub(by_table[against], axis=0)
            told = pd.DataFrame(
                {
                    "mean": scale * by_table.mean(),
                    f"gain over {against}": gain.mean(),
                    "±": gain.std(ddof=1) / np.sqrt(len(gain)),
                    "tables up": (gain > 0).sum(),
                    "worst table": gain.min(),
                }
            )
            print(f"{half}, {len(gain)} tables: {metric}", told.round(3).to_string(), sep="\n")


def main() -> None:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    answering = commands.add_parser("answer")
    answering.add_argument("--out", type=Path, required=True)
    answering.add_argument("--half", choices=("develop", "report"), nargs="*", default=["develop", "report"])
    answering.add_argument("--systems", choices=tuple(SYSTEMS), nargs="*", default=[*SYSTEMS])
    showing = commands.add_parser("table")
    showing.add_argument("path", type=Path)
    showing.add_argument("--against", choices=tuple(SYSTEMS), default="linear")
    options = parser.parse_args()
    if options.command == "answer":
        answer(options.out, options.half, options.systems)
    else:
        table(options.path, options.against)


if __name__ == "__main__":
    main()
