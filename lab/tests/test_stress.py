"""Stress domains have the agreement they promise, and rank candidates by it."""

import numpy as np
import pytest

from sfboost_lab.stress import stress_domains, stress_test


def _labelled(n=6000, agreement=0.85, n_classes=2, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n)
    other = (y + rng.integers(1, n_classes, n)) % n_classes
    return y, np.where(rng.random(n) < agreement, y, other), rng


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("agreement", [0.0, 0.1, 0.5, 0.9, 1.0])
def test_a_stress_domain_has_the_agreement_and_class_shares_asked_for(agreement, n_classes):
    y, guess, _ = _labelled(n_classes=n_classes)
    (domain,) = stress_domains(y, guess, agreements=[agreement])
    rows = domain.rows
    assert (guess[rows] == y[rows]).mean() == pytest.approx(agreement, abs=0.01)
    before, after = np.bincount(y) / len(y), np.bincount(y[rows]) / len(rows)
    np.testing.assert_allclose(after, before, atol=0.01)
    assert len(np.unique(rows)) == len(rows)


def test_within_label_and_guess_nothing_else_changes():
    y, guess, rng = _labelled(n=40_000)
    other = rng.normal(size=len(y)) + y + 0.5 * guess
    (domain,) = stress_domains(y, guess, agreements=[0.2])
    rows = domain.rows
    for label in (0, 1):
        for value in (0, 1):
            old = other[(y == label) & (guess == value)]
            new = other[rows][(y[rows] == label) & (guess[rows] == value)]
            error = np.sqrt(old.var() / len(old) + new.var() / len(new))
            assert abs(old.mean() - new.mean()) < 4 * error


def test_the_size_is_the_largest_possible_or_the_one_asked_for():
    y, guess, _ = _labelled(agreement=0.85)
    (largest,) = stress_domains(y, guess, agreements=[0.1])
    wrong = (guess != y).sum()
    assert len(largest.rows) == pytest.approx(wrong / 0.9, rel=0.05)
    (asked,) = stress_domains(y, guess, agreements=[0.1], n_rows=200)
    assert len(asked.rows) == pytest.approx(200, abs=2)


def test_the_best_candidate_is_the_one_that_adapts():
    y, guess, rng = _labelled(n=8000)
    stable = np.where(rng.random(8000) < 0.75, y, 1 - y)
    proba = np.where(stable[:, None] == np.arange(2), 0.75, 0.25)

    def trusting(p, X):
        return np.where(np.arange(2) == X, 0.85, 0.15)

    def knowing(p, X):
        # Looks at how stable and unstable go together, as a real adapter does.
        same = (p.argmax(1) == X[:, 0]).mean() > 0.5
        return trusting(p, X if same else 1 - X)

    domains = stress_domains(y, guess, agreements=[0.1, 0.9])
    candidates = {"stable": lambda p, X: p, "trusting": trusting, "knowing": knowing}
    table = stress_test(candidates, proba, guess[:, None], y, domains)
    assert table.names[table.accuracy.mean(axis=1).argmax()] == "knowing"
    np.testing.assert_allclose(table.accuracy[1], [0.1, 0.9], atol=0.01)
    np.testing.assert_allclose(table.accuracy[2], [0.9, 0.9], atol=0.01)


def test_impossible_wishes_are_refused():
    y = np.tile([0, 1], 50)
    with pytest.raises(ValueError, match="probability"):
        stress_domains(y, y, agreements=[1.5])
    with pytest.raises(ValueError, match="agreement 0"):
        stress_domains(y, y, agreements=[0.1])
    with pytest.raises(ValueError, match="at least one"):
        stress_test({}, np.full((100, 2), 0.5), y[:, None], y, [])
