from copy import copy

import numpy as np
import pytest

import sfboost
from sfboost.calibration import reliability_curve
from sfboost.report import TrainingFacts
from sfboost.report.training import _pooled, raw_slopes


def test_what_fit_leaves_behind_survives_a_file(case, tmp_path):
    model = copy(case.model)
    model.table_ = case.training.to_dict()
    model.save(tmp_path / "model.sfb")
    again = TrainingFacts.from_dict(sfboost.load(tmp_path / "model.sfb").table_)
    assert again.domains == case.training.domains
    assert again.checks == case.training.checks
    assert again.evaluation == case.training.evaluation


def test_slopes_are_those_of_the_labelled_domains_in_raw_units(case):
    """A slope times a step of the feature is the step in log-odds of the domain's own head."""
    summary, facts = case.model.domains_[0], case.training.domains[0]
    step = np.array([[10.0, 0.0]])
    standard = (np.vstack([np.zeros((1, 2)), step]) - summary.feature_mean) / summary.feature_scale
    log_odds = np.diff(np.log(summary.head.predict_proba(standard)), axis=1).ravel()
    assert log_odds[1] - log_odds[0] == pytest.approx(10.0 * facts.slopes[0][0])


def test_a_feature_that_does_not_vary_has_no_slope():
    assert raw_slopes(np.array([[0.0, 2.0]]), np.array([1.0, 4.0])) == [[None, 0.5]]


def test_slopes_of_many_classes_are_against_their_mean():
    slopes = np.array(raw_slopes(np.array([[3.0], [0.0], [0.0]]), np.ones(1)))
    assert slopes.ravel().tolist() == [2.0, -1.0, -1.0]


def test_the_pooled_curve_is_the_curve_of_all_rows(case):
    """Joined bin by bin from the domains, it is what one curve of all held-out rows would be."""
    curve, sizes = case.training.after, [d.n_rows for d in case.training.domains]
    accuracy = np.dot(curve["weight"], curve["accuracy"])
    by_domain = [d.accuracy for d in case.training.domains]
    assert accuracy == pytest.approx(np.average(by_domain, weights=sizes))
    assert sum(curve["weight"]) == pytest.approx(1.0)
    assert max(curve["confidence"]) <= 1.0
    rng = np.random.default_rng(0)
    p = rng.random(300)
    proba, y = np.column_stack([p, 1 - p]), rng.integers(0, 2, 300)
    parts = [reliability_curve(proba[rows], y[rows]) for rows in (slice(0, 100), slice(100, 300))]
    whole = reliability_curve(proba, y)
    joined = _pooled(parts, [100, 200])
    for name in ("confidence", "accuracy", "weight"):
        np.testing.assert_allclose(joined[name], getattr(whole, name))


def test_the_evaluation_is_kept_with_its_reasons(case):
    assert {row["domain"] for row in case.training.evaluation} == {"north", "south", "east"}
    assert all(row["reason"] for row in case.training.evaluation)
