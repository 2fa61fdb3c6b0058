"""The guard where classes are rare: no harm, its band reaches towards the prior and not towards 1/K."""

import warnings

import numpy as np
import pytest
from unbalanced import PRIORS, Family, columns

from sfboost import AdaptationWarning, StableFeatureBoosting, Training, adapt

every_prior = pytest.mark.parametrize("prior", PRIORS.values(), ids=PRIORS)


@every_prior
def test_a_leak_that_explains_everything_leaves_the_prior_of_the_rare_classes(prior):
    family = Family(prior)
    named, unstable, _ = family.draw(8000, 0.1, np.random.default_rng(0))
    stable, X = family.stable(named), columns(unstable, len(prior))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AdaptationWarning)
        kept = adapt(stable, X, answer="safe", training=Training(leak=1.0))
    assert kept.decision.kind == "kept stable"
    np.testing.assert_allclose(kept.unstable_proba(X), np.tile(stable.mean(axis=0), (len(X), 1)))
    np.testing.assert_allclose(kept.predict_proba(stable, X), stable, rtol=1e-12)


@every_prior
@pytest.mark.parametrize("leak", [0.0, 0.005])
def test_guarded_probabilities_lie_between_the_prior_and_the_unguarded_ones(prior, leak):
    family = Family(prior)
    named, unstable, _ = family.draw(8000, 0.1, np.random.default_rng(0))
    stable, X = family.stable(named), columns(unstable, len(prior))
    with warnings.catch_warnings():  # of 5 % few answers are beyond doubt, and the guard may keep them all
        warnings.simplefilter("ignore", AdaptationWarning)
        plain, guarded = adapt(stable, X), adapt(stable, X, answer="safe", training=Training(leak=leak))
    centre = plain.prior
    towards = np.abs(guarded.unstable_proba(X) - centre) <= np.abs(plain.unstable_proba(X) - centre) + 1e-9
    assert towards.all()


@every_prior
@pytest.mark.parametrize("agreement", [0.1, 0.5, 0.9])
def test_the_guarded_estimator_is_never_below_its_stable_predictor(prior, agreement):
    family, rng, k = Family(prior), np.random.default_rng(0), len(prior)

    def rows(named, unstable):
        return np.hstack([columns(named, k), columns(unstable, k)])

    named, unstable, y, domain = family.training(4000, rng)
    own = list(range(1 if k == 2 else k))
    model = StableFeatureBoosting(own).fit(rows(named, unstable), y, sample_domain=domain)
    named, unstable, y = family.draw(8000, agreement, rng)
    X = rows(named, unstable)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AdaptationWarning)
        adapted = model.adapt(X, answer="safe")
    assert np.mean(adapted.predict(X) == y) > np.mean(model.predict(X) == y) - 0.005
