"""What `examples/in_skada.py` shows without skada holds with skada's own splitter and scorers."""

import runpy
from pathlib import Path

import numpy as np
import pytest
import sklearn
from sklearn.model_selection import cross_validate

from sfboost import StableFeatureBoosting

pytestmark = [pytest.mark.interop, pytest.mark.filterwarnings("ignore")]  # skada's libraries warn
EXAMPLE = Path(__file__).parents[1] / "examples" / "in_skada.py"


@pytest.fixture(scope="module")
def example():
    with sklearn.config_context():  # importing skada switches routing on everywhere
        pytest.importorskip("skada", reason="it is in no extra: pip install skada")
        yield runpy.run_path(str(EXAMPLE))


def in_skada(example, estimator, y):
    """Scores of skada's own cross-validation, in the order of the domains that it leaves out."""
    from skada.metrics import PredictionEntropyScorer, SupervisedScorer
    from skada.model_selection import LeaveOneDomainOut

    return cross_validate(
        estimator,
        example["X"],
        y,
        cv=LeaveOneDomainOut(test_size=0.3, random_state=0),
        scoring={"accuracy": SupervisedScorer(), "entropy": PredictionEntropyScorer()},
        params={"sample_domain": example["domain"], "target_labels": example["y"]},
        error_score="raise",
    )


def test_skada_splits_fits_and_scores_it(example):
    """Hidden labels are -1, as skada hides them; the reversed hospital is answered like the others."""
    model = example["AsSkadaEstimator"](StableFeatureBoosting([0], [1]))
    hidden = np.where(example["domain"] < 0, -1, example["y"])
    scores = in_skada(example, model, hidden)
    assert len(scores["test_accuracy"]) == 7
    assert scores["test_accuracy"].min() > 0.7
    assert np.isfinite(scores["test_entropy"]).all()
    X, y, domain = example["X"], example["y"], example["domain"]
    said = [model.fit(X, labels, sample_domain=domain).predict_proba(X) for labels in (hidden, y)]
    np.testing.assert_array_equal(*said, err_msg="labels of target rows were looked at")


def test_a_method_of_skada_is_misled_by_the_reversed_hospital(example):
    """So the scores above are no matter of course."""
    from skada import CORAL
    from sklearn.linear_model import LogisticRegression

    hidden = np.where(example["domain"] < 0, -1, example["y"])
    assert in_skada(example, CORAL(LogisticRegression()), hidden)["test_accuracy"].min() < 0.3
