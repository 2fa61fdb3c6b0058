"""The training loop: schedules, history, early stopping, NaN."""

import math

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the torch extra")


from sfboost.torch import Plan, SFBClassifier  # noqa: E402
from sfboost.torch import trainer as training  # noqa: E402
from sfboost.torch.learning import Learner  # noqa: E402
from sfboost.torch.networks import MLP  # noqa: E402
from sfboost.torch.objective import (  # noqa: E402
    DomainOutput,
    LossParts,
    NetworkObjective,
    NoPenalty,
    joint_logits,
)
from sfboost.torch.plan import Goal, trials  # noqa: E402
from sfboost.torch.rows import ArraySource, domain_rows  # noqa: E402
from sfboost.torch.split_network import build_network  # noqa: E402
from sfboost.torch.trainer import (  # noqa: E402
    Stage,
    StageRunner,
)
from sfboost_lab.baselines.learned.penalties import GroupDRO  # noqa: E402


def _source(seed=0, sizes=(40, 30)):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, sum(sizes))
    d = np.repeat(np.arange(len(sizes)), sizes)
    x = rng.normal(size=(len(y), 3)) + y[:, None]
    return ArraySource(torch.tensor(x, dtype=torch.float32), y, d, 2, len(sizes))


def _network(seed=0, split="separate", dropout=0.2):
    return build_network(
        lambda: MLP(3, (6, 6), dropout=dropout),
        torch.zeros(2, 3),
        split=split,
        n_classes=2,
        n_domains=2,
        n_stable=None,
        n_unstable=None if split == "shared" else 1,
        seed=seed,
    )


def test_the_combination_in_the_objective_is_bayes_rule_with_the_domain_prior():
    # Y -> X_S, Y -> X_U with prior .3: exact posteriors from the joint table
    prior = np.array([0.7, 0.3])
    p_s, p_u = np.array([[0.8, 0.2], [0.3, 0.7]]), np.array([[0.6, 0.4], [0.1, 0.9]])  # P(x | y)
    for s in range(2):
        for u in range(2):
            joint = prior * p_s[:, s] * p_u[:, u]
            log_s, log_u = np.log(prior * p_s[:, s]), np.log(prior * p_u[:, u])
            rows = [torch.tensor(a)[None] for a in (log_s, log_u)]
            domain = DomainOutput(rows[0], rows[0], rows[0], rows[1], rows[1])
            got = joint_logits(domain, torch.tensor(np.log(prior))).softmax(1)[0]
            np.testing.assert_allclose(got.numpy(), joint / joint.sum(), rtol=1e-12)


def test_rescaling_divides_the_whole_loss():
    domain = DomainOutput(*(torch.randn(6, 2, generator=torch.Generator().manual_seed(i)) for i in range(2)),
                          torch.eye(2).repeat(3, 1), torch.ones(6, 1), torch.ones(6, 2))  # fmt: skip
    prior = torch.full((1, 2), 0.5).log()

    class Three(torch.nn.Module):
        def forward(self, domains, parameters=()):
            return torch.tensor(3.0)

    plain = NetworkObjective(prior, Three(), NoPenalty(), penalty_weight=50.0)([domain])
    assert plain.total.item() == pytest.approx((plain.stable + plain.joint).item() + 150.0)
    small = NetworkObjective(prior, Three(), NoPenalty(), penalty_weight=50.0, rescale=True)([domain])
    assert small.total.item() == pytest.approx(plain.total.item() / 50.0)


def test_a_detached_joint_risk_does_not_move_the_stable_logits():
    z = torch.zeros(4, 2, requires_grad=True)
    u = torch.ones(4, 2, requires_grad=True)
    domain = DomainOutput(z, z, torch.eye(2).repeat(2, 1), u, u)
    objective = NetworkObjective(
        torch.full((1, 2), 0.5).log(), NoPenalty(), NoPenalty(), risks="joint", detach_stable=True
    )
    objective([domain]).total.backward()
    assert z.grad is None
    assert u.grad is not None


def test_two_stages_are_adam_with_l2_a_cosine_and_a_fresh_start_written_out_by_hand():
    source = _source()
    network = _network(dropout=0.0)
    parameters = network.stable_parameters()
    start = [p.detach().clone().double().numpy() for p in parameters]
    gradients: list[list[np.ndarray]] = []

    class Recorded(Learner):
        def _loss(self, phase):
            loss = super()._loss(phase)

            def watched(batch):
                parts = loss(batch)
                found = torch.autograd.grad(parts.total, parameters, retain_graph=True)
                gradients.append([g.double().numpy() for g in found])
                return parts

            return watched

    plan = Plan(
        pretrain_steps=3, steps=4, unstable_steps=0, learning_rate=0.05, cosine=True, weight_decay=0.3
    )
    learner = Recorded(network, source, Goal(), plan, seed=0)
    learner.attempt(trials(Goal(), plan)[0], 0, [0])

    weights, index = start, 0
    for steps, cosine in ((3, False), (4, True)):
        first, second = ([np.zeros_like(w) for w in weights] for _ in range(2))
        for step in range(steps):
            rate = 0.05 * (0.5 * (1 + math.cos(math.pi * step / steps)) if cosine else 1.0)
            for k, weight in enumerate(weights):
                slope = gradients[index][k] + 0.3 * weight  # L2 is added to the gradient
                first[k] = 0.9 * first[k] + 0.1 * slope
                second[k] = 0.999 * second[k] + 0.001 * slope**2
                mean, square = first[k] / (1 - 0.9 ** (step + 1)), second[k] / (1 - 0.999 ** (step + 1))
                weights[k] = weight - rate * mean / (np.sqrt(square) + 1e-8)
            index += 1
    for weight, trained in zip(weights, parameters, strict=True):
        np.testing.assert_allclose(trained.detach().numpy(), weight, atol=2e-6)


def test_each_pass_over_a_domain_sees_every_row_once_in_another_order():
    first = torch.cat([domain_rows(5, 1, step, 4, 10) for step in range(5)])
    assert sorted(first[:10].tolist()) == sorted(first[10:].tolist()) == list(range(10))
    assert first[:10].tolist() != first[10:].tolist()
    assert torch.equal(domain_rows(5, 1, 3, 4, 10), domain_rows(5, 1, 3, 4, 10))


@pytest.mark.parametrize("split", ["shared", "separate"])
@pytest.mark.parametrize("batch_size", [None, 8])
def test_training_again_from_the_same_seed_gives_the_same_bits(split, batch_size):
    goal = Goal(split=split, penalty=GroupDRO())
    plan = Plan(pretrain_steps=5, steps=10, unstable_steps=5, min_gain=-9.0, batch_size=batch_size)
    states = []
    for _ in range(2):
        network = _network(split=split)
        Learner(network, _source(), goal, plan, seed=3).learn()
        states.append(network.state_dict())
    assert all(torch.equal(a, b) for a, b in zip(*(s.values() for s in states), strict=True))


def test_early_stopping_keeps_the_best_weights(monkeypatch):
    monkeypatch.setattr(training, "_LOOK_EVERY", 2)
    monkeypatch.setattr(training, "_PATIENCE", 3)
    network = torch.nn.Linear(3, 1)
    values = iter([5.0, 2.0, 3.0, 4.0, 6.0])
    seen = []

    def monitor():
        seen.append(network.weight.detach().clone())
        return next(values)

    def loss(batch):
        value = network(batch.x).square().mean()
        return LossParts(value, value, *[torch.zeros(())] * 3)

    trainer = StageRunner(network, _source(), monitor=monitor)
    trainer.run([Stage("s", loss, list(network.parameters()), 100, 0.1)])
    assert len(seen) == 5
    assert len(trainer.history) == 10
    assert torch.equal(network.weight, seen[1])


@pytest.mark.parametrize("frozen", [False, True])
def test_training_leaves_the_random_state_the_threads_and_the_type_as_they_were(frozen):
    before = (
        torch.get_rng_state(),
        torch.get_num_threads(),
        torch.get_default_dtype(),
        repr(np.random.get_state()),
    )
    rng = np.random.default_rng(0)
    X, y, d = rng.normal(size=(80, 3)), np.arange(80) % 2, np.arange(80) // 40
    model = SFBClassifier("small", plan=Plan(steps=3, unstable_steps=3, min_gain=-9.0, freeze_trunk=frozen))
    model.fit(X, y, sample_domain=d)
    assert torch.equal(torch.get_rng_state(), before[0])
    assert (torch.get_num_threads(), torch.get_default_dtype()) == before[1:3]
    assert repr(np.random.get_state()) == before[3]
