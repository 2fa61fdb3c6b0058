"""Few rows, many features: the head is shrunk to what rows can carry, and refused if that tells nothing."""

import numpy as np
import pytest

from sfboost import AdaptationRefused, Settings, Training
from sfboost.adaptation import DomainSummary, adapt
from sfboost.adaptation.fitting import fit_unstable
from sfboost.adaptation.problem import UNKNOWN, Problem
from sfboost.adaptation.regularisation import _Effective
from sfboost.adaptation.settings import resolve
from sfboost.heads import SoftLogisticRegression

WIDE = {"n_rows": 1833, "n_features": 451}


def draw(n_rows, n_features, n_telling, seed, sign=1.0, strength=0.5):
    """f_S that is right in 73 of 100 rows, and features of which the first few tell the class."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n_rows)
    f = 1 / (1 + np.exp(-1.2 * (0.6 * (2 * y - 1) + rng.normal(size=n_rows))))
    X = rng.normal(size=(n_rows, n_features))
    X[:, :n_telling] += sign * strength * (2 * y - 1)[:, None]
    return np.column_stack([1 - f, f]), X, y


def unlabelled(stable, X, **more):
    return Problem(stable, X, np.full(len(X), UNKNOWN), np.ones(len(X)), **more)


def domain_head(X, y, sign=1.0):
    head = SoftLogisticRegression(l2=0.03).fit_soft(X, np.eye(2)[y])
    head.coef_ = sign * head.coef_
    return DomainSummary("a", len(y), np.array([0.5, 0.5]), head, np.zeros(X.shape[1]), np.ones(X.shape[1]))


def test_1833_rows_carry_452_parameters_that_are_shrunk():
    stable, X, y = draw(**WIDE, n_telling=40, seed=0)
    adapted = adapt(stable, X, training=Training(leak=0.01))
    assert adapted.decision.kind == "adapted"
    assert "452 parameters, shrunk to" in adapted.decision.reason
    right = stable.argmax(axis=1) == y
    assert np.mean(adapted.predict(stable, X) == y) > right.mean() + 0.1


def test_rows_that_tell_nothing_are_refused_with_what_they_tell():
    stable, X, _ = draw(**WIDE, n_telling=0, seed=0)
    with pytest.warns(AdaptationRefused, match="452 parameters that are shrunk to .* tell nothing of rows"):
        kept = adapt(stable, X)
    np.testing.assert_allclose(kept.predict_proba(stable, X), stable)


def test_a_column_thirty_times_is_one_parameter():
    stable, X, _ = draw(1000, 1, 1, seed=0, strength=1.0)
    many = adapt(stable, np.tile(X, 60))
    assert many.decision.kind == "adapted"
    assert "61 parameters, shrunk to 2" in many.decision.reason


def test_effective_parameters_fall_from_all_to_the_intercept():
    stable, X, _ = draw(500, 20, 0, seed=0)
    count = _Effective(unlabelled(stable, X))
    assert count(1e-12) == pytest.approx(21.0, abs=1e-6)
    assert count(1e12) == pytest.approx(1.0, abs=1e-6)
    for most in (3.0, 10.0):
        assert count(count.least_penalty(most)) == pytest.approx(most)


def test_few_rows_lean_on_the_heads_of_training_where_these_speak_as_the_rows_do():
    stable, X, y = draw(400, 60, 60, seed=0, strength=0.15)
    _, X_train, y_train = draw(5000, 60, 60, seed=1, strength=0.15)
    right = {}
    for name, sign in (("none", None), ("same", 1.0), ("opposite", -1.0)):
        heads = () if sign is None else (domain_head(X_train, y_train, sign),)
        adapted = adapt(stable, X, training=Training(leak=0.0, heads=heads))
        assert "61 parameters, shrunk to" in adapted.decision.reason
        right[name] = np.mean(adapted.predict(stable, X) == y)
    assert right["same"] > right["none"] + 0.02
    # Held-out rows are less likely under heads that say the opposite, so these are left out.
    assert right["opposite"] == right["none"]


def test_a_head_around_a_centre_is_the_same_fit_where_the_penalty_is_nothing():
    stable, X, _ = draw(4000, 3, 3, seed=0)
    centre = np.array([[1.0, -1.0, 0.5, 0.2]])
    problem, around = unlabelled(stable, X), unlabelled(stable, X, centre=centre)
    plain, moved = (fit_unstable(part, resolve(Settings()), 1e-9) for part in (problem, around))
    np.testing.assert_allclose(moved.head.coef_, plain.head.coef_, atol=1e-4)
    np.testing.assert_allclose(moved.history, plain.history, atol=1e-8)
    held = fit_unstable(around, resolve(Settings()), 1e9)
    np.testing.assert_allclose(held.head.coef_, centre[:, :-1], atol=1e-6)
