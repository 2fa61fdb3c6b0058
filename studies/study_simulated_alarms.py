"""How often the test of a changed meaning fires in simulated domains where nothing changed beyond the usual.

    python studies/study_simulated_alarms.py [--own 2 3 5 10 20] [--draws 400] [--spread 0.25]

Every domain has its own distribution of X_S and its own head: class means of U that differ from domain to
domain by `--spread` of their size (random effects). The new domain is one more draw. "mirrored" is the same
domain with U turned round: what the test would see. P(Y | X_S) is the same everywhere, U also depends on X_S
within a class, so complementarity fails, and about as much in every domain.
"""

import argparse

import numpy as np
from scipy import stats
from sklearn.linear_model import LogisticRegression

from sfboost.shift import DomainData, Reference, change_in

N_STABLE, N_UNSTABLE = 4, 4
LEVEL = 0.05
# Own domains play the new one in at most so many groups.
MOST_GROUPS = 8


class World:
    """What all domains have in common: P(Y | X_S), the mean head, the leak."""

    def __init__(self, rng, spread):
        self.rng, self.spread = rng, spread
        self.cause = rng.normal(size=N_STABLE)
        self.cause *= 1.5 / np.linalg.norm(self.cause)
        self.head = rng.choice([-1.0, 1.0], N_UNSTABLE) * rng.uniform(0.1, 0.6, N_UNSTABLE)
        self.leak = rng.normal(size=(N_STABLE, N_UNSTABLE)) * 0.2

    def domain(self, n_rows):
        """Rows (S, U, y) of one more domain."""
        rng = self.rng
        S = rng.normal(size=(n_rows, N_STABLE)) * rng.uniform(0.8, 1.2, N_STABLE)
        S = S + 0.4 * rng.normal(size=N_STABLE)
        y = (rng.random(n_rows) < 1.0 / (1.0 + np.exp(-S @ self.cause))).astype(int)
        head = self.head * (1.0 + self.spread * rng.normal(size=N_UNSTABLE))
        shift = 0.3 * rng.normal(size=N_UNSTABLE)
        U = (2 * y - 1)[:, None] * head + S @ self.leak + shift + rng.normal(size=(n_rows, N_UNSTABLE))
        return S, U, y


def predictors(domains):
    """f_S and the pooled classifier of some domains, as a function from rows to a view of them."""
    S, U, y = (np.concatenate([domain[k] for domain in domains]) for k in range(3))
    stable, pooled = LogisticRegression().fit(S, y), LogisticRegression().fit(np.hstack([S, U]), y)

    def view(S, U):
        return DomainData.of(stable.predict_proba(S), U, pooled.predict_proba(np.hstack([S, U])), S)

    return view


def p_values(world, n_own, n_rows):
    """P-values of a new domain as it comes, and mirrored."""
    own = [world.domain(n_rows) for _ in range(n_own)]
    views = {}
    for first in range(min(MOST_GROUPS, n_own)):
        out = range(first, n_own, MOST_GROUPS)
        others = predictors([own[k] for k in range(n_own) if k not in out])
        views |= {k: others(own[k][0], own[k][1]) for k in out}
    reference = Reference.learn([views[k] for k in range(n_own)], [d[2] for d in own], list(range(n_own)))
    view, (S, U, _) = predictors(own), world.domain(n_rows)
    return [change_in(reference, view(S, rows)).p_value for rows in (U, 2 * U.mean(axis=0) - U)]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--own", nargs="+", type=int, default=[2, 3, 5, 10, 20], help="Own domains.")
    parser.add_argument("--draws", type=int, default=400)
    parser.add_argument("--rows", type=int, default=500, help="Rows of a domain.")
    parser.add_argument("--spread", type=float, default=0.25, help="Of the heads, relative to their mean.")
    told = parser.parse_args()
    print(f"spread {told.spread:g}, {told.rows} rows a domain, {told.draws} draws, level {LEVEL:g}")
    for n_own in told.own:
        worlds = (World(np.random.default_rng([k, n_own]), told.spread) for k in range(told.draws))
        found = np.array([p_values(world, n_own, told.rows) for world in worlds]) < LEVEL
        alarms, mirrored = found.sum(axis=0)
        low, high = stats.binomtest(int(alarms), told.draws).proportion_ci(0.95, "exact")
        print(
            f"{n_own:3} own domains: alarms {100 * alarms / told.draws:4.1f} % "
            f"({100 * low:.1f} to {100 * high:.1f}), mirrored {100 * mirrored / told.draws:5.1f} %",
            flush=True,
        )


if __name__ == "__main__":
    main()
