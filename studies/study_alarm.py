"""False alarms of the guard where complementarity is exact, for several learners of f_S.

    python studies/study_alarm.py --draws 40

Simulated tables (balanced, and with 5 % positives) and the coloured digits of `sfboost demo` with its forest.
Counts of draws in which the linearity test rejects at .05 and at .001, and in which the alarm is raised; "at
its word" is the test that takes f_S to be calibrated. The figures of docs/diagnostics.md come from here.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier

from sfboost import StableFeatureBoosting
from sfboost.boosting.diagnosing import new_rows
from sfboost.diagnostics import NewRows, new_domain_alarm
from sfboost.diagnostics.new_domain import linearity_test
from sfboost_lab.datasets import load

LEARNERS = {
    "tree": DecisionTreeClassifier(max_depth=5, min_samples_leaf=20, random_state=0),
    "forest": RandomForestClassifier(20, min_samples_leaf=4, random_state=0),
    "boosting": HistGradientBoostingClassifier(max_iter=20, random_state=0),
    "logistic": None,
}
AGREEMENTS = (1.0, 0.9, 0.1, 0.0)


def draw(n: int, rng: np.random.Generator, base: float, slope: float) -> tuple[Any, Any]:
    """Four stable columns whose mean shifts, and one unstable column that depends on the label alone."""
    X = rng.normal(0.3 * rng.normal(), 1.0, size=(n, 4))
    log_odds = 1.2 * X[:, 0] + np.sin(2 * X[:, 1]) + 0.4 * X[:, 0] * X[:, 2] + base
    y = (rng.random(n) < expit(log_odds)).astype(int)
    return np.column_stack([X, slope * (2 * y - 1) + rng.normal(size=n)]), y


def simulated(learner: Any, base: float, draws: int) -> Iterator[NewRows]:
    """New rows whose X_U means the opposite of what it meant in two training domains of 1500 rows."""
    for seed in range(draws):
        rng = np.random.default_rng(seed)
        parts = [draw(1500, rng, base, slope) for slope in (1.0, 0.5)]
        model = StableFeatureBoosting([0, 1, 2, 3], stable=learner)
        model.fit(
            np.vstack([X for X, _ in parts]), np.concatenate([y for _, y in parts]), np.repeat([0, 1], 1500)
        )
        yield new_rows(model, draw(2000, rng, base, -1.0)[0])


def digits(draws: int) -> Iterator[NewRows]:
    """The demo's forest on its new domains: the colour depends on the label alone."""
    for seed in range(draws):
        data = load("colored_digits", view="table", random_state=seed, n_validate=0, n_test=797)
        forest = RandomForestClassifier(60, min_samples_leaf=4, random_state=seed)
        model = StableFeatureBoosting(data.stable_features, data.unstable_features, stable=forest)
        X, y, domain = data.pooled("train")
        model.fit(X, y, sample_domain=domain)
        for name in data.test:
            if data.domain(name).agreement in AGREEMENTS:
                yield new_rows(model, data.xy(name)[0])


def count(title: str, draws: Iterator[NewRows]) -> None:
    """Print one line: draws, rejections at .05 and .001, alarms, and the same at f_S's word."""
    found = []
    for rows in draws:
        line = []
        for version in (rows, replace(rows, recalibration=None)):
            outcome = linearity_test(version)
            p_value = 1.0 if outcome is None else outcome[0].p_value
            line += [p_value < 0.05, p_value < 0.001, new_domain_alarm(version) is not None]
        found.append(line)
    cells = "".join(f"{number:>9}" for number in np.sum(found, axis=0))
    print(f"{title:<32}{len(found):>6}{cells}", flush=True)


def main() -> None:
    style = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=style)
    parser.add_argument("--draws", type=int, default=40)
    arguments = parser.parse_args()
    print(f"{'':<32} draws    p<.05   p<.001    alarm | at its word: the same three")
    for kind, base in (("balanced", 0.0), ("5 % positive", -3.7)):
        for name, learner in LEARNERS.items():
            count(f"{name}, {kind}", simulated(learner, base, arguments.draws))
    count("demo's forest", digits(arguments.draws))


if __name__ == "__main__":
    main()
