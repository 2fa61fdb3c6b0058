"""The alarm's null is f_S ⟂ X_U | Y, whatever the learner; and a verdict needs a size beside a test."""

import warnings

import numpy as np
import pytest
from scipy.special import expit
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from sfboost import AdaptationRefused, StableFeatureBoosting
from sfboost.diagnostics import (
    CheckInputs,
    NewRows,
    Recalibration,
    make_new_rows,
    make_training_rows,
    new_domain_alarm,
)
from sfboost.diagnostics.complementarity import check_complementarity
from sfboost.diagnostics.informativeness import check_calibration
from sfboost.diagnostics.new_domain import check_new_domain, linearity_test
from sfboost.diagnostics.stability import check_stability

LEARNERS = {
    "tree": lambda: DecisionTreeClassifier(max_depth=5, min_samples_leaf=20, random_state=0),
    "forest": lambda: RandomForestClassifier(15, min_samples_leaf=4, random_state=0),
    "boosting": lambda: HistGradientBoostingClassifier(max_iter=20, random_state=0),
    "logistic": LogisticRegression,
}


def draw(n, rng, *, base=0.0, leak=0.0, agreement=1.0):
    """Rows of one domain; without a leak X_U depends on the label alone, so complementarity is exact."""
    X = rng.normal(0.3 * rng.normal(), 1.0, size=(n, 4))
    log_odds = 1.2 * X[:, 0] + np.sin(2 * X[:, 1]) + 0.4 * X[:, 0] * X[:, 2] + base
    y = (rng.random(n) < expit(log_odds)).astype(int)
    return X, agreement * (2 * y - 1)[:, None] + leak * log_odds[:, None] + rng.normal(size=(n, 1)), y


def new_rows(learner, seed, **changes):
    """f_S fitted to one half of the training rows, its errors measured on the other."""
    rng = np.random.default_rng(seed)
    base = changes.get("base", 0.0)
    (X1, _, y1), (X2, _, y2) = (draw(1200, rng, base=base) for _ in range(2))
    fitted = learner().fit(np.vstack([X1[:600], X2[:600]]), np.r_[y1[:600], y2[:600]])
    held_out, labels = np.vstack([X1[600:], X2[600:]]), np.r_[y1[600:], y2[600:]]
    errors = Recalibration.fit(fitted.predict_proba(held_out), labels, np.repeat([0, 1], 600))
    X, U, _ = draw(changes.pop("n", 2000), rng, agreement=-1.0, **changes)
    return NewRows(fitted.predict_proba(X), U, errors)


@pytest.mark.parametrize("base", [0.0, -3.7], ids=["balanced", "five percent positive"])
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.long] * (name in ("forest", "boosting"))) for name in LEARNERS],
)
def test_with_exact_complementarity_no_learner_raises_the_alarm(name, base):
    """30 draws: more than 6 rejections at level .05, or one at .001, have a chance of 4 in 10 000."""
    rows = [new_rows(LEARNERS[name], seed, base=base) for seed in range(30)]
    p_values = np.array([linearity_test(new)[0].p_value for new in rows])
    assert (p_values < 0.05).sum() <= 6
    assert sum(new_domain_alarm(new) is not None for new in rows) <= 1


@pytest.mark.parametrize("name", LEARNERS)
def test_a_leak_in_the_new_domain_is_seen_with_every_learner(name):
    rows = [new_rows(LEARNERS[name], seed, leak=-1.2, n=4000) for seed in range(6)]
    assert sum(new_domain_alarm(new) is not None for new in rows) >= 5


def test_what_f_s_leaves_out_of_x_s_may_follow_x_u():
    """The method uses f_S alone: a column that f_S does not show cannot mislead it."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 2))
    posterior = expit(1.5 * X[:, 0])
    y = (rng.random(4000) < posterior).astype(int)
    U = (2 * y - 1) + X[:, 1] + rng.normal(size=4000)
    assert new_domain_alarm(make_new_rows(posterior, U)) is None


def test_a_decision_tree_adapts_where_complementarity_is_exact():
    for seed in range(4):
        rng = np.random.default_rng(seed)
        parts = [draw(1500, rng, agreement=a) for a in (2.0, 1.0)]
        table = np.vstack([np.column_stack(part[:2]) for part in parts])
        model = StableFeatureBoosting([0, 1, 2, 3], stable=DecisionTreeClassifier(max_depth=2), learner=None)
        model.fit(table, np.concatenate([part[2] for part in parts]), np.repeat(["a", "b"], 1500))
        X, U, y = draw(3000, rng, agreement=-2.0)
        new = np.column_stack([X, U])
        with warnings.catch_warnings():
            warnings.simplefilter("error", AdaptationRefused)
            adapted = model.adapt(new, answer="safe")
        stable = model.predict_stable_proba(new).argmax(axis=1)
        assert adapted.score(new, y) > np.mean(stable == y) + 0.1


def test_the_recalibration_finds_the_true_probability_and_its_interval_covers_it():
    rng = np.random.default_rng(0)
    covered = []
    for _ in range(40):
        claimed = rng.uniform(0.05, 0.95, 4000)
        y = (rng.random(4000) < claimed**2).astype(int)
        found = Recalibration.fit(np.column_stack([1 - claimed, claimed]), y, np.arange(4000) % 2)
        cell = found.cell_of(np.column_stack([1 - claimed, claimed]))
        truth = np.array([(claimed**2 - claimed)[cell == j].mean() for j in range(len(found.shift))])
        off = np.abs(found.shift[:, 1] - truth) / np.sqrt(found.covariance[:, 1, 1])
        covered.append((off < 1.96).mean())
        np.testing.assert_allclose(found.shift.sum(axis=1), 0.0, atol=1e-12)
    assert 0.93 <= np.mean(covered) <= 0.99


def test_a_score_that_errs_as_it_did_in_training_raises_no_alarm():
    """Taken at its word it would: Pr[Y | f_S] is its sixth power."""
    rng = np.random.default_rng(0)
    claimed = rng.uniform(0.05, 0.95, 40_000)
    f, y = np.column_stack([1 - claimed, claimed]), (rng.random(40_000) < claimed**6).astype(int)
    U = (2 * y - 1)[:, None] + rng.normal(size=(40_000, 1))
    held_out, new = slice(None, 20_000), slice(20_000, None)
    errors = Recalibration.fit(f[held_out], y[held_out], np.arange(20_000) % 2)
    assert new_domain_alarm(NewRows(f[new], U[new], errors)) is None
    assert new_domain_alarm(NewRows(f[new], U[new])) is not None


# -- a test and a size ----------------------------------------------------------------------------------


def very_many(*, leak=0.0, sharpness=1.0, offsets=(0.0, 0.0, 0.0)):
    """600 000 rows that satisfy everything but for a hair-breadth, which a test of this size sees."""
    rng = np.random.default_rng(0)
    n = 600_000
    domain = np.arange(n) % 3
    x = rng.normal(np.array([-0.3, 0.0, 0.3])[domain], 1.0)
    y = (rng.random(n) < expit(2.0 * x)).astype(int)
    U = (2 * y - 1) + leak * x + rng.normal(size=n)
    f = expit(2.0 * sharpness * x + np.array(offsets)[domain])
    return CheckInputs(make_training_rows(f, y, domain, U), make_new_rows(f, U))


@pytest.mark.long
@pytest.mark.parametrize(
    ("check", "breadth"),
    [
        (check_new_domain, {"sharpness": 1.1}),
        (check_complementarity, {"leak": 0.02}),
        (check_calibration, {"sharpness": 1.01}),
        (check_calibration, {"offsets": (0.02, 0.0, -0.02)}),
        (check_stability, {"offsets": (0.02, 0.0, -0.02)}),
    ],
)
def test_what_only_very_many_rows_can_see_is_no_violation(check, breadth):
    inputs = very_many(**breadth)
    if check is check_new_domain:
        inputs = CheckInputs(None, inputs.new)
    result = check(inputs)
    assert result.p_value < 1e-3  # the test alone would reject
    assert (result.verdict, result.remedy) == ("holds", "")
    if check is check_new_domain:
        assert new_domain_alarm(inputs.new) is None
