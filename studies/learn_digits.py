"""`SFBClassifier()` with every default on coloured digits, by agreement of colour and label.

    python studies/learn_digits.py --seeds 10 --out learn_digits.jsonl
    python studies/learn_digits.py --images colored_mnist --rows 5000 --seeds 1 --out learn_digits.jsonl
    python studies/learn_digits.py --out learn_digits.jsonl --table

One line a colouring; those that the file has are not run again. Beside the stable part and the answer of
`adapt`: the same networks by empirical risk and by IRM, a forest on all pixels, and ORACLE, which adapts with
the labels of the test domain. `--rows` takes the first rows of each training domain.
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

from sfboost.torch import Plan, SFBClassifier
from sfboost_lab.baselines.learned.boosting import SplitPredictor
from sfboost_lab.baselines.sfb import SFBLabels
from sfboost_lab.datasets import load
from sfboost_lab.experiments.origin import origin

AGREEMENTS = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.0)
#: What is scored → its name in tables. The search was built while looking at such figures.
TITLES = {
    "forest": "pooled forest",
    "erm": "empirical risk",
    "irm": "IRM",
    "stable": "stable (ORACLE)",
    "answer": "answer (ORACLE)",
    "labelled": "labelled (ORACLE)",
}
ERM = Plan(balance=False, steps=100, unstable_steps=0, budget=0)


def run(images: str, rows: int | None, seed: int) -> dict[str, Any]:
    """Train on one colouring and score in every test domain."""
    data = load(images, random_state=seed, color_state=seed)
    X, y, domain = data.pooled("train")
    if rows is not None:
        kept = np.concatenate([np.flatnonzero(domain == name)[:rows] for name in np.unique(domain)])
        X, y, domain = X[kept], y[kept], domain[kept]
    began = time.process_time()
    model = SFBClassifier(random_state=seed).fit(X, y, sample_domain=domain)
    seconds = time.process_time() - began
    forest = RandomForestClassifier(300, min_samples_leaf=5, random_state=seed).fit(X.reshape(len(X), -1), y)
    irm = ERM.changed(pretrain_steps=100, steps=200)
    others = {
        "erm": SFBClassifier("narrow", penalty="none", plan=ERM, random_state=seed),
        "irm": SFBClassifier("narrow", penalty_weight=1000.0, plan=irm, random_state=seed),
    }
    others = {name: SplitPredictor(one.fit(X, y, sample_domain=domain)) for name, one in others.items()}
    scores: dict[str, list[float]] = {name: [] for name in TITLES}
    decisions = []
    for agreement in AGREEMENTS:
        X_new, y_new = data.xy(f"test-{agreement}")
        adapted = model.adapt(X_new)
        decisions.append(adapted.decision_)
        scores["forest"].append(forest.score(X_new.reshape(len(X_new), -1), y_new))
        stable = SplitPredictor(model)
        labelled = SFBLabels().adapt(stable, X_new, y_new)
        answers = {**others, "stable": stable, "answer": adapted, "labelled": labelled}
        for name, answer in answers.items():
            scores[name].append(float(np.mean(answer.predict(X_new) == y_new)))
    return {
        "images": images,
        "rows": rows,
        "seed": seed,
        **origin(),
        "chosen": model.search_[0]["candidate"],
        "shown_stable": model.verification_.stable,
        "seconds": round(seconds, 1),
        "decisions": decisions,
        "scores": {name: np.round(values, 4).tolist() for name, values in scores.items()},
    }


def table(lines: list[dict[str, Any]]) -> str:
    """Return the mean over colourings as a table."""
    seconds = np.mean([line["seconds"] for line in lines])
    print(f"{len(lines)} colourings, {seconds:.0f} s; chosen: {sorted({line['chosen'] for line in lines})}")
    made = ["| | " + " | ".join(f"{a:.1f}" for a in AGREEMENTS) + " |", "|---" * 12 + "|"]
    for name, title in TITLES.items():
        mean = np.mean([line["scores"][name] for line in lines], axis=0)
        made.append(f"| {title} | " + " | ".join(f"{100 * v:.1f}" for v in mean) + " |")
    return "\n".join(made)


def main() -> None:
    """Run what is missing, then print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--images", default="colored_digits")
    parser.add_argument("--rows", type=int)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--table", action="store_true", help="run nothing")
    args = parser.parse_args()
    lines = [json.loads(line) for line in args.out.read_text().splitlines()] if args.out.exists() else []
    key = (args.images, args.rows)
    for seed in () if args.table else range(args.seeds):
        if any((line["images"], line["rows"], line["seed"]) == (*key, seed) for line in lines):
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            lines.append(run(*key, seed))
        with args.out.open("a") as file:
            file.write(json.dumps(lines[-1]) + "\n")
    print(table([line for line in lines if (line["images"], line["rows"]) == key]))


if __name__ == "__main__":
    main()
