"""A verdict for each feature: changed, unchanged, or cannot tell."""

import numpy as np
import pytest

from sfboost.shift import DomainData, Reference, change_in
from sfboost.shift.by_feature import feature_meanings


def domain(rng, signs=(1.0, 1.0, 0.0), n=1500):
    """One stable feature; three unstable ones, of which the last says nothing."""
    y = rng.integers(0, 2, n)
    stable = 1.5 * (2 * y - 1) + rng.normal(size=n)
    U = np.array(signs) * (2 * y - 1)[:, None] + rng.normal(size=(n, 3))
    odds, both = 3.0 * stable, 3.0 * stable + 2.0 * (U[:, 0] + U[:, 1])
    proba, pooled = (1.0 / (1.0 + np.exp(-v)) for v in (odds, both))
    return DomainData.of(proba, U, pooled, stable[:, None]), y


@pytest.fixture(scope="module")
def reference():
    rng = np.random.default_rng(0)
    views, labels = zip(*(domain(rng) for _ in range(4)), strict=True)
    return Reference.learn(views, labels, ["a", "b", "c", "d"], ["first", "second", "noise"])


def told(reference, signs):
    view, _ = domain(np.random.default_rng(9), signs)
    meanings = feature_meanings(reference, view, change_in(reference, view))
    return {meaning.name: meaning for meaning in meanings}


def test_a_feature_that_turned_is_changed_and_one_that_says_nothing_cannot_be_told(reference):
    found = told(reference, (-1.0, 1.0, 0.0))
    verdicts = {name: meaning.verdict for name, meaning in found.items()}
    assert verdicts == {"first": "changed", "second": "unchanged", "noise": "cannot tell"}
    assert found["first"].here < 0.0 < min(found["first"].own.values())
    assert list(found)[-1] == "noise"  # the least important last
    assert "first: changed (-" in str(found["first"])
    assert "noise: cannot tell (p" in str(found["noise"])


def test_where_nothing_changed_nothing_is_called_changed(reference):
    verdicts = {name: meaning.verdict for name, meaning in told(reference, (1.0, 1.0, 0.0)).items()}
    assert verdicts == {"first": "unchanged", "second": "unchanged", "noise": "cannot tell"}
