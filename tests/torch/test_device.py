"""Every tensor of a step is on the model's device, shown on torch's meta device: no graphics card is needed.

A meta tensor has a device and a shape but no values, and mixing it with one of the processor is an error.
"""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs the torch extra")

import torch

from sfboost.torch.learning import Learner
from sfboost.torch.networks import make_network
from sfboost.torch.objective import INDEPENDENCE_PENALTIES, STABILITY_PENALTIES
from sfboost.torch.plan import Goal, Phase, Plan
from sfboost.torch.rows import ArraySource, Batch
from sfboost.torch.split_network import SplitNetwork, build_network


def _elsewhere(split: str) -> tuple[SplitNetwork, ArraySource]:
    x = torch.zeros(40, 6)
    network = build_network(
        lambda: make_network("mlp", (6,), dropout=0.2),
        x[:2],
        split=split,
        n_classes=2,
        n_domains=2,
        n_stable=None,
        n_unstable=None if split == "shared" else 1,
        seed=0,
    )
    y, domain = np.arange(40) % 2, np.arange(40) // 20
    return network.to("meta"), ArraySource(x.to("meta"), y, domain, 2, 2)


def _step(split: str, penalty: str, independence: str) -> tuple[SplitNetwork, Batch]:
    network, source = _elsewhere(split)
    goal = Goal(split=split, penalty=penalty, independence=independence, penalty_weight=2.0)
    batch = source.batch(8, 0, 0)
    phase = Phase(name="joint", risks="both", trained="all", steps=1, learning_rate=0.1)
    losses = Learner(network, source, goal, Plan(batch_size=8), seed=0)._loss(phase)(batch)
    losses.total.backward()
    torch.optim.Adam(network.parameters()).step()
    return network, batch


@pytest.mark.parametrize("penalty", STABILITY_PENALTIES)
@pytest.mark.parametrize("independence", INDEPENDENCE_PENALTIES)
@pytest.mark.parametrize("split", ["separate", "shared"])
def test_a_step_stays_on_the_device(split: str, penalty: str, independence: str) -> None:
    network, batch = _step(split, penalty, independence)
    gradients = [p.grad for p in network.parameters() if p.grad is not None]
    assert gradients
    assert {t.device.type for t in (*gradients, batch.x, batch.target)} == {"meta"}


def test_a_tensor_left_on_the_processor_is_noticed() -> None:
    network, source = _elsewhere("separate")
    batch = source.batch(8, 0, 0)
    with pytest.raises(RuntimeError, match="device"):
        network(torch.zeros(batch.x.shape), batch.sizes)
