"""An adapted classifier is a whole scikit-learn classifier: its tools take it as they take any other."""

import numpy as np
import pytest
from joints import draw_anticausal
from sklearn.base import clone, is_classifier
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import recall_score
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.utils.validation import check_is_fitted

from sfboost import Settings, StableFeatureBoosting


@pytest.fixture(scope="module")
def new():
    return draw_anticausal(1500, 0.1, seed=7)


@pytest.fixture(scope="module")
def adapted(new):
    parts = [draw_anticausal(500, agreement, seed) for seed, agreement in enumerate((0.95, 0.7))]
    X, y = (np.concatenate([part[i] for part in parts]) for i in (0, 1))
    model = StableFeatureBoosting([0], [1])
    model.fit(X, y, sample_domain=np.repeat(["a", "b"], 500))
    return model.adapt(new[0], settings=Settings("paper"))


def test_a_clone_predicts_what_the_original_predicts(adapted, new):
    np.testing.assert_array_equal(clone(adapted).predict_proba(new[0]), adapted.predict_proba(new[0]))


@pytest.mark.parametrize("frozen", [False, True])
def test_another_threshold_moves_the_recall(adapted, new, frozen):
    X, y = new
    inner = FrozenEstimator(adapted) if frozen else adapted
    careful = FixedThresholdClassifier(inner, threshold=0.2, response_method="predict_proba")
    if frozen:
        careful.fit(X, y)
    assert recall_score(y, careful.predict(X)) > recall_score(y, adapted.predict(X))


def test_it_is_a_fitted_classifier_and_shows_itself(adapted):
    assert is_classifier(adapted)
    check_is_fitted(adapted)
    assert adapted.n_features_in_ == 2
    shown = adapted._repr_html_()
    assert "AdaptedClassifier" in shown
    assert "StableFeatureBoosting" in shown
