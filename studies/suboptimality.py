"""Print the table on violated complementarity of docs/theory.md: python studies/suboptimality.py."""

import numpy as np

from sfboost_lab.theory import nearly_complementary, suboptimality

if __name__ == "__main__":
    rng = np.random.default_rng(0)
    for share in (0.02, 0.05, 0.1, 0.2, 0.5, 1.0):
        results = [suboptimality(nearly_complementary(share, rng)) for _ in range(800)]
        no_worse = np.mean([r.corrected <= r.naive + 1e-12 for r in results])
        corrected, naive = np.mean([(r.corrected, r.naive) for r in results], axis=0)
        print(f"share {share}: no worse {no_worse:.3f}, corrected {corrected:.3f}, naive {naive:.3f}")
