"""What a decision gains and harms when what changes is drawn at random.

    python studies/harm.py draw ROWS [--half report] [--draws 0:100]    write drawn problems (npz files)
    python studies/harm.py answer ROWS --out answers.jsonl              the default answer to each of them
    python studies/harm.py table answers.jsonl [others.jsonl]           means by what was drawn

A draw takes a target domain of a table and changes it: one to three features of X_U, of X_S or of both (or
all of X_U) change their state (mirrored, shuffled, class means reversed or lost, noisier, constant) at a
random strength, or their unit; class shares move; rows are selected. Half of the tables, by a hash of their
name, are to develop on; the other half is reported. Rows of the decision that this one replaced (commit
7632640) are called "before". Labels of a target domain make the changes and the
scores, and are shown to nobody.
"""

import argparse
import json
import time
import warnings
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
import pandas as pd

Floats = np.ndarray[Any, np.dtype[np.float64]]
#: The most rows of a domain.
MOST = 1000
#: What may happen to a feature, besides its unit.
STATES = ("mirrored", "shuffled", "reversed", "lost", "noisier", "constant")


class Drawn(NamedTuple):
    """Rows of a target domain after a change, and what it was."""

    X: Floats
    y: Any
    told: dict[str, Any]


def half_of(table: str) -> str:
    """Return the half of the tables that one belongs to, by a hash of its name."""
    return "report" if sha256(table.encode()).digest()[0] % 2 else "develop"


def changed(X: Floats, y: Any, n_stable: int, groups: Any, rng: np.random.Generator) -> Drawn:
    """Draw a change of these rows; `groups` has the feature of each column."""
    X, told = X.copy(), dict.fromkeys(("U", "S"), "") | {"shares": "", "selected": ""}
    kind = rng.choice(["U", "S", "both", "shares", "selection"], p=[0.4, 0.2, 0.15, 0.15, 0.1])
    parts = {"U": ["U"], "S": ["S"], "both": ["S", "U"]}.get(str(kind), [])
    for part in parts:
        mine = np.unique(groups[n_stable:] if part == "U" else groups[:n_stable])
        few = rng.choice(mine, min(int(rng.integers(1, 4)), len(mine)), replace=False)
        chosen = mine if part == "U" and rng.random() < 0.25 else few
        one = str(rng.choice([*STATES, "unit"]))
        made = []
        for feature in chosen:
            state = one if len(chosen) > 3 else str(rng.choice([*STATES, "unit"]))
            made.append(state)
            columns = np.flatnonzero(groups == feature)
            X[:, columns] = after(X[:, columns], y, state, rng)
        told[part] = " ".join(made)
    if kind == "shares" or rng.random() < 0.15:
        shares = rng.dirichlet(np.ones(y.max() + 1))
        rows = resampled(shares[y] / np.maximum(np.bincount(y) / len(y), 1e-9)[y], rng)
        X, y, told["shares"] = X[rows], y[rows], "moved"
    if kind == "selection" or rng.random() < 0.15:
        S = X[:, :n_stable] if rng.random() < 0.5 else X
        z = (S - S.mean(axis=0)) / np.maximum(S.std(axis=0), 1e-9) @ rng.normal(size=S.shape[1])
        rows = resampled(np.exp(0.8 * np.clip((z - z.mean()) / max(z.std(), 1e-9), -4, 4)), rng)
        X, y, told["selected"] = X[rows], y[rows], "moved"
    return Drawn(X, y, told)


def after(X: Floats, y: Any, state: str, rng: np.random.Generator) -> Floats:
    """Return the columns of one feature in another state, fully or for a part of the rows or of the size."""
    if state == "unit":
        return X * np.exp(rng.normal(0, 0.7)) + rng.normal(0, 1.5) * X.std(axis=0)
    if state == "constant":
        return np.tile(X[rng.integers(len(X))], (len(X), 1))
    strength = rng.uniform(0.4, 1.0)
    means = np.array(
        [X[y == k].mean(axis=0) if (y == k).any() else X.mean(axis=0) for k in range(y.max() + 1)]
    )
    if state in ("reversed", "lost"):
        return X - (2.0 if state == "reversed" else 1.0) * strength * (means[y] - X.mean(axis=0))
    other = 2.0 * X.mean(axis=0) - X if state == "mirrored" else X[rng.permutation(len(X))]
    if state == "noisier":
        return X + strength * (other - X.mean(axis=0))
    return np.where(rng.random((len(X), 1)) < strength, other, X)


def resampled(weight: Floats, rng: np.random.Generator) -> Any:
    """Draw rows by weight, without replacement as far as they go."""
    n = max(int(weight.sum() / weight.max()), min(100, len(weight)))
    return rng.choice(len(weight), min(n, len(weight)), replace=False, p=weight / weight.sum())


def problems(half: str, only: list[str]) -> Iterator[tuple[str, int, Any]]:
    """Every target domain of every table of a half."""
    from sfboost_lab.experiments.run import Run
    from sfboost_lab.experiments.shifts.suite_domains import TABLES, suite_domains
    from sfboost_lab.experiments.shifts.unseen import UNSEEN, load_unseen

    for name in (*TABLES, *UNSEEN):
        if half_of(name) != half or (only and name not in only):
            continue
        count = TABLES.get(name) or len(load_unseen(name).domains)
        for new in range(min(count, 6)):
            yield name, new, suite_domains(Run(name, "logistic", 0, "harm", data={"new": new, "most": MOST}))


def draw(folder: Path, half: str, draws: range, only: list[str]) -> None:
    """Write every problem and its drawn targets: draws take turns at the domains of a table."""
    folder.mkdir(parents=True, exist_ok=True)
    by_table: dict[str, list[Any]] = {}
    for name, new, made in problems(half, only):
        by_table.setdefault(name, []).append((new, made))
    for name, targets in by_table.items():
        for place, (new, made) in enumerate(targets):
            ((target, rows),) = made.new.items()
            n_stable = rows.stable.shape[1]
            groups = np.concatenate([np.arange(n_stable), n_stable + made.groups])
            parts: dict[str, Any] = {"as is": Drawn(rows.matrix(), rows.y, {})}
            for number in draws:
                if number % len(targets) == place:
                    rng = np.random.default_rng([number, crc32(name.encode())])
                    parts[str(number)] = changed(rows.matrix(), rows.y, n_stable, groups, rng)
            arrays = {
                f"{key}:{part}": getattr(one, part) for key, one in parts.items() for part in ("X", "y")
            }
            told = {key: one.told for key, one in parts.items()}
            head = {"table": name, "target": target, "n_stable": n_stable, "told": told}
            own = {"own_X": made.own.matrix(), "own_y": made.own.y, "own_domain": made.domain.astype(str)}
            np.savez(folder / f"{name}-{new}.npz", head=json.dumps(head), groups=groups, **own, **arrays)


Adapt = Callable[[Floats], tuple[Floats, dict[str, Any]]]


def make_learner(name: str) -> Any:
    """Return an unfitted classifier."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    if name == "boosting":
        return HistGradientBoostingClassifier(max_iter=60, max_leaf_nodes=15, random_state=0)
    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))


def fitted(system: str, X: Floats, y: Any, domain: Any, n_stable: int, learner: str) -> Adapt:
    """Fit one of `SYSTEMS`; "pooled" and "stable" are one classifier of all or of the stable columns."""
    from sfboost import StableFeatureBoosting

    if system == "stable" or (system == "pooled" and learner != "auto"):
        columns = slice(0, n_stable if system == "stable" else None)
        alone = make_learner(learner).fit(X[:, columns], y)
        classes = np.arange(y.max() + 1)

        def said(new: Floats) -> tuple[Floats, dict[str, Any]]:
            proba = np.zeros((len(new), len(classes)))
            proba[:, alone.classes_] = alone.predict_proba(new[:, columns])
            return proba, {}

        return said
    parts = list(range(n_stable)), list(range(n_stable, X.shape[1]))
    named = {"learner": "auto"} if learner == "auto" else {"stable": make_learner(learner), "learner": None}
    model = StableFeatureBoosting(*parts, **named).fit(X, y, sample_domain=domain)

    def adapt(new: Floats) -> tuple[Floats, dict[str, Any]]:
        if system == "pooled":
            return np.asarray(model.predict_proba(new)), {}
        adapted = model.adapt(new)
        return np.asarray(adapted.predict_proba(new)), {"decision": str(adapted.decision_)}

    return adapt


def answer(folder: Path, out: Path, learner: str, system: str, name: str) -> None:
    """Answer every drawn target; rows that `out` holds are not made again."""
    done = set()
    if out.exists():
        rows = [json.loads(line) for line in out.read_text().splitlines()]
        done = {(row["table"], row["target"], row["draw"], row["system"]) for row in rows}
    for path in sorted(folder.glob("*.npz")):
        with np.load(path) as held:
            head = json.loads(str(held["head"]))
            todo = [d for d in head["told"] if (head["table"], head["target"], d, name) not in done]
            if not todo:
                continue
            X, y, domain = held["own_X"], held["own_y"], held["own_domain"]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                start = time.process_time()
                adapt = fitted(system, X, y, domain, head["n_stable"], learner)
                fit = time.process_time() - start
                lines = []
                for number in todo:
                    new, truth = held[f"{number}:X"], held[f"{number}:y"]
                    start = time.process_time()
                    proba, said = adapt(new)
                    row = {"table": head["table"], "target": head["target"], "draw": number, "system": name}
                    row |= {"told": head["told"][number], **scores(proba, truth), **said}
                    row |= {
                        "n": len(truth),
                        "fit": round(fit, 4),
                        "adapt": round(time.process_time() - start, 4),
                    }
                    lines.append(json.dumps(row))
            with out.open("a") as file:
                file.write("\n".join(lines) + "\n")


def scores(proba: Floats, y: Any) -> dict[str, float]:
    """Accuracy, Brier score (half the squared distance) and log loss."""
    truth = y[:, None] == np.arange(proba.shape[1])
    p = np.where(truth, proba, 0.0).sum(axis=1)
    return {
        "accuracy": round(float((proba.argmax(axis=1) == y).mean()), 5),
        "brier": round(float(((proba - truth) ** 2).sum(axis=1).mean() / 2), 5),
        "log_loss": round(float(-np.log(np.clip(p, 1e-6, None)).mean()), 5),
    }


def kind(told: dict[str, Any]) -> str:
    """Name what was drawn."""
    parts = [name for name in ("S", "U", "shares", "selected") if told.get(name)]
    return "+".join(parts) or "as is"


KINDS: dict[str, Callable[[str], bool]] = {
    "as is": lambda kind: kind == "as is",
    "drawn": lambda kind: kind != "as is",
    "X_U alone": lambda kind: kind in ("U", "U+selected"),
    "X_S or shares in it": lambda kind: "S" in kind.split("+") or "shares" in kind,
    "shares alone": lambda kind: kind == "shares",
    "selected alone": lambda kind: kind == "selected",
}


def table(paths: list[Path], metric: str) -> pd.DataFrame:
    """Means by what was drawn, where every table counts the same, and differences with their errors."""
    rows = pd.concat([pd.read_json(path, lines=True, dtype={"draw": str}) for path in paths])
    rows["kind"] = rows["told"].map(kind)
    by_row = rows.pivot_table(
        index=["table", "target", "draw", "kind"], columns="system", values=metric
    ).dropna()
    scale, made = 1.0 if metric == "log_loss" else 100.0, {}
    for name, holds in KINDS.items():
        part = by_row[by_row.index.get_level_values("kind").map(holds)]
        by_table = part.groupby("table").mean() * scale
        told = {str(system): f"{by_table[system].mean():.2f}" for system in by_table}
        for other in by_table.columns.drop("answer"):
            gain = by_table["answer"] - by_table[other]
            rest = gain.drop(gain.abs().idxmax())
            error = gain.std(ddof=1) / np.sqrt(len(gain))
            told[f"answer - {other}"] = f"{gain.mean():+.2f} ± {error:.2f}"
            told[f"- {other}, without one table"] = f"{rest.mean():+.2f}"
        made[name] = told
    return pd.DataFrame(made).T


def harm(paths: list[Path]) -> str:
    """Say how often, and how much, each system is worse than pooled on drawn rows."""
    rows = pd.concat([pd.read_json(path, lines=True, dtype={"draw": str}) for path in paths])
    rows = rows[rows["draw"] != "as is"]
    by_row = rows.pivot_table(index=["table", "target", "draw"], columns="system", values="accuracy").dropna()
    lines = []
    for system in by_row.columns.drop("pooled"):
        gain = 100 * (by_row[system] - by_row["pooled"])
        worst, often = gain[gain <= gain.quantile(0.05)].mean(), 100 * (gain < -2).mean()
        lines.append(
            f"{system}: worst 5 % of rows {worst:+.1f} points, {often:.1f} % more than 2 points below"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    drawing = commands.add_parser("draw")
    drawing.add_argument("folder", type=Path)
    drawing.add_argument("--half", choices=("develop", "report"), default="develop")
    drawing.add_argument("--draws", default="0:100")
    drawing.add_argument("--only", nargs="*", default=[])
    answering = commands.add_parser("answer")
    answering.add_argument("folder", type=Path)
    answering.add_argument("--out", type=Path, required=True)
    answering.add_argument("--learner", choices=("logistic", "boosting", "auto"), default="logistic")
    answering.add_argument("--system", choices=("answer", "pooled", "stable"), default="answer")
    answering.add_argument("--name", help="what rows call it; the system, by default")
    showing = commands.add_parser("table")
    showing.add_argument("paths", type=Path, nargs="+")
    options = parser.parse_args()
    if options.command == "draw":
        first, last = map(int, options.draws.split(":"))
        draw(options.folder, options.half, range(first, last), options.only)
    elif options.command == "answer":
        name = options.name or options.system
        answer(options.folder, options.out, options.learner, options.system, name)
    else:
        for metric in ("accuracy", "brier", "log_loss"):
            print(metric, table(options.paths, metric).to_string(), sep="\n")
        print(harm(options.paths))


if __name__ == "__main__":
    main()
