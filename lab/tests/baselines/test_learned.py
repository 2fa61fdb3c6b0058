"""Trainers of networks: autograd loops written apart, exact facts, and the values of the paper on AC."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the torch extra")

from sfboost_lab.baselines import ADAPTERS, TRAINERS, LabelledRows, run  # noqa: E402
from sfboost_lab.baselines.harness import rows_of  # noqa: E402
from sfboost_lab.baselines.learned.actir import ACTIR  # noqa: E402
from sfboost_lab.baselines.learned.dare import adjusted_regression, whitening  # noqa: E402
from sfboost_lab.baselines.learned.ensemble import fit_many  # noqa: E402
from sfboost_lab.baselines.learned.fine_network import PseudoLabelAll  # noqa: E402
from sfboost_lab.baselines.learned.generalisation import (  # noqa: E402
    EQRMTrainer,
    ERMTrainer,
    IRMTrainer,
    SDTrainer,
    VRExTrainer,
)
from sfboost_lab.baselines.learned.network import NetworkPredictor, PaddedMLP  # noqa: E402
from sfboost_lab.datasets import load  # noqa: E402

SEEDS = range(3)


def rows(n_classes=2, n=60, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(2 * n) % n_classes
    X = rng.normal(size=(2 * n, 3)) + y[:, None] * [1.0, 0.5, -0.5]
    return LabelledRows(X, y, np.repeat(["a", "b"], n))


# -- the training loop is that of sfboost.torch; what it minimises is checked by a loop of its own --------


def penalty_by_autograd(name, logits, target, domain):
    risks, extra = [], []
    for e in (0, 1):
        z, y = logits[domain == e], target[domain == e]
        risks.append(torch.nn.functional.cross_entropy(z, y))
        if name == "irm":
            w = torch.ones((), dtype=z.dtype, requires_grad=True)
            risk = torch.nn.functional.cross_entropy(w * z, y)
            extra.append(torch.autograd.grad(risk, w, create_graph=True)[0] ** 2)
        if name == "sd":
            extra.append((z**2).sum(1).mean())
    risks = torch.stack(risks)
    if name == "vrex":
        return risks.mean(), risks.var(correction=0)
    return risks.mean(), torch.stack(extra).mean() if extra else torch.zeros(())


@pytest.mark.parametrize(
    ("name", "trainer"), [("erm", ERMTrainer), ("irm", IRMTrainer), ("vrex", VRExTrainer), ("sd", SDTrainer)]
)
def test_a_trainer_minimises_mean_risk_plus_weight_times_penalty(name, trainer):
    data = rows(3)
    given = trainer(network="linear", weight=7.0, steps=30, learning_rate=0.05, precision="float64")
    start = given.pose(data, 5).network.stable_head
    weight, bias = start.weight.detach().clone(), start.bias.detach().clone()
    for parameter in (weight, bias):
        parameter.requires_grad_(True)
    optimizer = torch.optim.Adam([weight, bias], lr=0.05)
    x, y, d = torch.tensor(data.X), torch.tensor(data.y), (data.domain == "b").astype(int)
    for _ in range(30):
        risk, penalty = penalty_by_autograd(name, x @ weight.T + bias, y, torch.tensor(d))
        optimizer.zero_grad()
        ((risk + 7.0 * penalty) / 7.0).backward()
        optimizer.step()
    head = given.fit(data, seed=5).head
    np.testing.assert_allclose(head.coef, weight.detach().numpy(), atol=1e-9)
    np.testing.assert_allclose(head.intercept, bias.detach().numpy(), atol=1e-9)


def test_padded_dropout_is_dropout_with_the_mask_of_whole_cache_lines():
    net = PaddedMLP(6, (10, 12), dropout=0.3).double().train()
    x, h = (torch.randn(40, 6, dtype=torch.float64),) * 2
    torch.manual_seed(1)
    for layer in net.layers:
        h = torch.nn.functional.pad(layer(h).relu(), (0, 16 - len(layer.bias)))
        words = torch.empty(40 * 16 // 8 + 1, dtype=torch.int64).random_(torch.iinfo(torch.int64).min, None)
        dropped = words.view(torch.uint8)[: 40 * 16].view(40, 16) < 77
        h = (h.masked_fill(dropped, 0.0) * 256 / (256 - 77))[:, : len(layer.bias)]
    torch.manual_seed(1)
    plain = net(x)
    net.padded = True
    torch.manual_seed(1)
    torch.testing.assert_close(net(x), h)
    assert not torch.allclose(plain, h)


@pytest.mark.parametrize("trainer", [IRMTrainer, EQRMTrainer])
def test_pretrained_weights_serve_every_penalty_with_the_same_result(trainer):
    data = rows()
    recipe = {"network": "small", "pretrain_steps": 20, "steps": 10, "batch_size": 16, "dropout": 0.2}
    start = ERMTrainer(**recipe).pretrain(data, seed=1)
    alone = trainer(**recipe).fit(data, seed=1)
    shared = trainer(**recipe).fit(data, seed=1, start=start)
    assert alone.predict_proba(data.X).tobytes() == shared.predict_proba(data.X).tobytes()
    again = trainer(**recipe).fit(data, seed=1, start=start)  # the start is as it was
    assert again.predict_proba(data.X).tobytes() == shared.predict_proba(data.X).tobytes()


def test_weights_of_another_recipe_are_refused_by_name():
    start = ERMTrainer(network="small", pretrain_steps=2, steps=1).pretrain(rows(), seed=0)
    with pytest.raises(ValueError, match="pretrained with another learning_rate, seed"):
        IRMTrainer(network="small", pretrain_steps=2, learning_rate=0.5).fit(rows(), seed=1, start=start)


@pytest.mark.parametrize(
    "trainer",
    [
        IRMTrainer(
            network="small", pretrain_steps=5, steps=15, batch_size=16, precision="float64", cosine=True
        ),
        VRExTrainer(network="small", steps=15, precision="float64"),
        ACTIR(steps=15, batch_size=16, precision="float64"),
    ],
    ids=["irm", "vrex", "actir"],
)
def test_many_at_once_end_where_each_ends_alone(trainer):
    data = [rows(seed=s) for s in range(3)]
    together = fit_many(trainer, data, [4, 5, 6])
    for predictor, train, seed in zip(together, data, [4, 5, 6], strict=True):
        alone = trainer.fit(train, seed=seed)
        np.testing.assert_allclose(predictor.predict_proba(train.X), alone.predict_proba(train.X), atol=1e-8)


def test_a_penalty_that_cannot_be_stacked_is_refused():
    with pytest.raises(ValueError, match="EQRM cannot train many at once"):
        fit_many(EQRMTrainer(), [rows()], [0])


# -- the values of the paper -------------------------------------------------------------------------------


def accuracies(name, dataset, seeds):
    trainer = TRAINERS[name].preset(dataset)
    sets = [load(dataset, random_state=seed) for seed in seeds]
    fitted = fit_many(trainer, [rows_of(s, s.train) for s in sets], list(seeds))
    tests = [s.domain(s.test[0]) for s in sets]
    return (
        fitted,
        tests,
        100 * np.array([np.mean(p.predict(t.X) == t.y) for p, t in zip(fitted, tests, strict=True)]),
    )


@pytest.mark.long
@pytest.mark.parametrize(("trainer", "accuracy", "error"), [("erm", 10, 1.5), ("irm", 75, 2.5)])
def test_on_ac_erm_is_misled_and_irm_stable_and_pseudo_labels_never_help(trainer, accuracy, error):
    fitted, tests, base = accuracies(trainer, "ac", SEEDS)
    assert base.mean() == pytest.approx(accuracy, abs=error)
    for name in ("pl-last", "pl-all"):
        adapted = [
            ADAPTERS[name](learning_rate=1e-3).adapt(p, t.X) for p, t in zip(fitted, tests, strict=True)
        ]
        after = [100 * np.mean(p.predict(t.X) == t.y) for p, t in zip(adapted, tests, strict=True)]
        assert (np.array(after) <= base).all()


@pytest.mark.long
def test_actir_is_stable_on_ac_and_fails_on_ce_dd():
    _, _, on_ac = accuracies("actir", "ac", range(5))
    assert np.median(on_ac) == pytest.approx(75, abs=2.5)
    _, _, on_ce_dd = accuracies("actir", "ce_dd", range(5))
    assert on_ce_dd.mean() < 60
    _, _, irm = accuracies("irm", "ce_dd", SEEDS)
    assert irm.mean() > 68


def test_sfb_boosts_on_ac_and_labels_give_the_ceiling():
    trainer = TRAINERS["sfb"].preset("ac", steps=200, unstable_steps=200)
    adapters = [ADAPTERS[name]() for name in ("none", "sfb", "sfb-paper", "sfb-labels")]
    found = {o.adapter: o for o in run(trainer, adapters, load("ac", n_rows=2048), seed=0)}
    assert found["none"].accuracy == pytest.approx(0.75, abs=0.03)
    assert found["sfb"].accuracy > 0.86
    assert found["sfb"].decision == "adapted"
    assert found["sfb-labels"].accuracy == pytest.approx(0.9, abs=0.03)
    assert found["sfb-labels"].oracle
    assert found["sfb-labels"].n_rows == 1024
    assert not found["sfb-paper"].oracle


# -- DARE --------------------------------------------------------------------------------------------------


def test_dare_solves_its_constrained_problem():
    """Against a general solver for the objective with its constraints written out."""
    from scipy.optimize import minimize
    from scipy.special import log_softmax

    rng = np.random.default_rng(0)
    y, domain = np.arange(90) % 3, np.repeat([0, 1], 45)
    X = rng.normal(size=(90, 4)) @ rng.normal(size=(4, 4)) + np.eye(3, 4)[y] + 0.3 * domain[:, None]
    B, _ = adjusted_regression(X, y, domain, l2=0.05, shrinkage=0.0)
    maps = [whitening(X[domain == e], 0.0) for e in (0, 1)]
    np.testing.assert_allclose(
        maps[0] @ np.cov(X[:45], rowvar=False, bias=True) @ maps[0], np.eye(4), atol=1e-9
    )

    def loss(flat):
        b = flat.reshape(3, 4)
        by_domain = [
            -log_softmax(X[domain == e] @ maps[e] @ b.T, axis=1)[np.arange(45), y[domain == e]].mean()
            for e in (0, 1)
        ]
        return np.mean(by_domain) + 0.05 / 2 * (b**2).sum()

    def uniform(flat):
        logits = np.array([flat.reshape(3, 4) @ maps[e] @ X[domain == e].mean(0) for e in (0, 1)])
        return (logits[:, 1:] - logits[:, :1]).ravel()

    solved = minimize(loss, np.zeros(12), constraints={"type": "eq", "fun": uniform}, tol=1e-12)
    np.testing.assert_allclose(uniform(B.ravel()), 0.0, atol=1e-9)
    assert loss(B.ravel()) == pytest.approx(solved.fun, abs=1e-7)


def test_dare_on_a_rescaled_domain_predicts_as_if_it_had_not_been_rescaled():
    """Whitening with the test rows undoes any scaling of the features; the mean whitening does not."""
    data = rows(3, n=200)
    X = np.hstack([data.X, np.random.default_rng(1).normal(size=(400, 3))])
    data = LabelledRows(X, data.y, data.domain)
    dare = TRAINERS["dare"](network="linear", steps=0, shrinkage=0.0).fit(data)
    new = np.random.default_rng(2).normal(size=(200, 6)) + 1.0
    first, second = (ADAPTERS["dare"]().adapt(dare, scale * new) for scale in (1.0, 10.0))
    np.testing.assert_allclose(first.predict_proba(new), second.predict_proba(10.0 * new), atol=1e-4)
    assert np.abs(dare.predict_proba(new) - dare.predict_proba(10.0 * new)).max() > 0.05


def test_dare_without_room_says_so():
    data = LabelledRows(
        np.random.default_rng(0).normal(size=(40, 2)) + 1, np.arange(40) % 2, np.arange(40) // 20
    )
    with pytest.raises(ValueError, match="leaves nothing of 2 features"):
        TRAINERS["dare"](network="linear", steps=0).fit(data)


# -- adapters of whole networks ------------------------------------------------------------------------------


def test_pseudo_labels_on_all_layers_of_no_layers_are_pseudo_labels_of_the_last():
    """With a network that has no parameters, training all layers is training the last."""
    data = rows(3)
    source = ERMTrainer(network="linear", steps=60, learning_rate=0.1, precision="float64").fit(data)
    source = NetworkPredictor(source.classes_, Doubled(), source.head)
    options = {"threshold": 0.4, "learning_rate": 0.05, "batch_size": 16, "epochs": 2}
    last = ADAPTERS["pl-last"](**options).adapt(source, data.X, seed=3)
    every = PseudoLabelAll(**options).adapt(source, data.X, seed=3)
    np.testing.assert_allclose(last.head.coef, every.head.coef, atol=1e-5)
    assert np.abs(last.head.coef - source.head.coef).max() > 0.1


class Doubled(torch.nn.Module):
    def forward(self, x):
        return 2 * x


def test_pseudo_labels_of_all_layers_leave_the_network_of_the_source():
    data = rows()
    source = ERMTrainer(network="small", steps=30, learning_rate=0.05).fit(data)
    before = {name: value.clone() for name, value in source.body.state_dict().items()}
    adapted = PseudoLabelAll(threshold=0.5).adapt(source, data.X)
    assert all(torch.equal(value, before[name]) for name, value in source.body.state_dict().items())
    assert any(not torch.equal(v, before[n]) for n, v in adapted.body.state_dict().items())
