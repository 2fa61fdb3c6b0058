"""Measure the figures of docs/diagnostics.md.

    python studies/selected_features.py --out build/selection.jsonl [table ...]

Each row of a table is one line of the output file, so that a stopped run resumes.
"""

import argparse
import json
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from sfboost.columns import StableFeatureSelector
from sfboost.columns.invariance import TrainingDomains


@dataclass(frozen=True)
class Row:
    """One row of a table: `draw` takes a generator and returns what happened, by name."""

    table: str
    name: str
    draws: int
    draw: callable

    def measure(self):
        """Share of draws in which each thing happened."""
        found = [self.draw(np.random.default_rng(1000 + seed)) for seed in range(self.draws)]
        return {key: float(np.mean([outcome[key] for outcome in found])) for key in found[0]}


def judged(make, columns=(0,)):
    """Whether a set of columns is called changed, and stable, at level .05 and tolerance .1."""

    def draw(rng):
        X, y, domain = make(rng)
        result = TrainingDomains.of(X, y, domain).measure(columns)
        return {"changed": result.p_change <= 0.05, "stable": result.p_drift <= 0.05}

    return draw


def logistic_column(rng, n, shift):
    domain = np.repeat([0, 1], n)
    x = rng.standard_normal(2 * n) + shift * domain
    return x[:, None], (rng.random(2 * n) < 1 / (1 + np.exp(-x))).astype(int), domain


def weak_effects(rng, n, n_columns):
    """Effects of Y that are the same in two domains, each of .4 standard deviations."""
    domain, y = np.repeat([0, 1], n), rng.integers(0, 2, 2 * n)
    return 0.4 * y[:, None] + rng.standard_normal((2 * n, n_columns)), y, domain


def drifting_column(rng, n):
    """A drift of exactly the tolerance, in the least favourable place."""
    domain = np.repeat([0, 1], n)
    y = (rng.random(2 * n) < np.where(domain, 0.55, 0.45)).astype(int)
    return rng.standard_normal((2 * n, 1)), y, domain


def six_columns(rng):
    """Three columns without drift and three with a drift of the tolerance: any mistake among them."""
    domain, y = np.repeat([0, 1], 1200), rng.integers(0, 2, 2400)
    columns = [np.where(rng.random(2400) < 0.7, y, 1 - y) for _ in range(3)]
    columns += [np.where(rng.random(2400) < np.where(domain, 0.6, 0.7), y, 1 - y) for _ in range(3)]
    fitted = StableFeatureSelector().fit(np.column_stack(columns).astype(float), y, domain)
    verdicts = [column.verdict for column in fitted.selection_.columns]
    return {
        "stable called unstable": "unstable" in verdicts[:3],
        "drifting called stable": "stable" in verdicts[3:],
    }


def recovered(make, truth, unstable, **options):
    """Exactly the truth, a part of it, the noise as well, an unstable column, or nothing."""

    def draw(rng):
        found = set(np.flatnonzero(StableFeatureSelector(**options).fit(*make(rng)).support_))
        return {
            "exact": found == truth,
            "part": bool(found) and found < truth,
            "with noise": bool(found - truth - unstable),
            "unstable": bool(found & unstable),
            "nothing": not found,
        }

    return draw


def all_rows():
    """Every row of the page, table by table."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "columns"))
    import conftest as families

    for shift in (0.0, 1.0):
        for n in (30, 150, 1000, 5000):
            make = partial(logistic_column, n=n, shift=shift)
            yield Row("size", f"shift {shift:g}, rows {n}", 300, judged(make))
    for size, n, draws in (
        (3, 300, 150),
        (3, 1000, 150),
        (3, 4000, 150),
        (6, 450, 150),
        (12, 450, 150),
        (12, 1300, 100),
        (20, 1000, 60),
    ):
        # Noise says nothing of Y in any domain: it is stable, if not informative.
        make = partial(families.gaussian_effects, n=n, n_classes=2, n_domains=2, noise=max(1, size - 3))
        columns = (0, 1, 2, *range(6, 3 + size))
        yield Row("sets", f"{size} columns, rows {n}", draws, judged(make, columns))
    for size, n, draws in ((6, 450, 150), (12, 450, 150), (20, 1000, 60)):
        make = partial(weak_effects, n=n, n_columns=size)
        yield Row("sets", f"{size} weak columns, rows {n}", draws, judged(make, tuple(range(size))))
    for n in (300, 1000, 3000):
        yield Row("boundary", f"drift .1, rows {n}", 500, judged(partial(drifting_column, n=n)))
    for drift in (0.0, 0.02, 0.05, 0.08, 0.10, 0.15):
        make = partial(families.anticausal_coins, n=1000, agreements=(0.7 - drift, 0.7))
        yield Row("power", f"drift {drift:g}", 300, judged(make, (1,)))
    yield Row("family-wise", "six columns, rows 1200", 200, six_columns)
    for n in (100, 300, 1024):
        yield Row("coins", f"AC, rows {n}", 100, recovered(partial(families.anticausal_coins, n=n), {0}, {1}))
    yield Row("coins", "CE-DD, rows 1024", 100, recovered(families.cause_effect_coins, {0}, {1}))
    for n_classes, draws, sizes in ((2, 20, (300, 1000, 3000)), (4, 10, (1000, 3000))):
        for n_domains in (2, 4):
            for n in sizes:
                make = partial(families.gaussian_effects, n=n, n_classes=n_classes, n_domains=n_domains)
                name = f"K = {n_classes}, {n_domains} domains, rows {n}"
                yield Row("gaussian", name, draws, recovered(make, {0, 1, 2}, {3, 4, 5}))
    make = partial(families.gaussian_effects, n=25, n_classes=2, n_domains=2)
    yield Row("gaussian", "two tiny domains, rows 25", 60, recovered(make, {0, 1, 2}, {3, 4, 5}))
    for n in (500, 1500, 4000):
        make = partial(families.shifting_causes, n=n)
        yield Row("company", f"causes, rows {n}", 20, recovered(make, {0, 1}, {2}))
    for n in (1500, 6000):
        yield Row("company", f"spouse, rows {n}", 15, recovered(partial(families.spouse, n=n), {0, 1}, {2}))
    make = partial(
        families.gaussian_effects, n=2500, n_classes=2, n_domains=2, priors=[[0.3, 0.7], [0.7, 0.3]]
    )
    drawn = recovered(make, {0, 1, 2}, {3, 4, 5}, kind="likelihood")
    yield Row("company", "label shift, rows 2500", 20, drawn)


def main():
    style = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=style)
    parser.add_argument("tables", nargs="*", help="all of them if none is named")
    parser.add_argument("--out", type=Path, default=Path("build/selection.jsonl"))
    arguments = parser.parse_args()
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    lines = arguments.out.read_text().splitlines() if arguments.out.exists() else []
    done = {(record["table"], record["name"]): record for record in map(json.loads, lines)}
    with arguments.out.open("a") as file:
        for row in all_rows():
            if arguments.tables and row.table not in arguments.tables:
                continue
            if (row.table, row.name) not in done:
                record = {"table": row.table, "name": row.name, "draws": row.draws, "shares": row.measure()}
                done[row.table, row.name] = record
                file.write(json.dumps(record) + "\n")
                file.flush()
            shares = {key: round(share, 3) for key, share in done[row.table, row.name]["shares"].items()}
            print(f"{row.table:<12} {row.name}, {row.draws} draws: {shares}", flush=True)


if __name__ == "__main__":
    main()
