"""Class shares of a target domain: towards the truth, where it helps, and never beyond what domains do."""

import numpy as np
import pytest
from scipy.special import log_softmax
from scipy.stats import t as student

from sfboost.choice.shares import ClassShares, _bound, _drift
from sfboost.shift import DomainData

EVEN = np.array([0.5, 0.5])


def data(rng, n, share, drift=0.0):
    """Rows of which all classifiers say what is true at even shares, but for a drift of the pooled one."""
    y = (rng.random(n) < share).astype(int)
    S, U = ((2 * y - 1)[:, None] + rng.normal(size=(n, 1)) for _ in range(2))

    def said(x):
        return log_softmax(np.hstack([-x, x]), axis=1)

    pooled = log_softmax(np.hstack([-S - U, S + U + drift]), axis=1)
    return DomainData(said(S), U, pooled, S, np.full(n, 1 / n), log_unstable=said(U)), y


def learned(rng, shares, drift=0.0):
    rows, labels = zip(
        *(data(rng, 800, share, drift * (-1) ** i) for i, share in enumerate(shares)), strict=True
    )
    return ClassShares.learn(rows, labels, EVEN)


@pytest.mark.parametrize("share", [0.2, 0.8])
def test_shares_move_towards_the_truth(share):
    rng = np.random.default_rng(0)
    known = learned(rng, (0.2, 0.5, 0.8, 0.35, 0.65))
    assert known.helps
    found = known.here(data(rng, 4000, share)[0])
    assert found.sum() == pytest.approx(1.0)
    assert found[1] == pytest.approx(share, abs=0.05)


def test_shares_move_no_farther_than_source_domains_lead_to_expect():
    known = ClassShares(EVEN, drift=0.1, spread=0.4)
    found = known.here(data(np.random.default_rng(1), 4000, 0.95)[0])
    assert np.abs(np.log(found / EVEN) - np.log(found / EVEN).mean()).max() == pytest.approx(0.4)
    assert found[1] > 0.5


def test_shares_stay_where_a_drift_would_explain_the_rows():
    rng = np.random.default_rng(2)
    moved, _ = data(rng, 4000, 0.6)
    assert ClassShares(EVEN, drift=0.05, spread=1.0).here(moved)[1] > 0.55
    np.testing.assert_array_equal(ClassShares(EVEN, drift=1.0, spread=1.0).here(moved), EVEN)


def test_shares_stay_where_one_side_does_not_see_them_move():
    """A pooled classifier that drifts by itself has nothing to do with class shares."""
    drifted, _ = data(np.random.default_rng(3), 20_000, 0.5, drift=1.5)
    found = ClassShares(EVEN, drift=0.1, spread=2.0).here(drifted)
    np.testing.assert_allclose(found, EVEN, atol=0.02)


def test_shares_stay_where_left_out_source_domains_lost_by_it():
    """Three classifiers that drift together: what looks like moved shares is none."""
    rng = np.random.default_rng(4)

    def drifting(share, drift):
        rows, y = data(rng, 800, share, drift)
        both = (rows.log_stable, rows.log_unstable)
        said = [log_softmax(part + np.array([0.0, drift]), axis=1) for part in both]
        return DomainData(
            said[0], rows.unstable, rows.log_pooled, rows.features, rows.weight, log_unstable=said[1]
        ), y

    rows, labels = zip(*(drifting(0.5, drift) for drift in (3.0, 0.3, 0.3, -0.3, -0.3, 0.0)), strict=True)
    known = ClassShares.learn(rows, labels, EVEN)
    assert not known.helps
    np.testing.assert_array_equal(known.here(data(rng, 2000, 0.95)[0]), EVEN)


@pytest.mark.parametrize("shares", [[0.7, 0.3], [0.6, 0.3, 0.1]])
def test_the_drift_makes_the_mean_what_it_is_to_be(shares):
    rng = np.random.default_rng(5)
    proba, weight = rng.dirichlet(np.ones(len(shares)), 300), rng.dirichlet(np.ones(300))
    corrected = proba * np.exp(_drift(proba, weight, np.array(shares)))
    corrected /= corrected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(weight @ corrected, shares, atol=1e-4)


def test_the_bound_on_one_more_domain_is_that_of_six_domains_before_any_is_seen():
    """The guess is of log odds: a class and the other one are half of it off, each in its direction."""
    assert _bound([np.zeros(2)] * 4, 0.2) == pytest.approx(student.ppf(0.975, 10) * 0.1 * np.sqrt(6 / 10))
    seen = [np.array([0.3, -0.3]), np.array([-0.3, 0.3])] * 50
    assert _bound(seen, 0.2) == pytest.approx(1.96 * 0.3, rel=0.05)


def test_class_shares_that_differ_are_no_drift():
    rng = np.random.default_rng(6)
    apart, alike = (learned(rng, shares).drift for shares in ((0.1, 0.9, 0.2, 0.8), (0.5,) * 4))
    assert apart == pytest.approx(alike, abs=0.1)
