"""Print the table on violated complementarity of docs/theory.md: python studies/suboptimality.py."""

import numpy as np

from sfboost.theory import FiniteJoint, suboptimality


def violated(rng, share):
    """A complementary joint mixed with an arbitrary one, f_S informative."""
    while True:
        n_stable, n_unstable = rng.integers(2, 5), rng.integers(2, 9)
        base = FiniteJoint.from_conditionals(
            rng.dirichlet([2, 2]), rng.dirichlet(np.ones(n_stable), 2), rng.dirichlet(np.ones(n_unstable), 2)
        ).table
        noise = rng.dirichlet(np.ones(base.size)).reshape(base.shape)
        joint = FiniteJoint((1 - share) * base + share * noise)
        if joint.informativeness > 0.05:
            return joint


if __name__ == "__main__":
    rng = np.random.default_rng(0)
    for share in (0.02, 0.05, 0.1, 0.2, 0.5, 1.0):
        results = [suboptimality(violated(rng, share)) for _ in range(800)]
        no_worse = np.mean([r.corrected <= r.naive + 1e-12 for r in results])
        corrected, naive = np.mean([(r.corrected, r.naive) for r in results], axis=0)
        print(f"share {share}: no worse {no_worse:.3f}, corrected {corrected:.3f}, naive {naive:.3f}")
