"""PACS features with every default: no column is stable, and own styles alone decide.

    python studies/learn_pacs.py --out learn_pacs.jsonl
    python studies/learn_pacs.py --out learn_pacs.jsonl --table
    python studies/learn_pacs.py --network --out learn_pacs_network.jsonl

One line a style, left out; styles that the file has are not run again. Pooled is one logistic regression,
tuned on left-out styles as ours is; pseudo-labels, T3A, Tent and SHOT adapt it, each with the setting that
was best on own styles left out; ACTIR is trained with the setting that was. With `--network` it is
`SFBClassifier` on the same features as a frozen network, which asks own styles whether components are to take
the place of what it has learned.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from torch import nn

from sfboost import StableFeatureBoosting
from sfboost.datasets.features import EfficientNetFeatures
from sfboost.torch import Plan, SFBClassifier
from sfboost_lab.baselines import ADAPTERS, TRAINERS
from sfboost_lab.baselines.contract import LabelledRows
from sfboost_lab.datasets import load
from sfboost_lab.datasets.picture_features import with_features
from sfboost_lab.experiments.origin import origin

STYLES = ("photo", "art_painting", "cartoon", "sketch")
#: What was found with labels of these styles in view, as tables call it.
ORACLE = {"answer": "answer (ORACLE)"}
#: Adapter → settings to choose among on own styles.
OTHERS: dict[str, list[dict[str, Any]]] = {
    "pl-last": [{"learning_rate": rate} for rate in (1e-4, 1e-3, 1e-2)],
    "t3a": [{"filter_size": n} for n in (5, 20, 100)],
    "tent": [{"learning_rate": rate} for rate in (1e-4, 1e-3, 1e-2)],
    "shot": [{"learning_rate": rate} for rate in (1e-4, 1e-3, 1e-2)],
}

#: Trainer, without adaptation → the same.
TRAINED: dict[str, list[dict[str, Any]]] = {
    "actir": [{"gradient_weight": weight} for weight in (0.1, 1.0, 10.0)],
}


def of_stable(model: Any, X: Any, y: Any) -> float:
    """Accuracy of f_S."""
    return float(np.mean(model.classes_[model.predict_stable_proba(X).argmax(axis=1)] == y))


def rows(most: int | None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features, classes and styles of all pictures, or of some of each style."""
    data = with_features(load("pacs", test=()), EfficientNetFeatures(160))
    steps = [1 if most is None else -(-len(domain) // most) for domain in data.domains]
    X = np.concatenate([d.X[::n] for d, n in zip(data.domains, steps, strict=True)])
    y = np.concatenate([d.y[::n] for d, n in zip(data.domains, steps, strict=True)])
    style = np.concatenate(
        [np.repeat(d.name, len(d.y[::n])) for d, n in zip(data.domains, steps, strict=True)]
    )
    return X.astype(np.float64), y, style


def others(X: np.ndarray, y: np.ndarray, style: np.ndarray, new: str) -> dict[str, float]:
    """Accuracies of the pooled classifier, of what adapts it and of other trainers, chosen on own styles."""

    def fit(own: np.ndarray, trainer: Any = None) -> Any:
        trainer = TRAINERS["pooled"]() if trainer is None else trainer
        return trainer.fit(LabelledRows(X[own], y[own], style[own]))

    def right(adapter: Any, predictor: Any, here: np.ndarray) -> np.ndarray:
        return adapter.adapt(predictor, X[here]).predict(X[here]) == y[here]

    own = style != new
    played = [(name, fit(own & (style != name))) for name in np.unique(style[own])]
    pooled, X_new, y_new = fit(own), X[~own], y[~own]
    found = {"pooled": float((pooled.predict(X_new) == y_new).mean())}
    for name, settings in OTHERS.items():
        makers = [ADAPTERS[name](**one) for one in settings]
        best = max(makers, key=lambda made: np.mean([right(made, p, style == s).mean() for s, p in played]))
        found[name] = float(right(best, pooled, ~own).mean())
    for name, settings in TRAINED.items():
        trainers, own_scores = [TRAINERS[name].preset("pacs", **one) for one in settings], []
        for trainer in trainers:
            left_out = [(fit(own & (style != s), trainer), style == s) for s, _ in played]
            own_scores.append(np.mean([(p.predict(X[here]) == y[here]).mean() for p, here in left_out]))
        best = fit(own, trainers[int(np.argmax(own_scores))])
        found[name] = float((best.predict(X_new) == y_new).mean())
    return found


def run(data: tuple[np.ndarray, np.ndarray, np.ndarray], new: str) -> dict[str, Any]:
    """Everything about one style as the new one."""
    X, y, style = data
    own = style != new
    began = time.process_time()
    model = StableFeatureBoosting(unstable_features="components")
    model.fit(X[own], y[own], sample_domain=style[own])
    adapted = model.adapt(X[~own])
    scores = {"stable": of_stable(model, X[~own], y[~own]), "answer": adapted.score(X[~own], y[~own])}
    seconds = time.process_time() - began
    played = model.components_
    return {
        "style": new,
        "rows": len(X),
        **origin(),
        "seconds": round(seconds, 1),
        "penalty": model.regression_.C,
        "decision": adapted.decision_,
        "components": played.chosen,
        "own_accuracy": np.round(played.accuracy, 4).tolist(),
        "own_log_loss": np.round(played.log_loss, 4).tolist(),
        "scores": {name: round(float(s), 4) for name, s in {**scores, **others(X, y, style, new)}.items()},
    }


def run_network(data: tuple[np.ndarray, np.ndarray, np.ndarray], new: str) -> dict[str, Any]:
    """The same style with a frozen network."""
    X, y, style = data
    X, own = X.astype(np.float32), style != new
    began = time.process_time()
    model = SFBClassifier(nn.Identity(), plan=Plan(freeze_trunk=True))
    model.fit(X[own], y[own], sample_domain=style[own])
    adapted = model.adapt(X[~own])
    scores = {"stable": of_stable(model, X[~own], y[~own]), "answer": adapted.score(X[~own], y[~own])}
    return {
        "style": new,
        "rows": len(X),
        **origin(),
        "seconds": round(time.process_time() - began, 1),
        "decision": adapted.decision_,
        "components": None if model.components_ is None else model.components_.chosen,
        "preference": None if model.preference_ is None else model.preference_.reason,
        "shown_stable": model.verification_.stable,
        "scores": {name: round(float(score), 4) for name, score in scores.items()},
    }


def table(lines: list[dict[str, Any]]) -> str:
    """Accuracy in % by style."""
    names = [line["style"] for line in lines]
    made = ["| | " + " | ".join([*names, "mean"]) + " |", "|---" * (len(names) + 2) + "|"]
    for name in lines[0]["scores"]:
        values = [100 * line["scores"][name] for line in lines]
        told = ORACLE.get(name, name)
        made.append(f"| {told} | " + " | ".join(f"{v:.1f}" for v in [*values, float(np.mean(values))]) + " |")
    made += [
        "",
        "ORACLE: that directions of the new rows help at all was found on test accuracies of PACS.",
        "",
    ]
    for line in lines:
        made.append(
            f"{line['style']}: {line['decision']} along {line['components']} components, {line['seconds']} s"
        )
    return "\n".join(made)


def main() -> None:
    """Run what is missing, then print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--most", type=int, help="pictures of each style at most; by default all")
    parser.add_argument("--style", nargs="+", choices=STYLES, default=STYLES)
    parser.add_argument("--network", action="store_true", help="SFBClassifier on a frozen network")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--table", action="store_true", help="run nothing")
    args = parser.parse_args()
    lines = [json.loads(line) for line in args.out.read_text().splitlines()] if args.out.exists() else []
    done = {line["style"] for line in lines}
    todo = [] if args.table else [style for style in args.style if style not in done]
    data = rows(args.most) if todo else None
    for style in todo:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            lines.append((run_network if args.network else run)(data, style))  # type: ignore[arg-type]
        with args.out.open("a") as file:
            file.write(json.dumps(lines[-1]) + "\n")
    print(table(sorted(lines, key=lambda line: STYLES.index(line["style"]))))


if __name__ == "__main__":
    main()
