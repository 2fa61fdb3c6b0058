"""Four hospitals: three with labels; in the fourth the heart rate says the opposite, and there are none."""

import numpy as np

from sfboost import StableFeatureBoosting

rng = np.random.default_rng(0)


def hospital(n_rows, heart):
    """Age is stable; what the heart rate says depends on the hospital."""
    sick = rng.integers(0, 2, n_rows)
    age = 55 + 8 * sick + rng.normal(0, 8, n_rows)
    rate = 140 + 15 * heart * (2 * sick - 1) + rng.normal(0, 15, n_rows)
    return np.column_stack([age, rate]), sick


parts = [hospital(600, heart) for heart in (1.0, 0.7, 0.9)]
X, y = (np.concatenate([part[i] for part in parts]) for i in (0, 1))
X_new, y_new = hospital(1500, -1.0)

model = StableFeatureBoosting(stable_features=[0], unstable_features=[1])
model.fit(X, y, sample_domain=np.repeat(["north", "south", "east"], 600))
adapted = model.adapt(X_new)  # y_new is for the scores alone
print(
    f"as trained {model.score(X_new, y_new):.2f}, here {adapted.score(X_new, y_new):.2f} ({adapted.decision_})"
)
