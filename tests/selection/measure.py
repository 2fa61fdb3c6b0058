"""Print the tables of docs/selecting-features.md: python tests/selection/measure.py [table ...]."""

import sys

import numpy as np

from sfboost.selection import StableFeatureSelector
from sfboost.selection.basis import normal_scores
from sfboost.selection.invariance import TrainingDomains, measure_invariance


def verdict_of(X, y, domain, columns=(0,)):
    scores = np.column_stack([normal_scores(column) for column in X.T])
    result = measure_invariance(TrainingDomains.of(scores, y, domain), columns, "posterior", 0.1, 0.05)
    return result.p_change <= 0.05, result.p_drift <= 0.05


def size(rng, families):
    for shift in (0.0, 1.0):
        for n in (30, 150, 1000, 5000):
            drawn = []
            for _ in range(300):
                domain = np.repeat([0, 1], n)
                x = rng.standard_normal(2 * n) + shift * domain
                y = (rng.random(2 * n) < 1 / (1 + np.exp(-x))).astype(int)
                drawn.append(verdict_of(x[:, None], y, domain)[0])
            print(f"shift {shift} rows {n}: changed {np.mean(drawn):.3f}", flush=True)


def sets(rng, families):
    for n in (300, 1000, 4000):
        drawn = [verdict_of(*families.gaussian_effects(rng, n, 2, 2), (0, 1, 2))[0] for _ in range(150)]
        print(f"set of three, rows {n}: changed {np.mean(drawn):.3f}", flush=True)


def boundary(rng, families):
    for n in (300, 1000, 3000):
        drawn = []
        for _ in range(500):
            domain = np.repeat([0, 1], n)
            y = (rng.random(2 * n) < np.where(domain, 0.55, 0.45)).astype(int)
            drawn.append(verdict_of(rng.standard_normal((2 * n, 1)), y, domain)[1])
        print(f"drift .1, rows {n}: stable {np.mean(drawn):.3f}", flush=True)


def power(rng, families):
    for drift in (0.0, 0.02, 0.05, 0.08, 0.10, 0.15):
        drawn = [
            verdict_of(*families.anticausal_coins(rng, 1000, (0.7 - drift, 0.7)), (1,)) for _ in range(300)
        ]
        changed, stable = np.mean(drawn, axis=0)
        print(f"drift {drift}: changed {changed:.2f} stable {stable:.2f}", flush=True)


def family_wise(rng, families):
    alarms, misses = [], []
    for _ in range(200):
        domain, y = np.repeat([0, 1], 1200), rng.integers(0, 2, 2400)
        columns = [np.where(rng.random(2400) < 0.7, y, 1 - y) for _ in range(3)]
        columns += [np.where(rng.random(2400) < np.where(domain, 0.6, 0.7), y, 1 - y) for _ in range(3)]
        fitted = StableFeatureSelector().fit(np.column_stack(columns).astype(float), y, domain)
        verdicts = [column.verdict for column in fitted.selection_.columns]
        alarms.append("unstable" in verdicts[:3])
        misses.append("stable" in verdicts[3:])
    print(f"stable called unstable {np.mean(alarms):.3f}, drifting called stable {np.mean(misses):.3f}")


def recover(name, make, truth, unstable, draws, **options):
    """Shares of draws: exactly the truth, a part of it, the noise as well, an unstable column, nothing."""
    found = []
    for seed in range(draws):
        fitted = StableFeatureSelector(**options).fit(*make(np.random.default_rng(1000 + seed)))
        found.append(set(np.flatnonzero(fitted.support_)))
    shares = {
        "exact": [f == truth for f in found],
        "part": [bool(f) and f < truth for f in found],
        "with noise": [bool(f - truth - unstable) for f in found],
        "unstable": [bool(f & unstable) for f in found],
        "nothing": [not f for f in found],
    }
    print(
        f"{name}, {draws} draws:", {key: round(float(np.mean(v)), 2) for key, v in shares.items()}, flush=True
    )


def coins(rng, families):
    for n in (100, 300, 1024):
        recover(f"AC rows {n}", lambda r, n=n: families.anticausal_coins(r, n), {0}, {1}, 100)
    recover("CE-DD rows 1024", families.cause_effect_coins, {0}, {1}, 100)


def gaussian(rng, families):
    for n_classes, draws, sizes in ((2, 20, (300, 1000, 3000)), (4, 10, (1000, 3000))):
        for n_domains in (2, 4):
            for n in sizes:
                recover(
                    f"Gaussian K={n_classes} domains={n_domains} rows {n}",
                    lambda r, a=(n, n_classes, n_domains): families.gaussian_effects(r, *a),
                    {0, 1, 2},
                    {3, 4, 5},
                    draws,
                )
    recover("tiny, rows 25", lambda r: families.gaussian_effects(r, 25, 2, 2), {0, 1, 2}, {3, 4, 5}, 60)


def company(rng, families):
    for n in (500, 1500, 4000):
        recover(f"causes rows {n}", lambda r, n=n: families.shifting_causes(r, n), {0, 1}, {2}, 20)
    for n in (1500, 6000):
        recover(f"spouse rows {n}", lambda r, n=n: families.spouse(r, n), {0, 1}, {2}, 15)
    priors = [[0.3, 0.7], [0.7, 0.3]]
    recover(
        "label shift rows 2500",
        lambda r: families.gaussian_effects(r, 2500, 2, 2, priors=priors),
        {0, 1, 2},
        {3, 4, 5},
        20,
        kind="likelihood",
    )


TABLES = (size, sets, boundary, power, family_wise, coins, gaussian, company)

if __name__ == "__main__":
    import conftest

    for table in TABLES:
        if len(sys.argv) == 1 or table.__name__ in sys.argv[1:]:
            print(f"-- {table.__name__}")
            table(np.random.default_rng(0), conftest)
