"""`SFBClassifier()` with every default on synthetic families: AC, CE-DD, AC with five classes; unbalanced.

    python studies/learn_families.py --seeds 10 --out learn_families.jsonl
    python studies/learn_families.py --out learn_families.jsonl --table

One line a family and seed; those that the file has are not run again. In an unbalanced family the last class
has a tenth of the rows of every domain, and what is shown is balanced accuracy. Beside the stable part and
the answer of `adapt`: the same network by empirical risk and by IRM, a pooled forest, and ORACLE, which
adapts with the labels of the test domain.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import accuracy_score, balanced_accuracy_score

from sfboost.torch import Plan, SFBClassifier
from sfboost_lab.baselines.learned.boosting import SplitPredictor
from sfboost_lab.baselines.sfb import SFBLabels
from sfboost_lab.datasets import load
from sfboost_lab.experiments.origin import origin

#: Family → data set, its options, and whether the last class is rare.
FAMILIES: dict[str, tuple[str, dict[str, Any], bool]] = {
    "ac": ("ac", {}, False),
    "ce_dd": ("ce_dd", {}, False),
    "ac, 5 classes": ("multiclass_ac", {"n_classes": 5, "n_rows": 4096}, False),
    "ac, unbalanced": ("ac", {"n_rows": 4096}, True),
    "ce_dd, unbalanced": ("ce_dd", {"n_rows": 4096}, True),
    "ac, 5 classes, unbalanced": ("multiclass_ac", {"n_classes": 5, "n_rows": 4096}, True),
}
#: What is scored → its name in tables.
TITLES = {
    "forest": "pooled forest",
    "erm": "empirical risk",
    "irm": "IRM",
    "stable": "stable",
    "answer": "answer",
    "ORACLE": "labelled (ORACLE)",
}
ERM = Plan(balance=False, steps=100, unstable_steps=0, learning_rate=0.01, budget=0)
_RARE = 0.1


def thinned(X: np.ndarray, y: np.ndarray, domain: np.ndarray) -> np.ndarray:
    """Rows of which the last class has a tenth, in every domain."""
    kept = []
    for name in np.unique(domain):
        here, rare = np.flatnonzero(domain == name), y[domain == name] == y.max()
        wanted = round(_RARE / (1 - _RARE) * (~rare).sum())
        kept += [here[~rare], here[rare][:wanted]]
    return np.sort(np.concatenate(kept))


def run(family: str, seed: int) -> dict[str, Any]:
    """Train on one draw and score in the test domain."""
    name, options, rare = FAMILIES[family]
    data = load(name, random_state=seed, **options)
    places = [data.pooled("train"), data.pooled("test")]
    if rare:
        places = [tuple(part[thinned(*rows)] for part in rows) for rows in places]  # type: ignore[misc]
    (X, y, domain), (X_new, y_new, _) = [(X.astype(np.float32), y, d) for X, y, d in places]
    score = balanced_accuracy_score if rare else accuracy_score
    began = time.process_time()
    model = SFBClassifier(random_state=seed).fit(X, y, sample_domain=domain)
    searched = time.process_time() - began
    irm = ERM.changed(pretrain_steps=100, steps=200)
    models = {
        "forest": RandomForestClassifier(300, min_samples_leaf=5, random_state=seed).fit(X, y),
        "erm": SFBClassifier("narrow", penalty="none", plan=ERM, random_state=seed),
        "irm": SFBClassifier("narrow", penalty_weight=1000.0, plan=irm, random_state=seed),
    }
    for other in ("erm", "irm"):
        models[other] = SplitPredictor(models[other].fit(X, y, sample_domain=domain))
    adapted = model.adapt(X_new)
    models |= {
        "stable": SplitPredictor(model),
        "answer": adapted,
        "ORACLE": SFBLabels().adapt(SplitPredictor(model), X_new, y_new),
    }
    return {
        "family": family,
        "seed": seed,
        **origin(),
        "chosen": model.search_[0]["candidate"],
        "shown_stable": model.verification_.stable,
        "decision": adapted.decision_,
        "answers": sorted(adapted.weights_ or {}),
        "seconds": round(searched, 1),
        "scores": {title: round(float(score(y_new, models[title].predict(X_new))), 4) for title in TITLES},
    }


def table(lines: list[dict[str, Any]]) -> str:
    """Mean ± standard error by family, in %."""
    made = ["| | draws | " + " | ".join(TITLES.values()) + " |", "|---" * (len(TITLES) + 2) + "|"]
    for family in FAMILIES:
        own = [line["scores"] for line in lines if line["family"] == family]
        if not own:
            continue
        cells = []
        for title in TITLES:
            values = 100 * np.array([scores[title] for scores in own])
            error = f" ± {values.std(ddof=1) / np.sqrt(len(own)):.1f}" if len(own) > 1 else ""
            cells.append(f"{values.mean():.1f}{error}")
        made.append(f"| {family} | {len(own)} | " + " | ".join(cells) + " |")
    return "\n".join(made)


def main() -> None:
    """Run what is missing, then print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--family", nargs="+", choices=FAMILIES, default=list(FAMILIES))
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--table", action="store_true", help="run nothing")
    args = parser.parse_args()
    lines = [json.loads(line) for line in args.out.read_text().splitlines()] if args.out.exists() else []
    done = {(line["family"], line["seed"]) for line in lines}
    todo = [(family, seed) for seed in range(args.seeds) for family in args.family]
    for family, seed in () if args.table else todo:
        if (family, seed) in done:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            lines.append(run(family, seed))
        with args.out.open("a") as file:
            file.write(json.dumps(lines[-1]) + "\n")
    print(table(lines))


if __name__ == "__main__":
    main()
