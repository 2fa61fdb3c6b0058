"""Writes the files that every later version must load: one of each kind, in the current format.

    python tests/persistence/make_fixtures.py

Run it once for a new format version, never for an old one: what lies in `fixtures` is what users have. Needs
every extra. The expected predictions stand beside the files, in `v<format>-expected.json`.
"""

import json
import warnings
from pathlib import Path

import numpy as np
from sklearn.naive_bayes import GaussianNB

import sfboost
from sfboost.adaptation import Settings
from sfboost.persistence.saving import SCHEMA

FOLDER = Path(__file__).parent / "fixtures"


def draw(n, agreement, seed):
    """Rows of one hospital: two columns, two classes."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    right = rng.random((n, 2)) < [0.75, agreement]
    X = np.where(right, y[:, None], 1 - y[:, None]) + 0.3 * rng.normal(size=(n, 2))
    return X, np.array(["ill", "well"], dtype=object)[y]


def models():
    """The models, by the name of their file."""
    import torch

    from sfboost.torch import Plan, SFBClassifier

    torch.set_num_threads(1)
    parts = [draw(300, agreement, seed) for seed, agreement in enumerate((0.95, 0.7))]
    X, y = (np.concatenate([part[i] for part in parts]) for i in (0, 1))
    domain, X_new = np.repeat(["north", "south"], 300), draw(1000, 0.1, 7)[0]
    model = sfboost.StableFeatureBoosting([0], [1]).fit(X, y, sample_domain=domain)
    foreign = sfboost.StableFeatureBoosting([0], [1], stable=GaussianNB()).fit(X, y, sample_domain=domain)
    plan = Plan(steps=40, unstable_steps=40, learning_rate=0.01, precision="float32")
    network = SFBClassifier("small", plan=plan).fit(X, y, sample_domain=domain)
    third = draw(300, 0.85, 3)
    whole = np.concatenate([X, third[0]]), np.concatenate([y, third[1]]), np.repeat(["n", "s", "e"], 300)
    return {
        "best": sfboost.StableFeatureBoosting([0], [1]).fit(*whole).adapt(X_new),
        "model": model,
        "adapted": model.adapt(X_new, leak=0.02, uncertainty=True),
        "paper": model.adapt(X_new, settings=Settings("paper")),
        "foreign": foreign,
        "network": network,
        "adapted-network": network.adapt(X_new, answer="paper"),
    }


def main():
    """Write all files of the current format."""
    FOLDER.mkdir(exist_ok=True)
    rows = draw(5, 0.5, 99)[0]
    expected = {"rows": rows.tolist(), "predictions": {}}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, model in models().items():
            model.save(FOLDER / f"v{SCHEMA}-{name}.sfb")
            expected["predictions"][name] = model.predict_proba(rows).tolist()
    (FOLDER / f"v{SCHEMA}-expected.json").write_text(json.dumps(expected, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
