"""ColoredMNIST with learned features: accuracy over all test agreements, for several recipes.

Each recipe trains once (checkpoints in --out, a killed run continues), then every adaptation runs on the ten
thousand test images of each domain. Nothing is chosen with test labels. Results are appended to
``results.jsonl`` in --out; finished recipes are skipped.
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
from sfboost.adaptation.leak import LeakRefusedError
from sfboost.datasets import load
from sfboost.torch import SFBClassifier

COMMON: dict[str, Any] = {
    "network": "mlp",
    "dropout": 0.2,
    "calibration": "nll",
    "unstable_steps": 60,
    "unstable_learning_rate": 3e-4,
    "independence": "none",
    "random_state": 0,
}
RECIPES: dict[str, dict[str, Any]] = {
    # A plain empirical-risk score: only leak correction can use it.
    "erm": {"stability": "none", "batch_size": 2500, "learning_rate": 1e-4, "steps": 400},
    # Rows drawn so that the label is independent of the first guess.
    "balanced": {
        "balance": True,
        "stability_weight": 1.0,
        "batch_size": 5000,
        "learning_rate": 3e-4,
        "steps": 150,
    },
    "balanced-long": {
        "balance": True,
        "stability_weight": 1.0,
        "batch_size": 5000,
        "learning_rate": 3e-4,
        "steps": 400,
    },
    "balanced-slow": {
        "balance": True,
        "stability_weight": 1.0,
        "batch_size": 5000,
        "learning_rate": 1e-4,
        "steps": 250,
    },
    # The penalty alone, as the paper: empirical risk first, full batches under the penalty.
    "irm": {
        "stability_weight": 20000.0,
        "learning_rate": 1e-4,
        "pretrain_steps": 400,
        "steps": 200,
        "cosine": True,
    },
    # One network, its last hidden layer cut in two halves.
    "shared": {
        "split": "shared",
        "stability_weight": 5000.0,
        "learning_rate": 1e-4,
        "pretrain_steps": 400,
        "steps": 200,
        "cosine": True,
        "batch_size": 12500,
    },
}
ADAPTATIONS: dict[str, dict[str, Any]] = {
    "posthoc": {"correction": "posthoc"},
    "posthoc, 5 rounds": {"correction": "posthoc", "rounds": 5},
    "likelihood": {},
    "leak": {"noise": "train"},
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
        options = {**COMMON, **RECIPES[name], "random_state": args.seed}
        model = SFBClassifier(
            **options, checkpoint=args.out / f"{name}-{args.seed}", checkpoint_every=20, verbose=50
        )
        X, y, domain = dataset.pooled("train")
        model.fit(X, y, sample_domain=domain, validation=dataset.pooled(dataset.validate))
        record = {"recipe": name, "seed": args.seed, "restarts": model.restarts_}
        record |= {"seconds": time.perf_counter() - start, "precision": model.precision_.name}
        record["accuracy"] = evaluate(model, dataset)
        with results.open("a") as file:
            file.write(json.dumps(record) + "\n")
        show(record)


def evaluate(model: SFBClassifier, dataset: Any) -> dict[str, dict[str, float]]:
    table: dict[str, dict[str, float]] = {"stable": {}} | {name: {} for name in ADAPTATIONS}
    for name in dataset.test:
        domain = dataset.domain(name)
        key = f"{domain.agreement:.1f}"
        table["stable"][key] = model.score(domain.X, domain.y)
        for method, options in ADAPTATIONS.items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    adapted = model.adapt(domain.X, **options)
                except LeakRefusedError:
                    continue
            table[method][key] = float(np.mean(adapted.predict(domain.X) == domain.y))
    return table


def show(record: dict[str, Any]) -> None:
    agreements = list(record["accuracy"]["stable"])
    print(f"{record['recipe']} ({record['seconds']:.0f} s, restarts {record['restarts']})")
    print("agreement".ljust(20) + "".join(f"{a:>7}" for a in agreements))
    for method, row in record["accuracy"].items():
        print(method.ljust(20) + "".join(f"{100 * row.get(a, float('nan')):7.1f}" for a in agreements))


if __name__ == "__main__":
    main()
