"""ColoredMNIST with learned features: accuracy over all test agreements, for several recipes.

Each recipe trains once (checkpoints in --out, a killed run continues), then every adaptation runs on the ten
thousand test images of each domain. The recipes themselves were found while looking at these accuracies.
Results are appended to ``results.jsonl`` in --out; finished recipes are skipped.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch

from sfboost import Settings, Training, adapt
from sfboost.heads import AdamLogisticRegression
from sfboost.leakage.model import LeakRefusedError
from sfboost.torch import Plan, SFBClassifier
from sfboost_lab.datasets import load

PLAN = Plan(
    dropout=0.2,
    batch_size=1250,
    learning_rate=3e-4,
    unstable_steps=60,
    unstable_learning_rate=3e-4,
    checkpoint_every=20,
)
RECIPES: dict[str, dict[str, Any]] = {
    # Rows drawn so that the label is independent of the first guess.
    "balanced": {"penalty_weight": 1.0, "plan__steps": 150},
    "balanced-10": {"penalty_weight": 10.0, "plan__steps": 150},
    # A plain empirical-risk score: only leak correction can use it.
    "erm": {"plan__balance": False, "penalty": "none", "plan__steps": 200},
    # The penalty alone, as the paper: empirical risk first, then large batches under the penalty.
    "irm": {
        "plan__balance": False,
        "penalty_weight": 500.0,
        "plan__pretrain_steps": 60,
        "plan__steps": 100,
        "plan__cosine": True,
        "plan__batch_size": 5000,
    },
    # One network, its last hidden layer cut in two halves.
    "shared": {
        "split": "shared",
        "penalty_weight": 500.0,
        "plan__pretrain_steps": 60,
        "plan__steps": 100,
        "plan__cosine": True,
        "plan__batch_size": 5000,
    },
}
_FAST = {"method": "paper", "head": AdamLogisticRegression(20, learning_rate=0.1, batch_size=2048)}
ADAPTATIONS: dict[str, dict[str, Any]] = {
    "posthoc": {"correction": "posthoc"},
    "posthoc, 3 rounds": {"correction": "posthoc", "rounds": 3},
    "posthoc, 5 rounds": {"correction": "posthoc", "rounds": 5},
    "paper": {"method": "paper"},
    "paper, rate 0.1": _FAST,
    "paper, rate 0.1, 3 rounds": {**_FAST, "rounds": 3},
    "paper, rate 0.1, 5 rounds": {**_FAST, "rounds": 5},
    "likelihood": {},
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--recipe", nargs="+", choices=RECIPES, default=["balanced"])
    parser.add_argument("--data-dir", type=Path, help="folder that holds mnist/; default: the usual places")
    parser.add_argument("--out", type=Path, default=Path("results/coloredmnist"))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    dataset = load("colored_mnist", random_state=args.seed, data_dir=args.data_dir)
    args.out.mkdir(parents=True, exist_ok=True)
    results = args.out / "results.jsonl"
    done = results.read_text().splitlines() if results.exists() else []
    for name in args.recipe:
        if any((r["recipe"], r["seed"]) == (name, args.seed) for r in map(json.loads, done)):
            print(f"{name}: in {results} already")
            continue
        start = time.perf_counter()
        model = SFBClassifier(
            plan=PLAN.changed(checkpoint=args.out / f"{name}-{args.seed}", verbose=50),
            independence="none",
            flatten=False,  # measured beside it
            random_state=args.seed,
        ).set_params(**RECIPES[name])
        X, y, domain = dataset.pooled("train")
        model.fit(X, y, sample_domain=domain, validation=dataset.pooled(dataset.validate))
        record = {"recipe": name, "seed": args.seed, "restarts": model.restarts_}
        record |= {"seconds": time.perf_counter() - start}
        record["accuracy"] = evaluate(model, dataset)
        with results.open("a") as file:
            file.write(json.dumps(record) + "\n")
        show(record)


def evaluate(model: SFBClassifier, dataset: Any) -> dict[str, dict[str, float]]:
    known = Training(evidence=model.training_.evidence)
    flattened = ["flat stable", *(f"flat {name}" for name in ADAPTATIONS)]
    table: dict[str, dict[str, float]] = {name: {} for name in ("stable", *ADAPTATIONS, *flattened, "leak")}
    try:
        leak = model.leak_model()
    except LeakRefusedError as error:
        print(error)
        leak = None
    for name in (*dataset.test, *dataset.validate):  # "h": held-out images of a training domain
        domain = dataset.domain(name)
        key = f"{'h' if name in dataset.validate else ''}{domain.agreement:.1f}"
        log_proba, unstable = model.stable_and_unstable(domain.X)
        scores = {"": np.exp(log_proba)}
        if leak is not None:
            scores["flat "] = leak.flatten(scores[""], unstable)
        for kind, proba in scores.items():
            table[f"{kind}stable"][key] = float(np.mean(proba.argmax(1) == domain.y))
            for method, options in ADAPTATIONS.items():
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    adapted = adapt(proba, unstable, training=known, settings=Settings(**options))
                table[kind + method][key] = float(np.mean(adapted.predict(proba, unstable) == domain.y))
        proba = scores[""]
        if leak is not None:
            adapted = leak.adapt(proba, unstable)
            table["leak"][key] = float(np.mean(adapted.predict(proba, unstable) == domain.y))
    return table


def show(record: dict[str, Any]) -> None:
    agreements = list(record["accuracy"]["stable"])
    print(f"{record['recipe']} ({record['seconds']:.0f} s, restarts {record['restarts']})")
    print("agreement".ljust(32) + "".join(f"{a:>7}" for a in agreements))
    for method, row in record["accuracy"].items():
        print(method.ljust(32) + "".join(f"{100 * row.get(a, float('nan')):7.1f}" for a in agreements))


if __name__ == "__main__":
    main()
