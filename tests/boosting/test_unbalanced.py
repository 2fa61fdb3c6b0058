"""`StableFeatureBoosting` on tables where classes are rare."""

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.frozen import FrozenEstimator
from unbalanced import PRIORS, Family, columns

from sfboost import Settings, StableFeatureBoosting

every_prior = pytest.mark.parametrize("prior", PRIORS.values(), ids=PRIORS)


@every_prior
@pytest.mark.parametrize("agreement", [0.1, 0.5])
def test_the_estimator_on_a_table_does_not_fall_below_the_stable_columns(prior, agreement):
    family, rng, k = Family(prior), np.random.default_rng(0), len(prior)
    named, unstable, y, domain = family.training(4000, rng)
    X = np.hstack([columns(named, k), columns(unstable, k)])
    own = list(range(X.shape[1] // 2))
    model = StableFeatureBoosting(own, learner=None).fit(X, y, sample_domain=domain)
    named, unstable, y = family.draw(8000, agreement, rng)
    X = np.hstack([columns(named, k), columns(unstable, k)])
    stable = model.predict_stable_proba(X)
    assert np.abs(stable - family.stable(named)).mean() < 0.01
    assert np.mean(stable.argmax(axis=1) == y) == pytest.approx(family.stable_ceiling(), abs=0.015)
    assert model.adapt(X, settings=Settings("paper")).score(X, y) > family.ceiling(agreement) - 0.02


def test_a_prefit_classifier_that_names_the_frequent_class_is_not_suspected(recwarn):
    rng = np.random.default_rng(0)
    y = (np.arange(4000) % 500 == 0).astype(int)
    X = y[:, None] + rng.normal(size=(4000, 2))
    prefit = FrozenEstimator(DummyClassifier().fit(X, y))
    model = StableFeatureBoosting([0], stable=prefit, learner=None)
    model.fit(X, y, sample_domain=np.repeat([0, 1], 2000))
    assert not [w for w in recwarn if "nearly every row" in str(w.message)]
