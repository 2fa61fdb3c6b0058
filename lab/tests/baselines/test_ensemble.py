"""Many networks at once end where they would have ended alone."""

import copy

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the torch extra")

from sfboost.torch import SFBClassifier  # noqa: E402
from sfboost.torch.learning import Learner  # noqa: E402
from sfboost.torch.networks import MLP  # noqa: E402
from sfboost.torch.plan import Goal, Plan  # noqa: E402
from sfboost.torch.rows import ArraySource  # noqa: E402
from sfboost.torch.split_network import build_network  # noqa: E402
from sfboost.torch.trainer import Stage, StageRunner  # noqa: E402
from sfboost_lab.baselines.learned.actir import ACTIRNetwork, ACTIRObjective  # noqa: E402
from sfboost_lab.baselines.learned.boosting import grouped  # noqa: E402
from sfboost_lab.baselines.learned.ensemble import (  # noqa: E402
    actir_loss,
    learn_many,
    train_many,
)
from sfboost_lab.baselines.learned.penalties import INDEPENDENCE, PENALTIES, STACKABLE, make  # noqa: E402


def _source(seed, n=60, n_classes=2, sizes=(60, 60)):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, sum(sizes))
    d = np.repeat(np.arange(len(sizes)), sizes)
    x = rng.normal(size=(len(y), 2)) + y[:, None] * np.array([[1.0, -0.5]]) * (1 + d[:, None])
    return ArraySource(torch.tensor(x), y, d, n_classes, len(sizes))


def _network(seed, split, n_classes=2):
    return build_network(
        lambda: MLP(2, (8, 8)),
        torch.zeros(2, 2, dtype=torch.float64),
        split=split,
        n_classes=n_classes,
        n_domains=2,
        n_stable=2,
        n_unstable=2,
        seed=seed,
    )


CASES = [
    ("shared", "irm", "proxy", None, 2),
    ("shared", "irm", "proxy", 16, 2),
    ("shared", "vrex", "none", None, 3),
    ("shared", "irm-matrix", "proxy", 25, 3),
    ("separate", "irm", "proxy", None, 2),
    ("separate", "vrex", "proxy", 16, 2),
    ("alternating", "irm", "proxy", None, 2),
    ("alternating", "vrex", "proxy", 16, 3),
    ("balanced", "irm", "proxy", 16, 2),
    ("balanced", "irm", "none", None, 3),
]


@pytest.mark.long
@pytest.mark.parametrize(("split", "penalty", "independence", "batch_size", "n_classes"), CASES)
def test_fifty_steps_at_once_equal_fifty_steps_alone(split, penalty, independence, batch_size, n_classes):
    balance, split = split == "balanced", "separate" if split == "balanced" else split
    weights = [(1.0, 0.1), (50.0, 1.0), (0.0, 0.0)]
    seeds = [3, 4, 5]
    told = {
        "split": split,
        "penalty": make(PENALTIES, penalty),
        "independence": make(INDEPENDENCE, independence),
    }
    goals = [Goal(**told, penalty_weight=s, independence_weight=c) for s, c in weights]
    plan = Plan(
        pretrain_steps=20,
        steps=30,
        unstable_steps=30,
        learning_rate=0.01,
        cosine=True,
        batch_size=batch_size,
        max_restarts=0,
        min_gain=-10.0,
        balance=balance,
    )
    sources = [_source(seed, n_classes=n_classes) for seed in seeds]
    together = [_network(seed, split, n_classes) for seed in seeds]
    alone = copy.deepcopy(together)
    history, _ = learn_many(together, sources, goals, seeds, plan)
    for i, network in enumerate(alone):
        learner = Learner(network, sources[i], goals[i], plan, seed=seeds[i])
        learner.learn()
        for name, value in network.state_dict().items():
            torch.testing.assert_close(together[i].state_dict()[name], value, rtol=0, atol=1e-8)
        np.testing.assert_allclose(
            history["total"][:, i], [row["total"] for row in learner.history], atol=1e-8
        )


@pytest.mark.parametrize("batch_size", [None, 16])
def test_actir_at_once_equals_actir_alone(batch_size):
    seeds, weights = [0, 1], [(1.0, 0.5), (9.2, 1.7)]
    sources = [_source(seed) for seed in seeds]
    together = []
    for seed in seeds:
        torch.manual_seed(seed)
        together.append(
            ACTIRNetwork(MLP(2, (8, 8)), width=8, n_features=3, n_classes=2, n_domains=2).double()
        )
    alone = copy.deepcopy(together)
    settings = {
        "proxy": torch.tensor([w[0] for w in weights], dtype=torch.float64),
        "gradient": torch.tensor([w[1] for w in weights], dtype=torch.float64),
    }
    train_many(
        together, sources, seeds, actir_loss, settings, steps=50, learning_rate=0.01, batch_size=batch_size
    )
    for i, network in enumerate(alone):
        objective = ACTIRObjective(*weights[i])

        def loss(batch, network=network, objective=objective):
            return objective(network(batch.x), network.eta, batch.target, batch.sizes)

        trainer = StageRunner(network, sources[i], batch_size=batch_size, seed=seeds[i])
        trainer.run([Stage("actir", loss, list(network.parameters()), steps=50, learning_rate=0.01)])
        for name, value in network.state_dict().items():
            torch.testing.assert_close(together[i].state_dict()[name], value, rtol=0, atol=1e-8)


def test_actir_penalises_the_gradient_that_autograd_finds_in_eta():
    torch.manual_seed(0)
    phi = torch.randn(30, 4, dtype=torch.float64, requires_grad=True)
    eta = torch.randn(1, 4, 3, dtype=torch.float64, requires_grad=True)
    y = torch.randint(0, 3, (30,))
    f_s, f_u = phi[:, :3], phi @ eta[0]
    inner = torch.nn.functional.cross_entropy(f_s + f_u, y)
    for k in range(3):
        r = sum((f_s[y == c, k] * (f_u[y == c, k] - f_u[y == c, k].mean())).sum() for c in range(3)) / 30
        inner = inner + 2.5 * r.abs()
    reference = torch.autograd.grad(inner, eta, create_graph=True)[0].square().mean()
    parts = ACTIRObjective(2.5, 1.0)(phi, eta, torch.eye(3, dtype=torch.float64)[y], (30,))
    assert parts.penalty.item() == pytest.approx(reference.item(), rel=1e-10)
    for a, b in zip(
        torch.autograd.grad(parts.penalty, [phi, eta], retain_graph=True),
        torch.autograd.grad(reference, [phi, eta]),
        strict=True,
    ):
        torch.testing.assert_close(a, b, rtol=1e-8, atol=1e-10)


def test_a_dead_member_is_started_again_and_the_others_are_left_alone():
    sources = [_source(0), _source(1)]
    networks = [_network(0, "separate"), _network(1, "separate")]
    with torch.no_grad():  # all units of member 0 are off for every row: no gradient can revive it
        networks[0].unstable_trunk.layers[-1].bias.fill_(-1e3)
    goal = Goal(penalty_weight=1.0, independence_weight=0.0)
    plan = Plan(steps=30, unstable_steps=200, learning_rate=0.05)
    _, restarts = learn_many(networks, sources, [goal] * 2, [0, 1], plan)
    assert restarts[0] >= 1
    assert restarts[1] == 0
    assert networks[0].unstable_features(sources[0].x).std() > 0.1


def test_what_cannot_be_batched_is_refused():
    nets, sources = [_network(0, "shared")] * 2, [_source(0)] * 2
    with pytest.raises(ValueError, match="clove"):
        learn_many(nets, sources, [Goal(penalty="clove")] * 2, [0, 1], Plan())
    with pytest.raises(ValueError, match="differ"):
        learn_many(nets, sources, [Goal(penalty="irm"), Goal(penalty="vrex")], [0, 1], Plan())
    with pytest.raises(ValueError, match="same sizes"):
        learn_many(nets, [_source(0), _source(0, sizes=(60, 50))], [Goal()] * 2, [0, 1], Plan())


@pytest.mark.parametrize("name", PENALTIES)
def test_a_penalty_trains_many_at_once_if_it_can_and_is_refused_if_not(name):
    networks, sources = [_network(0, "separate"), _network(1, "separate")], [_source(0), _source(1)]
    plan, goals = Plan(steps=1, unstable_steps=0, min_gain=-9.0), [Goal(penalty=name)] * 2
    if PENALTIES[name] in STACKABLE:
        assert learn_many(networks, sources, goals, [0, 1], plan)[0]["total"].shape == (1, 2)
    else:
        with pytest.raises(ValueError, match=f"'{name}' cannot train many at once; these can: irm"):
            learn_many(networks, sources, goals, [0, 1], plan)


def test_the_librarys_classifier_takes_a_penalty_of_the_laboratory():
    source = _source(0)
    plan = Plan(steps=5, unstable_steps=2, min_gain=-9.0)
    model = SFBClassifier("small", penalty=make(PENALTIES, "sd"), plan=plan)
    model.fit(source.x, source.labels, sample_domain=np.repeat([0, 1], 60))
    assert sum(row["penalty"] != 0 for row in model.history_) == 5


def test_flat_parameters_of_records_find_their_place():
    flat = {"split": "shared", "stability": "eqrm", "stability_weight": 2.0, "l2": 0.1, "steps": 3}
    told = grouped(flat)
    assert told.pop("plan") == Plan(weight_decay=0.1, steps=3)
    assert Goal(**told) == Goal(split="shared", penalty="eqrm", penalty_weight=2.0)
