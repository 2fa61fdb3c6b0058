from copy import copy

import numpy as np
import pytest

import sfboost
from sfboost.report import TrainingFacts
from sfboost.report.training import raw_slopes


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


def test_the_evaluation_is_kept_with_its_reasons(case):
    assert {row["domain"] for row in case.training.evaluation} == {"north", "south", "east"}
    assert all(row["reason"] for row in case.training.evaluation)
