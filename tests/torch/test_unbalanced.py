"""SFBClassifier where classes are rare: what it learns and finds in a new domain."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the torch extra")

from unbalanced import BINARY, PRIORS, Family  # noqa: E402

from sfboost.torch import Plan, SFBClassifier  # noqa: E402
from sfboost.torch.rows import ArraySource  # noqa: E402
from sfboost.torch.split_network import SplitNetwork, guess_classes  # noqa: E402

every_prior = pytest.mark.parametrize("prior", PRIORS.values(), ids=PRIORS)


def inputs(named, unstable):
    """Two signs, as a network of two binary features sees them."""
    return np.column_stack([named, unstable]) * 2.0 - 1.0


@pytest.fixture(
    scope="module",
    params=[BINARY[0], *(pytest.param(name, marks=pytest.mark.long) for name in BINARY[1:])],
)
def learned(request):
    family = Family(PRIORS[request.param])
    named, unstable, y, domain = family.training(8000, np.random.default_rng(3))
    plan = Plan(learning_rate=0.01, steps=300, unstable_steps=200, batch_size=256, validation_fraction=0.5)
    model = SFBClassifier(network="small", plan=plan)
    return family, model.fit(inputs(named, unstable), y, sample_domain=domain)


def test_the_default_predictor_is_the_posterior_of_the_stable_feature(learned):
    family, model = learned
    for agreement in (0.9, 0.5, 0.1):
        named, unstable, y = family.draw(8000, agreement, np.random.default_rng(7))
        X = inputs(named, unstable)
        assert np.abs(model.predict_stable_proba(X) - family.stable(named)).mean() < 0.02
        assert (
            np.mean(model.predict_stable_proba(X).argmax(axis=1) == y) > max(np.bincount(y)) / len(y) - 0.01
        )
    np.testing.assert_allclose(model.training_.source_prior, family.prior, atol=0.01)


@every_prior
def test_the_first_guess_is_what_the_unstable_features_name(prior):
    """A network whose unstable logits are exactly log Pr[Y | X_U] of each domain."""
    family, k, agreements = Family(prior), len(prior), (0.9, 0.7)
    _, unstable, y, domain = family.training(2000, np.random.default_rng(0), agreements)
    net = SplitNetwork(
        torch.nn.Identity(), n_features=k, n_classes=k, n_domains=2,
        unstable_trunk=torch.nn.Identity(),
    )  # fmt: skip
    # Of shape (domains, K, cells).
    heads = np.stack([np.log(family.joint(a).unstable_posterior).T for a in agreements])
    if k == 2:  # one column of log-odds
        heads = heads[:, 1:] - heads[:, :1]
    with torch.no_grad():
        net.unstable_weight.copy_(torch.from_numpy(heads))
        net.unstable_bias.zero_()
    source = ArraySource(torch.eye(k)[unstable], y, domain, k, 2)
    np.testing.assert_array_equal(guess_classes(net, source), unstable)


@every_prior
def test_balanced_rows_keep_the_class_shares_and_make_label_and_guess_independent(prior):
    family, k = Family(prior), len(prior)
    _, unstable, y, domain = family.training(8000, np.random.default_rng(0))
    source = ArraySource(torch.from_numpy(np.column_stack([unstable, y])), y, domain, k, 2)
    source.balance(unstable)
    batch = source.batch(None, 0, 0)
    guess, label = batch.x[: batch.sizes[0]].numpy().T
    table = np.zeros((k, k))
    np.add.at(table, (guess, label), 1 / len(label))
    np.testing.assert_allclose(table.sum(axis=0), np.bincount(y[domain == 0]) / 8000, atol=0.005)
    np.testing.assert_allclose(table, np.outer(table.sum(axis=1), table.sum(axis=0)), atol=0.005)


@every_prior
def test_chance_is_the_entropy_of_the_class_shares(prior):
    y = np.repeat(np.arange(len(prior)), np.rint(np.array(prior) * 1000).astype(int))
    source = ArraySource(torch.zeros(1000, 1), y, np.zeros(1000, int), len(prior), 1)
    assert source.chance_risk() == pytest.approx(-np.sum(np.array(prior) * np.log(prior)), rel=1e-6)
