import numpy as np
import pytest

from sfboost.diagnostics import diagnose, make_new_rows
from sfboost.diagnostics.rows import TrainingRows
from sfboost.diagnostics.stability import BalanceSketch, SupportSketch


@pytest.fixture(scope="module")
def rng():
    return np.random.default_rng(0)


def test_rows_from_where_training_was_are_supported_and_rows_far_away_are_not(rng):
    sketch = SupportSketch.fit(rng.normal(size=(2000, 3)))
    assert sketch.check(rng.normal(size=(500, 3))).verdict == "holds"
    assert sketch.check(rng.normal(size=(500, 3)) + np.array([0.0, 4.0, 0.0])).verdict == "violated"


def test_one_percent_of_the_training_rows_are_beyond_the_limit(rng):
    X = rng.normal(size=(3000, 2))
    sketch = SupportSketch.fit(X)
    assert np.mean(sketch.distance(X) > sketch.limit) == pytest.approx(0.01, abs=0.001)


def test_a_sketch_keeps_centres_and_not_rows(rng):
    X = rng.normal(size=(400, 2))
    sketch = SupportSketch.fit(X)
    assert len(sketch.centres) == 20
    rows = (X - sketch.mean) / sketch.spread
    nearest = np.sqrt(((rows[:, None] - sketch.centres) ** 2).sum(axis=2)).min(axis=0)
    assert (nearest > 1e-6).mean() > 0.9


def test_columns_of_one_value_have_a_sketch(rng):
    X = np.column_stack([rng.integers(0, 2, 300), np.full(300, 7.0)])
    sketch = SupportSketch.fit(X)
    assert sketch.check(X).verdict == "holds"
    assert sketch.check(X + np.array([0.0, 1.0])).verdict == "violated"


def test_drift_from_the_sketch_is_drift_from_the_rows(rng):
    """Mean, covariance and shares are all that the check of the diagnostics uses."""
    stable = rng.dirichlet([2.0, 1.0, 1.0], 600)
    y, domain = rng.integers(0, 3, 600), np.repeat(np.array(["a", "b"], dtype=object), 300)
    new = rng.dirichlet([1.0, 1.0, 4.0], 200)
    exact = diagnose(TrainingRows(stable, y, domain), make_new_rows(new))["prior drift"]
    shares = {str(d): np.bincount(y[domain == d], minlength=3) / 300 for d in ("a", "b")}
    sketch = BalanceSketch(stable.mean(axis=0), np.cov(stable.T), shares, 600)
    found = sketch.check(new)
    assert found.statistic == pytest.approx(exact.statistic)
    assert found.standard_error == pytest.approx(exact.standard_error)
    assert found.verdict == exact.verdict == "doubtful"
    assert found.sentence == exact.sentence
