"""Whether accuracy foretold without labels is too low or too high where own domains are few.

    python studies/study_few_domains.py [--tables amazon_reviews] [--data-dir DIR]

The four longest domains of each table, at most 2000 rows of each. Every two and every three of them are own
domains in turn, the others are new; default learners. Told are the mean of the truth less what was foretold
of the answer, the mean absolute error, and how often the truth is in the 90 % interval. Labels of the new
domain are used for the truth alone. Two or three minutes of one core.
"""

import argparse
import itertools
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

from sfboost import StableFeatureBoosting
from sfboost.boosting import performance_without_labels
from sfboost_lab.datasets import load

TABLES = ("amazon_reviews", "heart_disease", "impact", "tv16", "gusto")
MOST_ROWS = 2000
# Nobody knows which words are stable: as in the tutorial.
WORDS = ([f"word_{i}" for i in range(100)], [f"word_{i}" for i in range(100, 140)])


def domains_of(table, data_dir):
    """Rows and labels of the four longest domains, and the stable and the unstable columns."""
    data = load(table, data_dir=data_dir)
    longest = sorted(data.domain_names, key=lambda name: -len(data.domain(name).y))[:4]
    rng, parts = np.random.default_rng(0), {}
    for name in longest:
        X, y = pd.DataFrame(data.domain(name).X), data.domain(name).y
        if table == "amazon_reviews":
            X.columns = [f"word_{i}" for i in range(X.shape[1])]
        some = np.sort(rng.permutation(len(y))[:MOST_ROWS])
        parts[name] = X.iloc[some].reset_index(drop=True), y[some]
    return parts, WORDS if table == "amazon_reviews" else (data.stable_features, data.unstable_features)


def errors(table, n_own, data_dir):
    """Truth less foretold, and whether it is in the interval: every new domain, every choice of own ones."""
    parts, columns = domains_of(table, data_dir)
    found = []
    for own in itertools.combinations(parts, n_own):
        X = pd.concat([parts[name][0] for name in own], ignore_index=True)
        y = np.concatenate([parts[name][1] for name in own])
        domain = np.repeat(own, [len(parts[name][1]) for name in own])
        model = StableFeatureBoosting(*map(list, columns)).fit(X, y, sample_domain=domain)
        for name in set(parts) - set(own):
            X_new, y_new = parts[name]
            adapted = model.adapt(X_new)
            if adapted.best is None:
                continue
            told, truth = performance_without_labels(adapted, X_new)["answer"], adapted.score(X_new, y_new)
            inside = told.lower["accuracy"] <= truth <= told.upper["accuracy"]
            found.append((truth - told.value["accuracy"], inside))
    return np.array(found, dtype=float)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=TABLES)
    parser.add_argument("--data-dir", type=Path)
    told = parser.parse_args()
    warnings.simplefilter("ignore")
    print(
        "| table | own domains | truth less foretold (points) | mean absolute error | inside |",
        "|---|---|---|---|---|",
        sep="\n",
    )
    for table in told.tables:
        for n_own in (2, 3):
            error, inside = errors(table, n_own, told.data_dir).T
            print(
                f"| {table} | {n_own} | {100 * error.mean():+.1f} | {100 * np.abs(error).mean():.1f} | "
                f"{inside.sum():.0f} of {len(inside)} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
