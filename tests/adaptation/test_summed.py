"""Passes that return sums give the adaptation that all rows at once give."""

from functools import reduce
from operator import add

import numpy as np
import pytest

from sfboost import Settings, Training
from sfboost.adaptation import AdaptationRefused, adapt
from sfboost.adaptation.fitting import START_ROWS
from sfboost.adaptation.likelihood_sums import Point, likelihood_sums
from sfboost.adaptation.row_sample import RowSketch, row_keys
from sfboost.adaptation.settings import resolve
from sfboost.adaptation.standardize import Standardizer
from sfboost.adaptation.summed import Overview, adapt_summed
from sfboost.heads.objectives import log_proba_from_logits
from sfboost.marginal import PseudoLabelStatistics, log_weights
from sfboost.marginal.likelihood import log_likelihood_rows


def draw(n_rows, n_features, n_classes, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n_rows)
    means = 1.2 * rng.normal(size=(n_classes, 3))
    x = means[y] + rng.normal(size=(n_rows, 3))
    f = np.exp(x @ means.T - 0.5 * (means**2).sum(axis=1))
    X = rng.normal(size=(n_rows, n_features)) + 1.5 * rng.normal(size=(n_classes, n_features))[y]
    return f / f.sum(axis=1, keepdims=True), 3.0 * X + 50.0


def summed(stable, X, *, size, answer="safe", settings=None, transport="posterior", training=None):
    choices = resolve(settings, transport=transport)
    keys = row_keys(stable, X, np.full(len(X), -1), np.ones(len(X)))
    some = RowSketch.of(keys, START_ROWS).draw(START_ROWS)
    overview = Overview(
        PseudoLabelStatistics.from_proba(stable), Standardizer.fit(X, np.ones(len(X))), stable[some], X[some]
    )

    def over_all(function):
        starts = range(0, len(X), size)
        return reduce(add, (function(stable[i : i + size], X[i : i + size]) for i in starts))

    names = np.arange(stable.shape[1])
    return adapt_summed(
        overview,
        over_all,
        choices,
        classes=names,
        training=training or Training(leak=0.01),
        answer=answer,
        uncertainty=True,
    )


@pytest.mark.parametrize(("n_rows", "n_features", "n_classes"), [(1500, 3, 2), (22_000, 2, 2), (3000, 2, 3)])
def test_predictions_decision_and_errors_are_those_of_all_rows_at_once(n_rows, n_features, n_classes):
    stable, X = draw(n_rows, n_features, n_classes)
    here = adapt(stable, X, training=Training(leak=0.01), answer="safe", uncertainty=True)
    there = summed(stable, X, size=997)
    assert there.cross_fit.l2 == here.cross_fit.l2
    assert there.decision == here.decision
    np.testing.assert_allclose(there.predict_proba(stable, X), here.predict_proba(stable, X), atol=1e-6)
    for name in ("prior", "confusion", "informativeness", "coef", "intercept", "accuracy", "stable_accuracy"):
        ours, theirs = getattr(there.uncertainty, name), getattr(here.uncertainty, name)
        np.testing.assert_allclose(ours.value, theirs.value, atol=1e-4)
        np.testing.assert_allclose(ours.standard_error, theirs.standard_error, rtol=1e-4)


def test_label_shift_is_the_same_too():
    stable, X = draw(1500, 2, 3)
    training = Training(leak=0.01, source_prior=np.array([0.5, 0.3, 0.2]))
    here = adapt(stable, X, training=training, transport="likelihood", answer="safe", uncertainty=True)
    there = summed(stable, X, size=400, transport="likelihood", training=training)
    np.testing.assert_allclose(there.prior, here.prior, atol=1e-6)
    ours, theirs = there.uncertainty.accuracy, here.uncertainty.accuracy
    np.testing.assert_allclose(ours.standard_error, theirs.standard_error, rtol=1e-4)
    np.testing.assert_allclose(there.predict_proba(stable, X), here.predict_proba(stable, X), atol=1e-6)


def test_a_head_too_wide_for_second_derivatives_is_the_same():
    stable, X = draw(2500, 60, 7)
    assert 61 * 7 > 400
    here = adapt(stable, X, answer="paper", settings=Settings(l2=0.01))
    there = summed(stable, X, size=600, answer="paper", settings=Settings(l2=0.01))
    np.testing.assert_allclose(there.predict_proba(stable, X), here.predict_proba(stable, X), atol=2e-6)


def test_too_few_rows_keep_the_stable_predictor():
    stable, X = draw(40, 5, 2)
    with pytest.warns(AdaptationRefused, match="rows are worth"):
        assert summed(stable, X, size=7).decision.kind == "kept stable"


def test_other_heads_are_refused_in_a_sentence():
    stable, X = draw(300, 2, 2)
    with pytest.raises(ValueError, match="default head"):
        summed(stable, X, size=100, settings=Settings(correction="posthoc"))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_rows_where_both_predictors_are_certain_and_contradict_each_other_count_too(n_classes):
    rng = np.random.default_rng(0)
    X = 40.0 * rng.normal(size=(60, 2))
    stable = np.eye(n_classes)[rng.integers(0, n_classes, 60)]
    stable[30:] = rng.dirichlet(np.ones(n_classes), 30)
    theta = 20.0 * rng.normal(size=(1 if n_classes == 2 else n_classes, 3))
    prior = stable.mean(axis=0)
    sums = likelihood_sums(stable, X, Point(theta, prior, Standardizer(np.zeros(2), np.ones(2))))
    logits = np.column_stack([X, np.ones(60)]) @ theta.T
    log_unstable = log_proba_from_logits(logits)
    rows = log_likelihood_rows(log_unstable, log_weights(stable, prior))
    assert sums.value == pytest.approx(-rows.sum(), rel=1e-12)
    assert rows.min() < -600.0
    joint = np.exp(log_unstable + log_weights(stable, prior) - rows[:, None])
    np.testing.assert_allclose(sums.joint, stable.T @ joint, atol=1e-9)
    assert all(np.isfinite(np.asarray(getattr(sums, part))).all() for part in vars(sums))
