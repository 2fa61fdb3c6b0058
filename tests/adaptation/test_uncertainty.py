"""Standard errors: the information is the true second derivative, and intervals cover."""

import numpy as np
import pytest
from sfboost.adaptation.uncertainty import Estimate

from sfboost import Settings
from sfboost.adaptation import adapt


def draw(seed, n_rows=1000, shift=1.0):
    """Two classes, one Gaussian unstable feature with slope 2 · shift on the log-odds."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n_rows)
    stable = 1 / (1 + np.exp(-2.0 * (2 * y - 1 + rng.normal(size=n_rows))))
    unstable = shift * (2 * y - 1)[:, None] + rng.normal(size=(n_rows, 1)) + 3.0
    return stable, unstable, y


def test_with_all_labels_the_errors_are_those_of_logistic_regression():
    stable, unstable, y = draw(0)
    found = adapt(stable, unstable, y=y, settings=Settings(l2=1e-9), uncertainty=True).uncertainty
    design = np.column_stack([unstable, np.ones(len(y))])
    theta = np.append(found.coef.value[0], found.intercept.value)
    q = 1 / (1 + np.exp(-design @ theta))
    bread = np.linalg.inv((design * (q * (1 - q))[:, None]).T @ design)
    meat = (design * ((y - q) ** 2)[:, None]).T @ design
    expected = np.sqrt(np.diag(bread @ meat @ bread))
    np.testing.assert_allclose(found.coef.standard_error[0], expected[0], rtol=1e-4)
    np.testing.assert_allclose(found.intercept.standard_error, expected[1], rtol=1e-4)


def test_missing_labels_cost_information():
    stable, unstable, y = draw(1)
    known = adapt(stable, unstable, y=y, settings=Settings(l2=1e-6), uncertainty=True).uncertainty
    missing = adapt(stable, unstable, settings=Settings(l2=1e-6), uncertainty=True).uncertainty
    assert missing.coef.standard_error[0, 0] > 1.2 * known.coef.standard_error[0, 0]


def test_the_influence_of_a_row_is_what_leaving_it_out_does():
    """The sandwich against the jackknife, which knows nothing of derivatives."""
    stable, unstable, _ = draw(2, n_rows=200)
    found = adapt(stable, unstable, settings=Settings(l2=1e-6), uncertainty=True).uncertainty
    coefs = [
        adapt(
            np.delete(stable, i), np.delete(unstable, i, axis=0), settings=Settings(l2=1e-6), uncertainty=True
        ).uncertainty.coef.value[0, 0]
        for i in range(0, 200, 2)
    ]
    jackknife = np.sqrt(2.0 * np.sum((np.array(coefs) - np.mean(coefs)) ** 2))
    assert found.coef.standard_error[0, 0] == pytest.approx(jackknife, rel=0.2)


@pytest.mark.long
@pytest.mark.parametrize("correction", ["likelihood", "posthoc"])
def test_intervals_cover(correction):
    """A small version of studies/study_coverage.py: 80 draws, so .87 is three sigma below .95."""
    big = draw(10_000, n_rows=200_000)
    truth = adapt(*big[:2], settings=Settings(correction=correction, l2=1e-6), uncertainty=True)
    slope, s = truth.uncertainty.coef.value[0, 0], truth.informativeness
    if correction != "posthoc":  # its head estimates the pseudo-label, not the class
        assert slope == pytest.approx(2.0, abs=0.05)
    hits = {"coef": 0, "s": 0, "accuracy": 0}
    accuracy = float(truth.uncertainty.accuracy.value)
    for seed in range(80):
        stable, unstable, _ = draw(seed)
        found = adapt(
            stable, unstable, settings=Settings(correction=correction, l2=1e-6), uncertainty=True
        ).uncertainty
        for name, estimate, target in (
            ("coef", found.coef, slope),
            ("s", found.informativeness, s),
            ("accuracy", found.accuracy, accuracy),
        ):
            low, high = (float(np.ravel(end)[0]) for end in estimate.interval(0.95))
            hits[name] += low < target < high
    assert all(0.87 <= count / 80 <= 1.0 for count in hits.values()), hits


def test_the_accuracy_estimated_without_labels_is_the_accuracy():
    stable, unstable, y = draw(3, n_rows=20_000)
    adaptation = adapt(stable, unstable, uncertainty=True)
    low, high = adaptation.uncertainty.accuracy.interval(0.999)
    assert low < np.mean(adaptation.predict(stable, unstable) == y) < high
    low, high = adaptation.uncertainty.stable_accuracy.interval(0.999)
    assert low < np.mean((stable > 0.5) == y) < high
    assert "conditional on the stable predictor" in str(adaptation.uncertainty)


def test_many_classes_have_errors_for_every_column():
    rng = np.random.default_rng(5)
    y = rng.integers(0, 3, 1500)
    logits = 1.5 * np.eye(3)[y] + rng.normal(size=(1500, 3))
    f = np.exp(1.5 * logits)
    f /= f.sum(axis=1, keepdims=True)
    found = adapt(f, np.eye(3)[y][:, :2] + rng.normal(size=(1500, 2)), uncertainty=True).uncertainty
    assert found.coef.standard_error.shape == (3, 2)
    assert (found.coef.standard_error > 0.0).all()
    assert (found.confusion.standard_error > 0.0).all()
    np.testing.assert_allclose(found.confusion.value.sum(axis=0), 1.0)


def test_heads_without_known_equations_get_only_what_f_s_says():
    from sklearn.tree import DecisionTreeClassifier

    stable, unstable, _ = draw(6)
    found = adapt(
        stable, unstable, settings=Settings(head=DecisionTreeClassifier(max_depth=2)), uncertainty=True
    ).uncertainty
    assert found.coef is None
    assert found.accuracy is None
    assert float(found.informativeness.standard_error) > 0.0


def test_a_level_outside_zero_and_one_is_refused():
    with pytest.raises(ValueError, match="not a probability"):
        Estimate(np.array(0.0), np.array(1.0)).interval(95)
