"""Four hospitals with known truth: in the new one the heart rate says the opposite, the ward the same."""

import numpy as np
import pandas as pd

ROLES = ("--target", "sick", "--domain", "hospital", "--stable", "age,sex,chol", "--id", "patient")


def draw(name, n_rows, rng, heart, ward=0.3):
    age, chol = rng.normal(55.0, 10.0, n_rows), rng.normal(220.0, 40.0, n_rows)
    sex = rng.choice(["f", "m"], n_rows)
    odds = 1.5 * (age - 55.0) / 10.0 + 1.2 * (chol - 220.0) / 40.0 + 0.6 * (sex == "m") - 0.3
    sick = rng.random(n_rows) < 1.0 / (1.0 + np.exp(-odds))
    sign = np.where(sick, 1.0, -1.0)
    return pd.DataFrame(
        {
            "patient": [f"{name}-{i}" for i in range(1, n_rows + 1)],
            "hospital": name,
            "sick": np.where(sick, "yes", "no"),
            "age": age.round(1),
            "sex": sex,
            "chol": np.where(rng.random(n_rows) < 0.03, np.nan, chol.round()),
            "heart_rate": (rng.normal(150.0, 20.0, n_rows) + 15.0 * heart * sign).round(1),
            "ward": np.where(rng.random(n_rows) < 0.5 + ward * sign, "A", rng.choice(["B", "C"], n_rows)),
        }
    )


def training(n_rows=400, seed=0):
    rng = np.random.default_rng(seed)
    parts = [draw("north", n_rows, rng, 1.0), draw("south", n_rows, rng, 0.6), draw("east", n_rows, rng, 0.8)]
    return pd.concat(parts, ignore_index=True)


def reversed_hospital(n_rows=800, seed=1):
    return draw("west", n_rows, np.random.default_rng(seed), heart=-1.0)
