"""`SFBClassifier()` with every default on the bundled coloured digits: ten colourings, eleven agreements.

    python studies/learn_digits.py --seeds 10 --out learn_digits.jsonl
    python studies/learn_digits.py --out learn_digits.jsonl --table

One line a colouring; those that the file has are not run again. Beside the stable part and the answer of
`adapt`: the same networks by empirical risk and by IRM, a forest on all pixels, and ORACLE, which adapts with
the labels of the test domain. `--images colored_mnist --rows 1000` takes the first rows of each training
domain of ColoredMNIST.

A test domain of the digits has 597 rows, and chance moves an accuracy there by two points. `--draws` colours
each of them so many times more: a second table parts what a model does from what a draw does. Beside the
answer stands f_S with the true agreement of the colour, which nobody has.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestClassifier

from sfboost.torch import Plan, SFBClassifier
from sfboost_lab.datasets import load
from sfboost_lab.experiments.origin import origin

AGREEMENTS = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.0)
#: The search was built while looking at such figures.
TITLES = {
    "forest": "pooled forest",
    "erm": "empirical risk",
    "irm": "IRM",
    "stable": "stable (ORACLE)",
    "answer": "answer (ORACLE)",
    "paper": "without guard (ORACLE)",
    "oracle": "labelled (ORACLE)",
}
ERM = Plan(balance=False, steps=100, unstable_steps=0, budget=0)


def draw_again(
    model: SFBClassifier, forest: RandomForestClassifier, seed: int, draws: int
) -> dict[str, object]:
    """Colour the same test images again and again: mean accuracies, and how many draws fall short."""
    names = ("forest", "stable", "answer", "known")
    right = np.zeros((len(names), len(AGREEMENTS), draws))
    for draw in range(draws):
        data = load("colored_digits", random_state=seed, color_state=100 + draw)
        for at, agreement in enumerate(AGREEMENTS):
            X, y = data.xy(f"test-{agreement}")
            log_stable = model.predict_log_proba(X)
            green = X.sum(axis=(2, 3)).argmax(axis=1)
            says = np.log(np.clip([1 - agreement, agreement], 1e-3, None))
            known = log_stable + np.column_stack([says[1 - green], says[green]])
            right[:, at, draw] = (
                forest.score(X.reshape(len(X), -1), y),
                np.mean(log_stable.argmax(axis=1) == y),
                model.adapt(X).score(X, y),
                np.mean(known.argmax(axis=1) == y),
            )
    short = {
        name: (right[at] < right[:2].max(axis=0) - 0.02).sum(axis=1).tolist()
        for at, name in enumerate(names[2:], 2)
    }
    means = {name: right[at].mean(axis=1).round(4).tolist() for at, name in enumerate(names)}
    return {"n": draws, "scores": means, "short": short}


def run(images: str, rows: int | None, seed: int, draws: int) -> dict[str, object]:
    """Train on one colouring and score in every test domain."""
    data = load(images, random_state=seed, color_state=seed)
    X, y, domain = data.pooled("train")
    if rows is not None:
        kept = np.concatenate([np.flatnonzero(domain == name)[:rows] for name in np.unique(domain)])
        X, y, domain = X[kept], y[kept], domain[kept]
    began = time.process_time()
    model = SFBClassifier(random_state=seed).fit(X, y, sample_domain=domain)
    searched = time.process_time() - began
    began = time.process_time()
    SFBClassifier(plan=Plan(budget=0), random_state=seed).fit(X, y, sample_domain=domain)
    single = time.process_time() - began
    flat = X.reshape(len(X), -1)
    forest = RandomForestClassifier(300, min_samples_leaf=5, random_state=seed).fit(flat, y)
    irm = ERM.changed(pretrain_steps=100, steps=200)
    others = {
        "erm": SFBClassifier("narrow", penalty="none", plan=ERM, random_state=seed),
        "irm": SFBClassifier("narrow", penalty_weight=1000.0, plan=irm, random_state=seed),
    }
    for other in others.values():
        other.fit(X, y, sample_domain=domain)
    scores: dict[str, list[float]] = {name: [] for name in TITLES}
    decisions = []
    for agreement in AGREEMENTS:
        X_new, y_new = data.xy(f"test-{agreement}")
        adapted = model.adapt(X_new)
        decisions.append(adapted.decision_)
        answers = {
            "forest": forest.score(X_new.reshape(len(X_new), -1), y_new),
            **{name: other.score(X_new, y_new) for name, other in others.items()},
            "stable": model.score(X_new, y_new),
            "answer": adapted.score(X_new, y_new),
            "paper": model.adapt(X_new, answer="paper").score(X_new, y_new),
            "oracle": model.adapt(X_new, y=y_new, answer="paper").score(X_new, y_new),
        }
        for name, value in answers.items():
            scores[name].append(round(float(value), 4))
    return {
        "images": images,
        "rows": rows,
        "seed": seed,
        **origin(),
        "chosen": model.search_[0]["candidate"],
        "shown_stable": model.verification_.stable,
        "seconds": [round(searched, 1), round(single, 1)],
        "decisions": decisions,
        "scores": scores,
        "drawn_again": draw_again(model, forest, seed, draws) if images == "colored_digits" else None,
    }


def table(lines: list[dict[str, object]]) -> str:
    """Return the mean over colourings as a table."""
    print(f"{len(lines)} colourings; chosen: {sorted({str(line['chosen']) for line in lines})}")
    seconds = np.array([line["seconds"] for line in lines]).mean(axis=0)
    print(f"processor seconds: search {seconds[0]:.1f}, one training with Plan(budget=0) {seconds[1]:.1f}")
    every = {name: np.array([line["scores"][name] for line in lines]) for name in TITLES}  # type: ignore[index]
    ahead = 100 * (every["answer"] - np.maximum(every["forest"], every["stable"]))
    print(
        f"answer less the better of forest and stable: mean {ahead.mean(axis=0).min():.1f} at worst, ", end=""
    )
    print(f"single colouring {ahead.min():.1f}, more than 2 below in {(ahead < -2).sum()} of {ahead.size}")
    made = ["| | " + " | ".join(f"{a:.1f}" for a in AGREEMENTS) + " |", "|---" * 12 + "|"]
    for name, title in TITLES.items():
        made.append(f"| {title} | " + " | ".join(f"{100 * v:.1f}" for v in every[name].mean(axis=0)) + " |")
    return "\n".join(made)


def drawn_again(lines: list[dict[str, Any]]) -> str:
    """Return the lowest colouring over all draws of each test domain, and how many draws fall short."""
    made = ["| | " + " | ".join(f"{a:.1f}" for a in AGREEMENTS) + " |", "|---" * 12 + "|"]
    parts = [line["drawn_again"] for line in lines if line.get("drawn_again")]
    if not parts:
        return ""
    mean = {name: np.array([part["scores"][name] for part in parts]) for name in parts[0]["scores"]}
    ahead = mean["answer"] - np.maximum(mean["forest"], mean["stable"])
    n_draws = sum(part["n"] for part in parts)
    lowest = (100 * np.sort(ahead, axis=None)[:4]).round(1).tolist()
    print(f"mean of draws, lowest first: {lowest}; single draws ", end="")
    short = {name: int(_short(parts, name).sum()) for name in ("answer", "known")}
    print(f"more than 2 below, of {n_draws * len(AGREEMENTS)}: {short}")
    rows = {
        "stable, lowest colouring (ORACLE)": mean["stable"].min(axis=0),
        "answer, lowest colouring (ORACLE)": mean["answer"].min(axis=0),
        "answer less the better of forest and stable, lowest colouring": ahead.min(axis=0),
        "draws in which the answer is more than 2 below it, %": _short(parts, "answer") / n_draws,
        "the same of f_S with the true agreement (ORACLE), %": _short(parts, "known") / n_draws,
    }
    made += [f"| {name} | " + " | ".join(f"{100 * v:.1f}" for v in row) + " |" for name, row in rows.items()]
    return "\n".join(made).replace("-0.0", "0.0")


def _short(parts: list[dict[str, Any]], name: str) -> NDArray[np.float64]:
    return np.array([part["short"][name] for part in parts], dtype=float).sum(axis=0)


def main() -> None:
    """Run what is missing, then print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--images", default="colored_digits")
    parser.add_argument("--rows", type=int)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--draws", type=int, default=30, help="of each test domain of the digits")
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
            lines.append(run(*key, seed, args.draws))
        with args.out.open("a") as file:
            file.write(json.dumps(lines[-1]) + "\n")
    mine = [line for line in lines if (line["images"], line["rows"]) == key]
    print(table(mine))
    print(drawn_again(mine))


if __name__ == "__main__":
    main()
