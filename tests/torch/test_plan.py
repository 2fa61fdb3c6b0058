"""The plan of training: a value that scikit-learn reaches into, and one place for every default."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the torch extra")

from sklearn.base import clone  # noqa: E402
from sklearn.model_selection import GridSearchCV  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402

from sfboost.torch import Plan, SFBClassifier  # noqa: E402

FAST = Plan(steps=2, unstable_steps=2, min_gain=-9.0, precision="float32")


def _rows(n=60):
    y = np.arange(n) // 2 % 2
    return np.random.default_rng(0).normal(size=(n, 2)) + y[:, None], y, np.arange(n) % 2


def test_parameters_of_the_plan_are_parameters_of_the_classifier():
    model = SFBClassifier(plan=Plan(steps=7))
    assert model.get_params()["plan__steps"] == 7
    assert "plan__steps" not in model.get_params(deep=False)
    model.set_params(plan__steps=8, plan__dropout=0.5, penalty="vrex")
    assert (model.plan, model.penalty) == (Plan(steps=8, dropout=0.5), "vrex")
    pipeline = make_pipeline(StandardScaler(), model).set_params(sfbclassifier__plan__steps=9)
    assert pipeline[-1].plan.steps == 9


def test_setting_a_parameter_of_one_classifier_leaves_all_others_alone():
    first, second, plan = SFBClassifier(), SFBClassifier(), Plan(steps=7)
    third = SFBClassifier(plan=plan)
    fourth = clone(third)
    first.set_params(plan__steps=1)
    fourth.set_params(plan__steps=2)
    assert [m.plan.steps for m in (first, second, third, fourth, SFBClassifier())] == [1, 400, 7, 2, 400]
    assert plan == Plan(steps=7)
    with pytest.raises(AttributeError):
        plan.steps = 8


def test_a_grid_search_goes_over_the_steps_and_fits_with_the_best():
    X, y, _ = _rows()
    search = GridSearchCV(
        SFBClassifier("small", penalty="none", plan=FAST), {"plan__steps": [1, 3]}, cv=2
    ).fit(X, y)
    best = search.best_params_["plan__steps"]
    assert sum(row["stage"] == "stable" for row in search.best_estimator_.history_) == best
    assert search.best_estimator_.plan == FAST.changed(steps=best)


def test_what_is_shown_of_a_plan_makes_it_again():
    plan = Plan(steps=3, precision="float64", cosine=True)
    assert repr(plan) == "Plan(steps=3, cosine=True, precision='float64')"
    assert eval(repr(plan)) == plan
    assert "plan=Plan(steps=3)" in repr(SFBClassifier(plan=Plan(steps=3)))
    assert "plan" not in repr(SFBClassifier(plan=Plan(steps=Plan.steps)))


def test_unknown_fields_and_other_objects_are_answered_with_a_sentence():
    with pytest.raises(ValueError, match=r"A Plan has no step\. It has: steps"):
        SFBClassifier().set_params(plan__step=3)
    X, y, domain = _rows()
    with pytest.raises(TypeError, match=r"must be a sfboost\.torch\.Plan, got dict"):
        SFBClassifier(plan={"steps": 3}).fit(X, y, sample_domain=domain)


def test_the_seed_is_fixed_unless_told_otherwise():
    X, y, domain = _rows()
    one, two, other = (
        SFBClassifier("small", plan=FAST, **told).fit(X, y, sample_domain=domain).predict_proba(X)
        for told in ({}, {"random_state": 0}, {"random_state": None})
    )
    np.testing.assert_array_equal(one, two)
    assert not np.array_equal(one, other)
