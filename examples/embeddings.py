"""Features of a frozen network: nobody knows which of them are stable, so all are, and directions adapt."""

import numpy as np

from sfboost import StableFeatureBoosting

rng = np.random.default_rng(0)
classes = rng.normal(size=(5, 64))  # where each class lies in the embedding
camera = rng.normal(size=(4, 5, 64))  # where each of four cameras moves it to


def pictures(n_rows, number):
    """Embeddings of pictures that one camera took."""
    y = rng.integers(0, 5, n_rows)
    return 0.3 * classes[y] + 0.2 * camera[number][y] + rng.normal(size=(n_rows, 64)), y


parts = [pictures(400, number) for number in range(3)]
X, y = (np.concatenate([part[i] for part in parts]) for i in (0, 1))
X_new, y_new = pictures(1500, 3)
model = StableFeatureBoosting(unstable_features="components")
model.fit(X, y, sample_domain=np.repeat(["one", "two", "three"], 400))
adapted = model.adapt(X_new)
before, after = model.score(X_new, y_new), adapted.score(X_new, y_new)
directions = adapted.adaptation.n_features
print(f"as trained {before:.2f}, along {directions} directions {after:.2f} ({adapted.decision_})")
