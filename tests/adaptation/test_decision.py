"""When the stable predictor is kept, and what a user is told."""

import numpy as np
import pytest
from joints import GaussianFamily, draw_anticausal

from sfboost import AdaptationRefused, AdaptationWarning, adapt
from sfboost.adaptation import StableEvidence


def rows(n, agreement=0.1):
    X, _ = draw_anticausal(n, agreement, seed=0)
    return np.where(X[:, 0] > 0, 0.75, 0.25), X[:, 1:]


def test_too_few_rows_keep_the_stable_predictor_and_say_the_number():
    stable, X = rows(100)
    with pytest.warns(
        AdaptationRefused, match=r"100 rows are worth 2[45] labels.*2 parameters need 30.*force=True"
    ):
        kept = adapt(stable, X)
    assert kept.decision.kind == "kept stable"
    assert kept.head is None
    assert kept.rounds == 0
    np.testing.assert_allclose(kept.predict_proba(stable, X)[:, 1], stable)
    np.testing.assert_allclose(kept.unstable_proba(X), np.tile(kept.prior, (100, 1)))


def test_ten_effective_labels_per_parameter_are_needed():
    stable, X = rows(1000)  # worth 250 labels
    assert adapt(stable, np.tile(X, 20)).decision.kind == "adapted"
    with pytest.warns(AdaptationRefused, match="31 parameters need 310"):
        adapt(stable, np.tile(X, 30))


def test_force_overrides_and_remembers():
    stable, X = rows(100)
    forced = adapt(stable, X, force=True)
    assert forced.decision.kind == "adapted"
    assert "forced, although 100 rows" in forced.decision.reason


def test_known_labels_count_as_labels():
    stable, X = rows(100)
    y = np.where(np.arange(100) < 30, 1, -1)
    y[:15] = 0
    assert adapt(stable, X, y=y).decision.kind == "adapted"


def test_a_constant_stable_predictor_claims_nothing():
    _, X = rows(1000)
    with pytest.warns(AdaptationRefused, match=r"informativeness 0\.000"):
        adapt(np.full(1000, 0.3), X)


def test_evidence_from_training_decides_where_confidence_is_only_a_claim():
    """A confident f_S trained on noise claims much; held-out rows show that it knows nothing."""
    stable, X = rows(1000)
    with pytest.warns(AdaptationRefused, match=r"500 held-out training rows .* 0\.0010 ± 0\.0020 nats"):
        adapt(stable, X, evidence=StableEvidence(0.001, 0.002, 500))
    assert adapt(stable, X, evidence=StableEvidence(0.1, 0.01, 500)).decision.kind == "adapted"
    assert adapt(stable, X, y=[0, 1] * 500, evidence=StableEvidence(0, 1, 9)).decision.kind == "adapted"


def test_classes_that_cannot_be_told_apart_are_named():
    _, stable, X = GaussianFamily(0, n_classes=3).draw(1000)
    merged = np.column_stack([stable[:, 0], stable[:, 1] / 2, stable[:, 1] / 2, stable[:, 2]])
    with pytest.warns(AdaptationWarning, match="hardly separates the classes b, c"):
        adaptation = adapt(merged, X, classes=["a", "b", "c", "d"], force=True)
    assert adaptation.decision.kind == "adapted"
    assert any("b, c" in note for note in adaptation.warnings)
    assert "b, c" in str(adaptation)


def test_a_class_absent_in_the_new_domain_is_named_and_left_to_the_stable_predictor():
    stable, X = rows(1000)
    three = np.column_stack([1 - stable, stable, np.zeros(1000)])
    with pytest.warns(AdaptationWarning, match="Class absent has an expected count of 0"):
        adaptation = adapt(three, X, classes=["ill", "well", "absent"])
    proba = adaptation.predict_proba(three, X)
    assert np.isfinite(proba).all()
    np.testing.assert_array_equal(proba[:, 2], 0)
    two = adapt(stable, X)
    np.testing.assert_allclose(proba[:, :2], two.predict_proba(stable, X), atol=0.02)


def test_certain_stable_predictions_stay_certain():
    stable, X = rows(1000)
    stable = stable.copy()
    stable[:200], stable[200:400] = 1.0, 0.0
    proba = adapt(stable, X).predict_proba(stable, X)
    assert np.isfinite(proba).all()
    np.testing.assert_array_equal(proba[:200, 1], 1)
    np.testing.assert_array_equal(proba[200:400, 1], 0)


def test_only_certain_predictions():
    rng = np.random.default_rng(0)
    stable = rng.integers(0, 2, 500).astype(float)
    X = stable[:, None] + rng.normal(size=(500, 1))
    for correction in ("likelihood", "posthoc", "forward", "backward", "none"):
        proba = adapt(stable, X, correction=correction).predict_proba(stable, X)
        np.testing.assert_array_equal(proba[:, 1], stable)
