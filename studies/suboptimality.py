"""Print the table on violated complementarity of docs/theory.md: python studies/suboptimality.py."""

import numpy as np

from sfboost_lab.theory import FiniteJoint, recover

# "Exactly one half" in tables made of decimals.
TIE = 1e-12


def nearly_complementary(share, rng):
    """A random complementary joint of two classes, mixed with a `share` of any other; f_S is informative."""
    while True:
        n_stable, n_unstable = rng.integers(2, 5), rng.integers(2, 9)
        base = FiniteJoint.from_conditionals(
            rng.dirichlet([2, 2]), rng.dirichlet(np.ones(n_stable), 2), rng.dirichlet(np.ones(n_unstable), 2)
        ).table
        noise = rng.dirichlet(np.ones(base.size)).reshape(base.shape)
        joint = FiniteJoint((1 - share) * base + share * noise)
        if joint.informativeness > 0.05:  # else nothing could be learned from it
            return joint


def suboptimality(joint):
    """How often the corrected and the naive classifier of X_U differ from the best one, by enumeration."""
    best = joint.unstable_posterior[:, 1] - 0.5 > TIE
    corrected = recover(joint.stable_posterior, joint.pair_mass).unstable[:, 1] - 0.5 > TIE
    naive = joint.pseudo_posterior[:, 1] - 0.5 > TIE
    return [float(joint.unstable_mass[guess != best].sum()) for guess in (corrected, naive)]


if __name__ == "__main__":
    rng = np.random.default_rng(0)
    for share in (0.02, 0.05, 0.1, 0.2, 0.5, 1.0):
        results = np.array([suboptimality(nearly_complementary(share, rng)) for _ in range(800)])
        no_worse = np.mean(results[:, 0] <= results[:, 1] + TIE)
        corrected, naive = results.mean(axis=0)
        print(f"share {share}: no worse {no_worse:.3f}, corrected {corrected:.3f}, naive {naive:.3f}")
