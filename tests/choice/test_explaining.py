"""An explanation is one of the answer that is given, and of nothing else."""

import numpy as np
import pytest
from gaussian_domains import MIRRORED_U, fitted, rows

from sfboost import Settings


@pytest.fixture(scope="module")
def model():
    return fitted(np.random.default_rng(0), 800, 3)


@pytest.fixture(scope="module")
def new():
    return rows(np.random.default_rng(7), 800)[0]


def test_a_pooled_answer_is_accounted_for_by_all_features(model, new):
    adapted = model.adapt(new)
    assert set(adapted.weights_) == {"pooled"}
    why = adapted.explain(new[3])
    assert why.stable is why.unstable is why.prior is None
    assert not why.stable_alone
    np.testing.assert_allclose(why.joint, adapted.predict_log_proba(new[3:4])[0])
    total = why.features.sum(axis=0) + why.stable_features.sum(axis=0) + why.baseline
    np.testing.assert_allclose(total, why.joint)
    assert len(why.stable_names) == len(why.feature_names) == 2
    np.testing.assert_allclose([*why.stable_values, *why.feature_values], new[3])
    assert "stable" not in str(why)


def test_what_a_feature_adds_is_what_the_answer_says_less_for_its_expected_value(model, new):
    adapted, row = model.adapt(new), new[3:4]
    rows, feature_model = model.answer_rows(row), model.training_.record.feature_model
    for column in range(4):
        S, U = feature_model.expected(rows, np.array([column]))
        expected = np.hstack([S, U])
        others = [k for k in range(4) if k != column]
        np.testing.assert_allclose(expected[:, others], row[:, others])
        assert abs(expected[0, column] - row[0, column]) > 1e-3
        why = adapted.explain(row)
        added = np.vstack([why.stable_features, why.features])[column]
        less = adapted.predict_log_proba(row)[0] - adapted.predict_log_proba(expected)[0]
        np.testing.assert_allclose(added, less, atol=1e-9)


def test_the_stable_and_unstable_parts_are_shown_where_sfb_is_the_answer(model):
    new = rows(np.random.default_rng(7), 800, MIRRORED_U)[0]
    why = model.adapt(new, settings=Settings("paper")).explain(new[3])
    assert why.stable is not None
    assert "log unstable" in str(why)
