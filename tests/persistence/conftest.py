"""Small fitted models, and a forger: files that are sealed and listed as they should be, and lie inside."""

import hashlib
import json

import numpy as np
import pytest
from joints import draw_anticausal

import sfboost
from sfboost import StableFeatureBoosting
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
    return sfboost.adapt(stable, new[:, 1:], answer="paper")


class Forger:
    """Takes a genuine file apart and puts it together again with a lie in it."""

    def __init__(self, model):
        self.parts = unpack(to_bytes(model))
        self.manifest = json.loads(self.parts.pop("manifest.json"))
        self.tree = json.loads(self.parts.pop("model.json"))

    def add(self, name, content):
        self.parts[name] = content
        return name

    def write(self):
        parts = {"model.json": json.dumps(self.tree).encode(), **self.parts}
        self.manifest["parts"] = {
            name: {"sha256": hashlib.sha256(part).hexdigest(), "size": len(part)}
            for name, part in parts.items()
        }
        return pack({"manifest.json": json.dumps(self.manifest).encode(), **parts})


@pytest.fixture
def forger(adaptation):
    return Forger(adaptation)


@pytest.fixture
def forger_of():
    return Forger
