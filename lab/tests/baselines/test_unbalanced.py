"""Trainers and adapters where classes are rare."""

import warnings

import numpy as np
import pytest
from unbalanced import PRIORS, Family, columns

from sfboost import AdaptationWarning
from sfboost_lab.baselines import ADAPTERS
from sfboost_lab.baselines.columns import ColumnSFB
from sfboost_lab.baselines.contract import FeaturePredictor, LabelledRows, LinearHead
from sfboost_lab.baselines.sfb import Flattened

every_prior = pytest.mark.parametrize("prior", PRIORS.values(), ids=PRIORS)


def rows(family, named, unstable):
    return np.hstack([columns(named, family.n_classes), columns(unstable, family.n_classes)])


@pytest.fixture(scope="module", params=PRIORS.values(), ids=PRIORS)
def fitted(request):
    family, rng = Family(request.param), np.random.default_rng(2)
    named, unstable, y, domain = family.training(4000, rng, (0.8, 0.6))
    X = rows(family, named, unstable)
    stable = list(range(X.shape[1] // 2))
    return family, ColumnSFB(stable=stable).fit(LabelledRows(X, y, domain))


@pytest.mark.long
@pytest.mark.parametrize("name", ["sfb", "sfb-paper", "sfb-leak"])
def test_the_sfb_adapters_reach_the_ceiling_or_keep_the_stable_accuracy(fitted, name):
    family, model = fitted
    named, unstable, y = family.draw(8000, 0.1, np.random.default_rng(3))
    X = rows(family, named, unstable)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AdaptationWarning)
        adapted = ADAPTERS[name]().adapt(model, X)
    assert np.mean(adapted.predict(X) == y) > family.ceiling(0.1) - 0.02
    np.testing.assert_allclose(adapted.predict_proba(X).mean(axis=0), family.prior, atol=0.03)


@pytest.mark.long
def test_a_flattened_predictor_has_the_exact_posterior_of_the_stable_columns(fitted):
    family, model = fitted
    named, unstable, _ = family.draw(4000, 0.5, np.random.default_rng(4))
    X = rows(family, named, unstable)
    flat = Flattened(model).predict_proba(X)
    assert np.abs(flat - family.stable(named)).sum(axis=1).mean() / 2 < 0.04


@every_prior
@pytest.mark.parametrize("name", ["none", "pl-last", "tent"])
def test_adapters_of_an_exact_head_stay_near_it_where_nothing_moved(prior, name):
    """Published SHOT and T3A do not: one pulls towards equal shares, the other drops the intercept."""
    family, k = Family(prior), len(prior)
    named, _, y = family.draw(4000, 0.5, np.random.default_rng(0))
    table = np.log(family.stable(np.arange(k)))
    head = LinearHead(table.T, np.zeros(k))  # features are the one-hot X_S
    before = FeaturePredictor(np.arange(k), head)
    after = ADAPTERS[name]().adapt(before, np.eye(k)[named])
    accuracy = np.mean(after.predict(np.eye(k)[named]) == y)
    assert accuracy > np.mean(before.predict(np.eye(k)[named]) == y) - 0.01
