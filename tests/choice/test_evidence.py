"""What the unstable features say, apart from what the stable ones do."""

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

import sfboost
from sfboost.shift import DomainData


def copies(seed, n=400, turned=False):
    """X_U repeats X_S with noise: a pooled classifier believes X_S less than f_S does."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    S = np.eye(3)[y] + rng.normal(size=(n, 3))
    U = 0.3 * np.eye(3)[y] + S + rng.normal(size=(n, 3))
    return S, -U if turned else U, y


def test_the_evidence_of_a_linear_classifier_is_its_unstable_part():
    S, U, y = copies(0)
    pooled = LogisticRegression().fit(np.hstack([S, U]), y)
    stable = LogisticRegression().fit(S, y)

    def ask(S, U):
        return pooled.predict_log_proba(np.hstack([S, U]))

    rows = DomainData(stable.predict_log_proba(S), U, ask(S, U), S, np.full(len(S), 1 / len(S)), ask=ask)
    neutral = U.mean(axis=0)
    rows = rows.beside(neutral)
    part = (U - neutral) @ pooled.coef_[:, 3:].T
    np.testing.assert_allclose(rows.evidence, part - part.mean(axis=1, keepdims=True), atol=1e-12)
    some = rows.take(np.array([3, 5]))
    np.testing.assert_allclose(some.evidence, rows.evidence[[3, 5]], atol=1e-12)
    turned = rows.with_unstable(2 * neutral - U)
    np.testing.assert_allclose(turned.evidence, -rows.evidence, atol=1e-12)


def test_probabilities_alone_are_measured_by_the_stable_predictor():
    view = DomainData.of([0.3, 0.6], [[1.0], [2.0]], [0.2, 0.9])
    assert view.beside(np.zeros(1)) is view
    np.testing.assert_allclose(view.evidence.sum(axis=1), 0.0, atol=1e-12)


@pytest.mark.parametrize("turned", [False, True])
def test_features_that_repeat_the_stable_ones_speak_for_them(turned):
    parts = [copies(seed) for seed in range(3)]
    X, y = np.vstack([np.hstack(part[:2]) for part in parts]), np.concatenate([part[2] for part in parts])
    model = sfboost.StableFeatureBoosting([0, 1, 2], learner=None).fit(
        X, y, sample_domain=np.repeat([0, 1, 2], 400)
    )
    S, U, _ = copies(7, turned=turned)
    change = model.adapt(np.hstack([S, U])).shift_.unstable
    assert min(change.own.values()) > 0.1
    assert (change.value < 0) == turned
    assert (change.verdict == "changed") == turned


@pytest.mark.filterwarnings("ignore:The stable predictor was kept")
def test_trees_do_not_hide_what_was_shuffled():
    """Three own domains, features that each say little, and a classifier whose answer has many steps."""

    def domain(seed, n=1000):
        rng = np.random.default_rng(seed)
        y = rng.integers(0, 2, n)
        S = 0.4 * (2 * y - 1)[:, None] + rng.normal(size=(n, 3))
        U = 0.25 * (2 * y - 1)[:, None] * rng.normal(1.0, 0.15, 4) + rng.normal(size=(n, 4))
        return np.hstack([S, U]), y

    parts = [domain(seed) for seed in (200, 201, 202)]
    X, y = np.vstack([part[0] for part in parts]), np.concatenate([part[1] for part in parts])
    trees = HistGradientBoostingClassifier(max_iter=60, max_leaf_nodes=15, random_state=0)
    model = sfboost.StableFeatureBoosting([0, 1, 2], stable=trees, learner=None)
    model.fit(X, y, sample_domain=np.repeat([0, 1, 2], 1000))
    X_new, _ = domain(250)
    before = model.adapt(X_new).shift_.unstable
    assert before.verdict == "unchanged"
    assert before.power > 3.0  # 1.4 where all that trees say counts
    X_new[:, 3:] = X_new[np.random.default_rng(2).permutation(1000)][:, 3:]
    assert model.adapt(X_new).shift_.unstable.p_value < 0.02  # 0.09 there
