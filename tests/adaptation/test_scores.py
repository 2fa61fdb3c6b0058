"""Scores of probabilities, and what answers are judged by."""

import numpy as np
import pytest

from sfboost import Settings
from sfboost.adaptation.scores import LOSSES, METRICS, Yardstick, weighted_scores
from sfboost.adaptation.settings import resolve
from sfboost.calibration import reliability_curve

COSTS = np.array([[0.0, 1.0, 2.0], [3.0, 0.0, 1.0], [5.0, 1.0, 0.0]])


@pytest.mark.parametrize("weight", [1.0, 0.3])
def test_balanced_accuracy_is_of_the_classes_that_are_there_and_weights_count_as_rows(weight):
    rng = np.random.default_rng(0)
    y, proba = rng.integers(0, 2, 500), rng.dirichlet(np.ones(3), 500)  # nobody is of the third class
    scores = weighted_scores(proba, weight * np.eye(3)[y], total=500 * weight)
    right = proba.argmax(axis=1) == y
    assert scores["balanced_accuracy"] == pytest.approx((right[y == 0].mean() + right[y == 1].mean()) / 2)
    assert scores["accuracy"] == pytest.approx(right.mean())
    assert np.isnan(scores["auroc"])
    assert scores["ece"] == pytest.approx(reliability_curve(proba, y).ece)


@pytest.mark.parametrize("metric", [*METRICS, "cost"])
def test_weighted_rows_count_as_repeated_ones_and_less_of_a_loss_is_better(metric):
    rng = np.random.default_rng(0)
    proba, truth = (rng.dirichlet(np.ones(3), 50) for _ in range(2))
    weight = rng.integers(0, 4, 50)
    rows, by = np.repeat(np.arange(50), weight), Yardstick(metric, COSTS)
    repeated = by.loss(proba[rows], truth[rows] / len(rows))
    assert by.loss(proba, truth * weight[:, None] / len(rows)) == pytest.approx(repeated, abs=1e-12)
    score = weighted_scores(proba[rows], truth[rows] / len(rows), COSTS)[metric]
    assert repeated == pytest.approx(score if metric in LOSSES else 1.0 - score)


def test_what_counts_is_the_metric_else_the_cost_else_the_usual_one():
    costs = COSTS[:2, :2]
    assert resolve(Settings()).yardstick("brier").metric == "brier"
    assert resolve(Settings(costs=costs)).yardstick("brier").metric == "cost"
    both = resolve(Settings(costs=costs, metric="auroc")).yardstick("brier")
    assert both.metric == "auroc"
    np.testing.assert_array_equal(both.costs, costs)
    with pytest.raises(ValueError, match="cost needs costs"):
        resolve(Settings(metric="cost"))
    with pytest.raises(ValueError, match="use one of accuracy, balanced_accuracy"):
        resolve(Settings(metric="f1"))
