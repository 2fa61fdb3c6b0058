"""Which correction should be the default? All of them on the same rows, with the labelled head as limit.

Gaussian classes, uniform prior, unit noise: means of X_S ~ N(0, 1) in 2-D, of X_U ~ 1.5 N(0, 1) in 4-D;
f_S exact. Scored on 10 000 fresh rows of the same domain; mean accuracy (%) over the draws.

Run: python studies/compare_corrections.py [--draws 20] [--rows 100 300 1000 5000] [--classes 2 4]
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any

import numpy as np

import sfboost
from sfboost.adaptation import adapt
from sfboost_lab.baselines.corrections import adapt_corrected

METHODS: dict[str, dict[str, Any]] = {
    "naive soft": {"correction": "none"},
    "hard": {"correction": "none", "pseudo_labels": "hard"},
    "paper (Adam)": {"method": "paper"},
    "posthoc": {"correction": "posthoc"},
    "posthoc+EM": {"correction": "posthoc", "rounds": 15},
    "backward": {"by": "backward"},
    "forward": {"by": "forward"},
    "likelihood": {},
}


class Family:
    """K Gaussian classes with an exact stable predictor."""

    def __init__(self, seed: int, n_classes: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.stable = self.rng.normal(size=(n_classes, 2))
        self.unstable = 1.5 * self.rng.normal(size=(n_classes, 4))

    def draw(self, n: int) -> tuple[Any, Any, Any]:
        y = self.rng.integers(0, len(self.stable), n)
        x_stable = self.stable[y] + self.rng.normal(size=(n, 2))
        log = -0.5 * ((x_stable[:, None] - self.stable) ** 2).sum(axis=2)
        proba = np.exp(log - log.max(axis=1, keepdims=True))
        proba /= proba.sum(axis=1, keepdims=True)
        return y, proba, self.unstable[y] + self.rng.normal(size=(n, 4))


def one_draw(seed: int, n_classes: int, n_rows: int) -> dict[str, float]:
    family = Family(seed, n_classes)
    y, stable, X = family.draw(n_rows)
    truth, new_stable, new_X = family.draw(10_000)

    def accuracy(y: Any = None, **options: Any) -> float:
        if "by" in options:
            adaptation = adapt_corrected(stable, X, options["by"], refuse=False)
        else:
            settings = sfboost.Settings(**options)
            adaptation = adapt(stable, X, y=y, refuse=False, settings=settings)
        return 100 * float((adaptation.predict(new_stable, new_X) == truth).mean())

    scores = {"stable": 100 * float((new_stable.argmax(axis=1) == truth).mean())}
    scores |= {name: accuracy(**options) for name, options in METHODS.items()}
    return scores | {"labelled": accuracy(y=y)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--rows", type=int, nargs="+", default=[100, 300, 1000, 5000])
    parser.add_argument("--classes", type=int, nargs="+", default=[2, 4])
    options = parser.parse_args()
    warnings.simplefilter("ignore", sfboost.AdaptationWarning)
    names = ["stable", *METHODS, "labelled"]
    print("| K | n | " + " | ".join(names) + " |")
    print("|---" * (len(names) + 2) + "|")
    for n_classes in options.classes:
        for n_rows in options.rows:
            scores = [one_draw(seed, n_classes, n_rows) for seed in range(options.draws)]
            means = [f"{np.mean([score[name] for score in scores]):.1f}" for name in names]
            print(f"| {n_classes} | {n_rows} | " + " | ".join(means) + " |", flush=True)


if __name__ == "__main__":
    main()
