"""The guard where classes are rare: no harm, f_U is taken whole or not at all."""

import warnings

import numpy as np
import pytest
from unbalanced import PRIORS, Family, columns

from sfboost import AdaptationWarning, StableFeatureBoosting, Training
from sfboost.adaptation import adapt

every_prior = pytest.mark.parametrize("prior", PRIORS.values(), ids=PRIORS)


@every_prior
def test_a_leak_that_explains_everything_leaves_the_prior_of_the_rare_classes(prior):
    family = Family(prior)
    named, unstable, _ = family.draw(4000, 0.1, np.random.default_rng(0))
    stable, X = family.stable(named), columns(unstable, len(prior))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AdaptationWarning)
        kept = adapt(stable, X, answer="safe", training=Training(leak=1.0))
    assert kept.decision.kind == "kept stable"
    np.testing.assert_allclose(kept.unstable_proba(X), np.tile(stable.mean(axis=0), (len(X), 1)))
    np.testing.assert_allclose(kept.predict_proba(stable, X), stable, rtol=1e-12)


@every_prior
@pytest.mark.parametrize("leak", [0.0, 0.005])
def test_guarded_probabilities_are_the_prior_or_the_unguarded_ones(prior, leak):
    family = Family(prior)
    named, unstable, _ = family.draw(4000, 0.1, np.random.default_rng(0))
    stable, X = family.stable(named), columns(unstable, len(prior))
    with warnings.catch_warnings():  # of 5 % few answers change, and the guard may keep them all
        warnings.simplefilter("ignore", AdaptationWarning)
        plain, guarded = adapt(stable, X), adapt(stable, X, answer="safe", training=Training(leak=leak))
    kept = guarded.decision.kind == "kept stable"
    expected = np.tile(plain.prior, (len(X), 1)) if kept else plain.unstable_proba(X)
    np.testing.assert_allclose(guarded.unstable_proba(X), expected)


@pytest.mark.long
@every_prior
@pytest.mark.parametrize("agreement", [0.1, 0.5, 0.9])
def test_the_guarded_estimator_is_never_below_its_stable_predictor(prior, agreement):
    family, rng, k = Family(prior), np.random.default_rng(0), len(prior)

    def rows(named, unstable):
        return np.hstack([columns(named, k), columns(unstable, k)])

    named, unstable, y, domain = family.training(4000, rng)
    own = list(range(1 if k == 2 else k))
    model = StableFeatureBoosting(own).fit(rows(named, unstable), y, sample_domain=domain)
    named, unstable, y = family.draw(4000, agreement, rng)
    X = rows(named, unstable)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AdaptationWarning)
        adapted = model.adapt(X, answer="safe")
    assert np.mean(adapted.predict(X) == y) > np.mean(model.predict(X) == y) - 0.005
