"""When the stable predictor is kept, and what a user is told."""

import re
import warnings

import numpy as np
import pytest
from joints import GaussianFamily, draw_anticausal

from sfboost import AdaptationRefused, AdaptationWarning, Settings, Training
from sfboost.adaptation import StableEvidence, adapt
from sfboost.adaptation.decision import Amount
from sfboost.adaptation.problem import UNKNOWN, Problem
from sfboost.heads import SoftLogisticRegression


def rows(n, agreement=0.1):
    X, _ = draw_anticausal(n, agreement, seed=0)
    return np.where(X[:, 0] > 0, 0.75, 0.25), X[:, 1:]


def test_too_few_rows_keep_the_stable_predictor_and_say_the_number():
    stable, X = rows(100)
    told = r"100 rows are worth 2[45] labels.*2 parameters need 30.*Settings\('paper'\) adapts all the same"
    with pytest.warns(AdaptationRefused, match=told):
        kept = adapt(stable, X)
    assert kept.decision.kind == "kept stable"
    assert kept.head is None
    assert kept.rounds == 0
    np.testing.assert_allclose(kept.predict_proba(stable, X)[:, 1], stable)
    np.testing.assert_allclose(kept.unstable_proba(X), np.tile(kept.prior, (100, 1)))


def test_ten_effective_labels_per_parameter_are_needed_of_a_head_that_is_not_shrunk():
    stable, X = rows(1000)  # worth 250 labels
    for settings in (Settings(l2=0.01), Settings(head=SoftLogisticRegression())):
        assert adapt(stable, np.tile(X, 20), settings=settings).decision.kind == "adapted"
        with pytest.warns(AdaptationRefused, match="31 parameters need 310"):
            adapt(stable, np.tile(X, 30), settings=settings)


def test_the_paper_adapts_where_others_refuse_and_warns():
    stable, X = rows(100)
    with pytest.warns(AdaptationWarning, match=r"^Adapted although 100 rows are worth") as caught:
        adaptation = adapt(stable, X, refuse=False)
    assert not any(issubclass(warning.category, AdaptationRefused) for warning in caught)
    assert adaptation.decision.kind == "adapted"
    assert "as asked, although 100 rows" in adaptation.decision.reason
    assert adaptation.warnings[0] == str(caught[0].message)


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
    with pytest.warns(AdaptationRefused, match=r"500 held-out training rows .* 0\.001 ± 0\.002 below"):
        adapt(stable, X, training=Training(evidence=StableEvidence(0.001, 0.002, 500)))
    assert (
        adapt(stable, X, training=Training(evidence=StableEvidence(0.1, 0.01, 500))).decision.kind
        == "adapted"
    )
    assert (
        adapt(stable, X, y=[0, 1] * 500, training=Training(evidence=StableEvidence(0, 1, 9))).decision.kind
        == "adapted"
    )


def test_classes_that_cannot_be_told_apart_are_named():
    _, stable, X = GaussianFamily(0, n_classes=3).draw(1000)
    merged = np.column_stack([stable[:, 0], stable[:, 1] / 2, stable[:, 1] / 2, stable[:, 2]])
    with pytest.warns(AdaptationWarning, match="hardly separates the classes b, c"):
        adaptation = adapt(merged, X, classes=["a", "b", "c", "d"], refuse=False)
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


def test_predicted_classes_instead_of_probabilities_are_noticed():
    stable, X = rows(600)
    with pytest.warns(AdaptationWarning, match="not predicted classes"):
        adapt((stable > 0.5).astype(float), X)


def test_certain_stable_predictions_stay_certain():
    stable, X = rows(1000)
    stable = stable.copy()
    stable[:200], stable[200:400] = 1.0, 0.0
    proba = adapt(stable, X).predict_proba(stable, X)
    assert np.isfinite(proba).all()
    np.testing.assert_array_equal(proba[:200, 1], 1)
    np.testing.assert_array_equal(proba[200:400, 1], 0)


@pytest.mark.parametrize("n", range(438, 444))
def test_the_labels_that_are_told_are_those_that_are_decided_by(n):
    """Ten parameters and a row more or less around 110 labels: never "110, and 110 are needed"."""
    stable, X = np.tile([0.25, 0.75], n)[:n], np.random.default_rng(0).normal(size=(n, 10))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        adaptation = adapt(stable, X, settings=Settings(l2=0.01))
    worth = int(re.search(r"(?:worth|as much as) (\d+) labels", adaptation.decision.reason).group(1))
    assert (worth >= 110) == (adaptation.decision.kind == "adapted")
    assert any("need 110" in str(warning.message) for warning in told) == (worth < 110)
    problem = Problem(np.column_stack([1.0 - stable, stable]), X, np.full(n, UNKNOWN), np.ones(n))
    assert Amount(problem).is_wide == (worth < 110)  # else nothing is shrunk
