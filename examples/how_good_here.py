"""How good each answer is in the new hospital, without a label there."""

import numpy as np

from sfboost import StableFeatureBoosting
from sfboost.boosting import performance_without_labels

rng = np.random.default_rng(0)


def hospital(n_rows, agreement):
    """A stable finding that is right in 75 %, and another that agrees with the label as the hospital says."""
    y = rng.integers(0, 2, n_rows)
    right = rng.random((n_rows, 2)) < [0.75, agreement]
    return np.where(right, y[:, None], 1 - y[:, None]).astype(float), y


parts = [hospital(600, agreement) for agreement in (0.95, 0.8, 0.7)]
X, y = (np.concatenate([part[i] for part in parts]) for i in (0, 1))
X_new, y_new = hospital(3000, 0.1)
model = StableFeatureBoosting([0], [1]).fit(X, y, sample_domain=np.repeat(["a", "b", "c"], 600))
found = performance_without_labels(model.adapt(X_new), X_new)
for name, performance in found.items():
    print(f"{name}: accuracy about {performance.value['accuracy']:.2f}")
