"""A new domain that lies in many files: some rows are adapted to, all are predicted block by block."""

import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

from sfboost import StableFeatureBoosting
from sfboost.frames.blocks import over_blocks, sample_rows

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
        new, buys = shop(20_000, -2.0)
        new.to_parquet(Path(folder) / f"day-{number}.parquet")
        truth.append(buys)
    sample = sample_rows(folder)
    adapted = model.adapt(sample.table)

    def predict(batches):
        """Ray Data may do this elsewhere: over_blocks(..., engine="ray")."""
        for batch in batches:
            answer = adapted.predict(pa.Table.from_batches([batch]))
            yield pa.record_batch([pa.array(answer)], ["buys"])

    answers = pa.Table.from_batches(over_blocks(predict, folder))["buys"].to_numpy()
right = (answers == np.concatenate(truth)).mean()
print(f"{sample.table.num_rows} of {sample.n_rows} rows in 10 files decide: {adapted.decision_}; ", end="")
print(f"{right:.2f} of all are right")
