"""Small fitted models, and a forger: files that are sealed as they should be, and lie inside."""

import json

import numpy as np
import pytest
from joints import draw_anticausal

from sfboost import StableFeatureBoosting
from sfboost.adaptation import adapt
from sfboost.persistence.archive import pack, unpack
from sfboost.persistence.saving import to_bytes


@pytest.fixture(scope="session")
def training():
    """X, y and domain of two hospitals."""
    parts = [draw_anticausal(400, agreement, seed) for seed, agreement in enumerate((0.95, 0.7))]
    X, y = (np.concatenate([part[i] for part in parts]) for i in (0, 1))
    return X, y, np.repeat(["north", "south"], 400)


@pytest.fixture(scope="session")
def new():
    return draw_anticausal(2000, 0.1, seed=77)[0]


@pytest.fixture(scope="session")
def model(training):
    X, y, domain = training
    return StableFeatureBoosting([0], [1]).fit(X, y, sample_domain=domain)


@pytest.fixture(scope="session")
def adaptation(new):
    stable = np.where(new[:, 0] > 0, 0.75, 0.25)
    return adapt(stable, new[:, 1:])


class Forger:
    """Takes a genuine file apart and puts it together again with a lie in it."""

    def __init__(self, model):
        self.parts = unpack(to_bytes(model))
        self.manifest = json.loads(self.parts.pop("manifest.json"))
        self.tree = json.loads(self.parts.pop("model.json"))

    def put(self, ending, content):
        """A part in the place of some attribute."""
        self.parts[f"parts/99.{ending}"] = content
        self.tree["state"]["cross_fit"] = {"skops" if ending == "skops" else "array": f"parts/99.{ending}"}
        return self

    def write(self):
        trees = {"manifest.json": self.manifest, "model.json": self.tree}
        written = {name: t if isinstance(t, bytes) else json.dumps(t).encode() for name, t in trees.items()}
        return pack({**written, **self.parts})


@pytest.fixture
def forger(adaptation):
    return Forger(adaptation)


@pytest.fixture
def forger_of():
    return Forger
