"""The default answer on drawn tables: few rows and many, rare classes, trees, up to twenty classes.

    python studies/study_drawn_tables.py --out drawn.jsonl [--draws 8] [--cases rare few]

Each world has causes X_S (normal, two of them interacting) and effects X_U whose class means differ from
domain to domain by a fifth of their size, and which depend on X_S within a class. The new domain comes as it
is, with the effects mirrored, shuffled or, with more than two classes, each class looking like the next one.
`StableFeatureBoosting` has every default but the learner. Prints balanced accuracies of the pooled and stable
classifiers, of SFB and of the answer; labels of the new domain are used for that alone. Finished draws are in
the file and are not done again.
"""

import argparse
import json
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.metrics import balanced_accuracy_score

from sfboost import StableFeatureBoosting

N_STABLE, N_UNSTABLE = 4, 4
SHOWN = ("pooled", "stable", "boosted", "best")
KINDS = ("as is", "mirrored", "shuffled", "next class")
LEARNERS = {
    "logistic": lambda: None,
    "boosting": lambda: HistGradientBoostingClassifier(max_iter=60, max_leaf_nodes=15, random_state=0),
    "forest": lambda: RandomForestClassifier(100, min_samples_leaf=5, random_state=0),
}


@dataclass(frozen=True)
class Setting:
    """One kind of table."""

    rows: int = 1000
    own: int = 4
    shares: tuple[float, ...] = (0.5, 0.5)
    learner: str = "logistic"


CASES = {
    "plain": Setting(),
    "few": Setting(rows=100, own=3),
    "few, two domains": Setting(rows=150, own=2),
    "few, boosting": Setting(rows=100, own=3, learner="boosting"),
    "rare": Setting(shares=(0.95, 0.05)),
    "rare, few": Setting(rows=300, shares=(0.95, 0.05)),
    "rare, boosting": Setting(rows=2000, shares=(0.95, 0.05), learner="boosting"),
    "boosting": Setting(learner="boosting"),
    "boosting, two domains": Setting(own=2, learner="boosting"),
    "forest": Setting(learner="forest"),
    "twelve domains": Setting(rows=300, own=12),
    "five classes, skewed": Setting(shares=(0.4, 0.3, 0.15, 0.1, 0.05)),
    "five classes, forest": Setting(shares=(0.2,) * 5, learner="forest"),
    "twenty classes": Setting(rows=4000, shares=(0.05,) * 20),
    "many rows": Setting(rows=75_000),
}


class World:
    """What all domains of a draw have in common."""

    def __init__(self, setting, seed):
        self.setting, self.rng = setting, np.random.default_rng([seed, len(setting.shares)])
        n_classes = len(setting.shares)
        self.cause = self.rng.normal(size=(N_STABLE + 1, n_classes)) * (2.5 if n_classes > 2 else 1.2)
        self.effect = self.rng.normal(size=(n_classes, N_UNSTABLE)) * 0.9
        self.leak = self.rng.normal(size=(N_STABLE, N_UNSTABLE)) * 0.2
        causes = self.rng.normal(size=(20_000, N_STABLE))
        self.bias = np.zeros(n_classes)
        for _ in range(200):
            shares = self._proba(causes).mean(axis=0)
            self.bias += np.log(setting.shares) - np.log(shares)

    def _proba(self, S):
        logits = np.column_stack([S, S[:, 0] * S[:, 1]]) @ self.cause + self.bias
        odds = np.exp(logits - logits.max(axis=1, keepdims=True))
        return odds / odds.sum(axis=1, keepdims=True)

    def domain(self):
        """Rows (S, U, y) of one more domain."""
        rng, n_rows = self.rng, self.setting.rows
        S = rng.normal(size=(n_rows, N_STABLE)) + 0.3 * rng.normal(size=N_STABLE)
        y = (self._proba(S).cumsum(axis=1) < rng.random((n_rows, 1))).sum(axis=1)
        effect = self.effect * (1.0 + 0.2 * rng.normal(size=self.effect.shape))
        U = (
            effect[y]
            + S @ self.leak
            + 0.2 * rng.normal(size=N_UNSTABLE)
            + rng.normal(size=(n_rows, N_UNSTABLE))
        )
        return S, U, y


def kinds(U, y, rng):
    """The new domain's effects as they are, and after each change."""
    yield "as is", U
    yield "mirrored", 2.0 * U.mean(axis=0) - U
    yield "shuffled", U[rng.permutation(len(U))]
    present = np.unique(y)
    if len(present) > 2:
        means = {label: U[y == label].mean(axis=0) for label in present}
        following = dict(zip(present, np.roll(present, -1), strict=True))
        yield "next class", U + np.array([means[following[label]] - means[label] for label in y])


def measured(setting, seed):
    """One record for each kind of change."""
    world = World(setting, seed)
    own, (S, U, y) = [world.domain() for _ in range(setting.own)], world.domain()
    X, labels = np.concatenate([np.hstack(d[:2]) for d in own]), np.concatenate([d[2] for d in own])
    columns = list(range(N_STABLE)), list(range(N_STABLE, N_STABLE + N_UNSTABLE))
    model = StableFeatureBoosting(*columns, stable=LEARNERS[setting.learner]())
    model.fit(X, labels, sample_domain=np.repeat(np.arange(setting.own), setting.rows))
    for kind, changed in kinds(U, y, world.rng):
        new = np.hstack([S, changed])
        adapted = model.adapt(new)
        said = (adapted.answers_ or {}) | {
            "best": adapted.predict_proba(new),
            "stable": model.predict_proba(new),
        }
        classes = model.classes_
        scores = {
            k: balanced_accuracy_score(y, classes[np.asarray(v).argmax(axis=1)]) for k, v in said.items()
        }
        yield {
            "kind": kind,
            "decision": adapted.decision_,
            "verdict": None if adapted.change_ is None else adapted.change_.verdict,
            "balanced": {name: scores[name] for name in SHOWN if name in scores},
        }


def page(records):
    """The lines of the page: means over draws, in percent; and how often the test was right."""
    rows = pd.DataFrame(records)
    scores = 100 * pd.DataFrame(rows.pop("balanced").tolist(), columns=list(SHOWN))
    # With too few rows there is no SFB: it is the stable predictor.
    rows = pd.concat([rows, scores.apply(lambda column: column.fillna(scores["stable"]))], axis=1)
    means = rows.groupby(["case", "kind"], sort=False)[list(SHOWN)].mean()
    lines = ["| own domains × rows | " + " | ".join(KINDS) + " |", "|---" * (len(KINDS) + 1) + "|"]
    for case, setting in CASES.items():
        if case in means.index:
            size = f"{setting.own} × {setting.rows:,}".replace(",", " ")
            lines.append(f"| {case} ({size}) | {' | '.join(_cell(means, case, kind) for kind in KINDS)} |")
    seen, untouched = rows["verdict"] == "changed", rows["kind"] == "as is"
    told = f"{(seen & ~untouched).sum()} of {(~untouched).sum()} changes seen"
    return [*lines, "", f"Alarms: {(seen & untouched).sum()} of {untouched.sum()} untouched domains; {told}."]


def _cell(means, case, kind):
    if (case, kind) not in means.index:
        return "–"
    *others, best = means.loc[(case, kind)]
    return f"{' · '.join(f'{value:.1f}' for value in others)} → **{best:.1f}**"


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--out", type=Path, required=True, help="Records, one line each; resumable.")
    told = parser.parse_args()
    known = [json.loads(line) for line in told.out.read_text().splitlines()] if told.out.exists() else []
    done = {(record["case"], record["seed"]) for record in known}
    warnings.simplefilter("ignore")
    for seed in range(told.draws):
        for case in told.cases:
            if (case, seed) in done:
                continue
            made = [{"case": case, "seed": seed} | record for record in measured(CASES[case], seed)]
            with told.out.open("a") as file:
                file.writelines(json.dumps(record) + "\n" for record in made)
            known += made
            print(case, seed, flush=True)
    print(*page([record for record in known if record["case"] in told.cases]), sep="\n")


if __name__ == "__main__":
    main()
