"""An explanation is one of the answer that is given, and of nothing else."""

import numpy as np
import pytest

from sfboost import Settings, StableFeatureBoosting


def drawn(agreement, n, seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    u = np.where(rng.random(n) < agreement, y, 1 - y) + rng.normal(0, 0.3, n)
    return np.c_[y + rng.normal(0, 1.0, n), y + rng.normal(0, 1.5, n), u], y


@pytest.fixture(scope="module")
def model():
    parts = [drawn(agreement, 800, seed) for seed, agreement in enumerate((0.85, 0.9, 0.8))]
    X, y = (np.concatenate(part) for part in zip(*parts, strict=True))
    return StableFeatureBoosting([0, 1]).fit(X, y, np.repeat(["p", "q", "r"], 800))


def test_a_pooled_answer_is_accounted_for_by_all_features(model):
    new = drawn(0.85, 800, 7)[0]
    adapted = model.adapt(new)
    assert set(adapted.weights_) == {"pooled"}
    why = adapted.explain(new[3])
    assert why.stable is why.unstable is why.prior is None
    assert not why.stable_alone
    np.testing.assert_allclose(why.joint, adapted.predict_log_proba(new[3:4])[0])
    total = why.features.sum(axis=0) + why.stable_features.sum(axis=0) + why.baseline
    np.testing.assert_allclose(total, why.joint)
    assert len(why.stable_names) == 2
    assert len(why.feature_names) == 1
    np.testing.assert_allclose([*why.stable_values, *why.feature_values], new[3])
    assert "stable" not in str(why)


def test_what_a_feature_adds_is_what_the_answer_says_less_for_its_expected_value(model):
    new = drawn(0.85, 800, 7)[0]
    adapted, row = model.adapt(new), new[3:4]
    rows, feature_model = model.answer_rows(row), model.training_.record.feature_model
    for column in range(3):
        S, U = feature_model.expected(rows, np.array([column]))
        expected = np.hstack([S, U])
        others = [k for k in range(3) if k != column]
        np.testing.assert_allclose(expected[:, others], row[:, others])
        assert abs(expected[0, column] - row[0, column]) > 1e-3
        why = adapted.explain(row)
        added = np.vstack([why.stable_features, why.features])[column]
        less = adapted.predict_log_proba(row)[0] - adapted.predict_log_proba(expected)[0]
        np.testing.assert_allclose(added, less, atol=1e-9)


def test_the_stable_and_unstable_parts_are_shown_where_sfb_is_the_answer(model):
    new = drawn(0.1, 800, 7)[0]
    why = model.adapt(new, settings=Settings("paper")).explain(new[3])
    assert why.stable is not None
    assert "log unstable" in str(why)
