"""Batches of one hospital, day by day; on the sixth day the heart rate begins to mean the opposite."""

import numpy as np

from sfboost import StableFeatureBoosting
from sfboost.boosting import StreamingAdapter

rng = np.random.default_rng(0)


def rows(n_rows, slope):
    """A stable finding, and another whose slope is the hospital's own."""
    y = rng.integers(0, 2, n_rows)
    return np.column_stack([1.5 * y + rng.normal(size=n_rows), slope * y + rng.normal(size=n_rows)]), y


X, y = rows(1200, 1.0)
model = StableFeatureBoosting([0]).fit(X, y, sample_domain=np.repeat(["a", "b"], 600))
stream = StreamingAdapter(model.adapt(rows(1000, 2.0)[0], answer="checked"), half_life=5000)
for day in range(1, 11):
    event = stream.update(rows(300, 2.0 if day < 6 else -2.0)[0])
    if event.kind != "learned":
        print(f"day {day}: {event.kind}")
X_new, y_new = rows(2000, -2.0)
print(f"stable {model.score(X_new, y_new):.2f}, after ten days {stream.adapted.score(X_new, y_new):.2f}")
