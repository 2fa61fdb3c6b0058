"""A new domain that lies in many files: read block by block, in constant memory."""

import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from sfboost.streaming import adapt_stream

from sfboost import StableFeatureBoosting

rng = np.random.default_rng(0)


def shop(n_rows, slope):
    """What a customer is stays; what a visit means is the shop's own."""
    buys = rng.integers(0, 2, n_rows)
    age = 40 + 10 * buys + rng.normal(0, 10, n_rows)
    visits = slope * buys + rng.normal(size=n_rows)
    return pd.DataFrame({"age": age, "visits": visits}), buys


parts = [shop(800, slope) for slope in (1.0, 2.0, 1.5)]
X, y = pd.concat([part[0] for part in parts], ignore_index=True), np.concatenate([part[1] for part in parts])
model = StableFeatureBoosting(["age"]).fit(X, y, sample_domain=np.repeat(["north", "south", "east"], 800))
with tempfile.TemporaryDirectory() as folder:
    truth = []
    for number in range(10):
        new, buys = shop(2000, -2.0)
        new.to_parquet(Path(folder) / f"day-{number}.parquet")
        truth.append((new, buys))
    streamed = adapt_stream(model, folder)
new, buys = truth[-1]
print(f"{streamed.n_rows} rows in 10 files: stable {model.score(new, buys):.2f}", end=", ")
print(f"here {streamed.adapted.score(new, buys):.2f} ({streamed.adapted.decision_})")
