"""Nothing changed but how frequent the classes are: one function."""

import numpy as np

import sfboost

rng = np.random.default_rng(0)
y = (rng.random(2000) < 0.8).astype(int)  # 50 % in training
proba = np.where(rng.random(2000) < 0.85, y, 1 - y) * 0.7 + 0.15
found = sfboost.label_shift(proba, source_prior=[0.5, 0.5])
low, high = found.interval(0.95)
print(f"share of the second class {found.prior[1]:.2f}, between {low[1]:.2f} and {high[1]:.2f}")
