"""SFBClassifier where classes are rare: what it learns, flattens, and finds in a new domain."""

import copy

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the torch extra")

from unbalanced import BINARY, PRIORS, Family, columns  # noqa: E402

from sfboost import Training, adapt  # noqa: E402
from sfboost.torch import Plan, SFBClassifier  # noqa: E402
from sfboost.torch.rows import ArraySource  # noqa: E402
from sfboost.torch.split_network import (  # noqa: E402
    SplitNetwork,
    chance_risk,
    guess_classes,
)

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
    assert model.leak_model_ is not None  # enough held-out rows of the rare class: f_S is flattened
    for agreement in (0.9, 0.5, 0.1):
        named, unstable, y = family.draw(8000, agreement, np.random.default_rng(7))
        X = inputs(named, unstable)
        assert np.abs(model.predict_proba(X) - family.stable(named)).mean() < 0.02
        assert model.score(X, y) > max(np.bincount(y)) / len(y) - 0.01
    np.testing.assert_allclose(model.training_.source_prior, family.prior, atol=0.01)


def test_leak_correction_reaches_the_ceiling_where_the_feature_is_reversed(learned):
    family, model = learned
    named, unstable, y = family.draw(8000, 0.1, np.random.default_rng(8))
    X = inputs(named, unstable)
    adapted = model.correct_leak(X)
    assert adapted.score(X, y) > family.ceiling(0.1) - 0.015
    np.testing.assert_allclose(adapted.prior_, np.bincount(y) / len(y), atol=0.04)


@pytest.mark.filterwarnings("ignore::sfboost.AdaptationRefused")
def test_adapting_never_costs_more_than_the_noise_of_the_stable_predictor(learned):
    family, model = learned
    for agreement in (0.9, 0.1):
        named, unstable, y = family.draw(8000, agreement, np.random.default_rng(8))
        X = inputs(named, unstable)
        adapted = model.adapt(X, answer="safe")
        assert adapted.score(X, y) > model.score(X, y) - 0.01
        np.testing.assert_allclose(adapted.prior_, np.bincount(y) / len(y), atol=0.02)


def test_the_flattened_score_finds_the_class_shares_of_a_domain_with_label_shift(learned):
    """With X_U itself: of 5 % positives the learned Φ_U carries some of X_S, which is another matter."""
    family, model = learned
    named, unstable, _ = family.draw(8000, 0.1, np.random.default_rng(9), prior=(0.6, 0.4))
    flat = model.predict_proba(inputs(named, unstable))
    found = adapt(flat, columns(unstable, 2), transport="likelihood", training=model.training_).prior[1]
    assert found == pytest.approx(0.4, abs=0.04)


def test_label_shift_needs_no_further_options(learned):
    family, model = learned
    named, unstable, _ = family.draw(4000, 0.1, np.random.default_rng(9), prior=(0.6, 0.4))
    X = inputs(named, unstable)
    stable, features = model.stable_and_unstable(X)
    known = Training(source_prior=model.training_.source_prior)
    expected = adapt(np.exp(stable), features, transport="likelihood", training=known)
    found = copy.copy(model).set_params(transport="likelihood").adapt(X, answer="checked")
    np.testing.assert_allclose(found.prior_, expected.prior)


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
    assert chance_risk(source) == pytest.approx(-np.sum(np.array(prior) * np.log(prior)), rel=1e-6)


@pytest.mark.long
@pytest.mark.parametrize("seed", [0, 1])
def test_many_skewed_classes_are_flattened_only_where_that_does_no_harm(seed):
    """K = 5. With seed 0 Φ_U takes up the stable feature, and flattening would halve the accuracy."""
    family = Family(PRIORS["K = 5"])
    rng = np.random.default_rng(3)

    def rows(named, unstable):
        return np.hstack([columns(named, 5), columns(unstable, 5)]) * 2.0 - 1.0

    named, unstable, y, domain = family.training(30_000, rng, (0.95, 0.8))
    plan = Plan(learning_rate=0.01, steps=200, unstable_steps=100, batch_size=1024, validation_fraction=0.5)
    model = SFBClassifier(network="small", plan=plan, random_state=seed)
    model.fit(rows(named, unstable), y, sample_domain=domain)
    for agreement in (0.9, 0.1):
        named, unstable, y = family.draw(8000, agreement, rng)
        X = rows(named, unstable)
        unflattened = np.exp(model.stable_and_unstable(X, flattened=False)[0]).argmax(axis=1)
        assert model.score(X, y) > np.mean(unflattened == y) - 0.02
        assert model.score(X, y) > 0.65


@pytest.mark.parametrize(("share", "shown", "found"), [(0.1, 0.0, "likelihood"), (0.5, 0.1, "posthoc")])
def test_stress_domains_say_whether_a_head_is_fitted_through_the_errors_of_its_labels(share, shown, found):
    """Not where Φ_U shows a little of f_S within a class: a head that may be steep would read that."""
    rng, n, right = np.random.default_rng(0), 20_000, np.array([0.25, 0.75])
    y, domain = (rng.random(n) < share).astype(int), np.where(np.arange(n) < n // 2, "a", "b")
    x = (rng.random(n) < right[y]).astype(int)
    low = np.where(rng.random(n) < np.where(domain == "a", 0.9, 0.8), y, 1 - y) == 1
    features = np.where(low, -3.5, rng.choice([-2.5, 2.5], n) if shown == 0 else -1.0) + shown * x
    proba = share * right[x] / (share * right[x] + (1 - share) * right[1 - x])
    rows = np.c_[1 - proba, proba], features[:, None], y, domain
    model = SFBClassifier()
    assert model._find_correction(*rows) == "posthoc"  # without a search nothing is asked
    model.search_ = []
    assert model._find_correction(*rows) == found
