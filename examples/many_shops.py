"""Two hundred new shops at once: each gets an answer of its own, and false discoveries are held over all."""

from collections import Counter

import numpy as np

from sfboost import StableFeatureBoosting

rng = np.random.default_rng(0)


def shop(n_rows, agreement):
    """Does a customer come back? How often he came is stable; a coupon agrees as the shop says."""
    y = rng.integers(0, 2, n_rows)
    visits = y + rng.normal(size=n_rows)
    coupon = np.where(rng.random(n_rows) < agreement, y, 1 - y)
    return np.column_stack([visits, coupon]).astype(float), y


def shops(agreements, n_rows):
    """Rows of several shops, their labels, and whose they are."""
    parts = [shop(n_rows, agreement) for agreement in agreements]
    X, y = (np.concatenate([part[i] for part in parts]) for i in (0, 1))
    return X, y, np.repeat(np.arange(len(agreements)), n_rows)


X, y, own = shops([0.85, 0.8, 0.75, 0.8, 0.85], 500)
turned = np.arange(200) < 20  # twenty of the new ones hand coupons to those who stayed away
X_new, y_new, new = shops(np.where(turned, 0.15, 0.8), 150)
model = StableFeatureBoosting([0], [1]).fit(X, y, sample_domain=own)
adapted = model.adapt(X_new, sample_domain=new)
seen = {row.name for row in adapted.overview() if row.verdict == "changed"}
answer = adapted.predict(X_new, new) == y_new
print(dict(Counter(row.decision for row in adapted.overview())))
print(f"changed: {len(seen)} shops, {len(seen & set(np.flatnonzero(turned).tolist()))} of the 20 that did")
print(f"as trained {model.score(X_new, y_new):.2f}, here {answer.mean():.2f}; ", end="")
print(f"in the turned shops {model.score(X_new[turned[new]], y_new[turned[new]]):.2f} and ", end="")
print(f"{answer[turned[new]].mean():.2f}")
