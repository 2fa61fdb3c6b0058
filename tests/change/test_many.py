"""The change test in many domains, with false discoveries held over all of them."""

import numpy as np
import pytest

from sfboost.change import Reference, View, change_in
from sfboost.change.many import ManyChanges


def domain(n_rows, slope, rng):
    """f_S from one stable column, two unstable ones, and a pooled classifier that knows slope 1."""
    y = rng.integers(0, 2, n_rows)
    sign = 2 * y - 1
    stable = 0.8 * sign + rng.normal(size=n_rows)
    unstable = slope * sign[:, None] + rng.normal(size=(n_rows, 2))
    logit = 1.6 * stable
    f, pooled = (1.0 / (1.0 + np.exp(-z)) for z in (logit, logit + 2.0 * unstable.sum(axis=1)))
    proba = [np.column_stack([1.0 - p, p]) for p in (f, pooled)]
    return View.of(proba[0], unstable, proba[1], stable[:, None]), y


def changes_by_domain(reference, views, level=0.05):
    many = ManyChanges.measure(reference, views.values(), level=level)
    return {name: many.change(reference, number) for number, name in enumerate(views)}


@pytest.fixture(scope="module")
def reference():
    rng = np.random.default_rng(0)
    views, labels = zip(*(domain(500, slope, rng) for slope in rng.normal(1.0, 0.3, 6)), strict=True)
    return Reference.learn(views, labels, list("abcdef"))


@pytest.fixture(scope="module")
def views():
    rng = np.random.default_rng(1)
    slopes = np.where(np.arange(60) < 15, -1.0, rng.normal(1.0, 0.3, 60))
    return {f"shop {i}": domain(150, slope, rng)[0] for i, slope in enumerate(slopes)}


def test_each_domain_has_the_p_value_that_it_has_alone(reference, views):
    many = changes_by_domain(reference, views)
    for name in ("shop 3", "shop 40"):
        alone = change_in(reference, views[name])
        assert many[name].p_value == pytest.approx(alone.p_value, rel=1e-9)
        assert many[name].power == pytest.approx(alone.power, rel=1e-9)


def test_a_few_domains_have_the_features_that_they_have_alone_and_many_hear_what_happened_elsewhere(
    reference, views
):
    some = {name: views[name] for name in ("shop 3", "shop 40")}
    alone = {name: change_in(reference, view) for name, view in some.items()}
    few, many = changes_by_domain(reference, some), changes_by_domain(reference, views)
    assert all(few[name].features == alone[name].features for name in some)
    # In shop 3, as in fourteen others, all of it is the opposite.
    assert many["shop 3"].features[0].left < alone["shop 3"].features[0].left


def test_those_that_changed_are_found_and_a_verdict_by_chance_does_not_last(reference, views):
    many = changes_by_domain(reference, views)
    found = {name for name, change in many.items() if change.verdict == "changed"}
    changed = {f"shop {i}" for i in range(15)}
    assert changed <= found
    assert len(found - changed) <= 3
    calm = {name: view for name, view in views.items() if name not in changed}
    alone = {
        name for name, view in calm.items() if change_in(reference, view, level=0.2).verdict == "changed"
    }
    together = {
        name
        for name, change in changes_by_domain(reference, calm, level=0.2).items()
        if change.verdict == "changed"
    }
    assert together < alone


def test_of_a_handful_of_rows_nothing_can_be_told(reference, views):
    few, _ = domain(12, -1.0, np.random.default_rng(2))
    assert changes_by_domain(reference, {"few": few, **views})["few"].verdict == "cannot tell"


def test_small_domains_are_not_called_changed_more_often_than_large_ones(reference):
    rng = np.random.default_rng(3)
    many = ManyChanges.measure(reference, [domain(25, 1.0, rng)[0] for _ in range(300)])
    assert (many.p_value < 0.05).mean() < 0.08
