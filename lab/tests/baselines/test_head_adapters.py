"""Adapters of the last layer against transcriptions of the published formulas and exact small cases."""

import numpy as np
import pytest

pytest.importorskip("torch", reason="the transcriptions use torch's autograd")

import transcriptions as published

from sfboost_lab.baselines.contract import FeaturePredictor, LinearHead
from sfboost_lab.baselines.head_adapters import T3A, FineTune, PseudoLabelLast, Tent, batches
from sfboost_lab.baselines.shot import SHOT, nearest_centroids


def stored(n_classes, n=230, d=7, seed=0):
    """Features in clusters, as a network leaves them (from zero on), and a head that is roughly right."""
    rng = np.random.default_rng([seed, n_classes])
    centres = 2.0 * rng.normal(size=(n_classes, d))
    features = np.maximum(centres[rng.integers(0, n_classes, n)] + rng.normal(size=(n, d)), 0.0)
    head = LinearHead(0.5 * centres + 0.3 * rng.normal(size=centres.shape), 0.2 * rng.normal(size=n_classes))
    return head, features


def order_of(adapter, n, seed):
    return list(batches(n, adapter.batch_size, getattr(adapter, "epochs", 1), seed))


@pytest.mark.parametrize("n_classes", [2, 5])
@pytest.mark.parametrize("filter_size", [1, 5, 20, 1000])
def test_t3a_ends_with_the_published_templates_whatever_the_batches(n_classes, filter_size):
    head, features = stored(n_classes)
    ours = T3A(filter_size).adapt_features(head, features)
    for batch_size in (32, 7, len(features)):
        _, templates = published.t3a_online(head.coef, head.intercept, features, filter_size, batch_size)
        np.testing.assert_allclose(ours.coef.T, templates, atol=1e-12)
    last, _ = published.t3a_online(head.coef, head.intercept, features, filter_size, len(features))
    np.testing.assert_allclose(ours.logits(features), last, atol=1e-12)


def test_t3a_keeps_all_supports_if_no_filter_is_asked_for():
    head, features = stored(3)
    everything = T3A(len(features) + 3).adapt_features(head, features)
    np.testing.assert_array_equal(T3A(None).adapt_features(head, features).coef, everything.coef)


def test_t3a_keeps_the_direction_of_a_class_without_supports():
    head = LinearHead(np.array([[3.0, 0.0], [0.0, 0.1]]), np.array([5.0, 0.0]))
    adapted = T3A().adapt_features(head, np.array([[1.0, 0.0]]))
    np.testing.assert_allclose(adapted.coef[1], [0.0, 1.0])


def test_a_single_logit_head_becomes_two_rows_that_both_have_a_direction():
    head = LinearHead.of([[2.0, -1.0]], [0.3])
    z = np.array([[1.0, 4.0]])
    assert head.coef.shape == (2, 2)
    np.testing.assert_allclose(np.diff(head.logits(z)), [[2.0 - 4.0 + 0.3]])
    assert (np.linalg.norm(T3A().adapt_features(head, z).coef, axis=1) > 0).all()


@pytest.mark.parametrize("n_classes", [2, 5])
def test_tent_takes_the_published_steps(n_classes):
    head, features = stored(n_classes)
    adapter = Tent(batch_size=50, learning_rate=0.02, epochs=2)
    ours = adapter.adapt_features(head, features, seed=4)
    parts = [features[rows] for rows in order_of(adapter, len(features), 4)]
    coef, intercept = published.tent_classifier(head.coef, head.intercept, parts, 0.02)
    np.testing.assert_allclose(ours.coef, coef, atol=1e-9)
    np.testing.assert_allclose(ours.intercept, intercept, atol=1e-9)


@pytest.mark.parametrize("n_classes", [2, 5])
@pytest.mark.parametrize("threshold", [0.0, 0.9])
def test_pseudo_labels_take_the_published_steps(n_classes, threshold):
    head, features = stored(n_classes)
    adapter = PseudoLabelLast(threshold=threshold, learning_rate=0.02, batch_size=16)
    ours = adapter.adapt_features(head, features, seed=1)
    parts = [features[rows] for rows in order_of(adapter, len(features), 1)]
    coef, intercept = published.pseudo_label_classifier(head.coef, head.intercept, parts, 0.02, threshold)
    np.testing.assert_allclose(ours.coef, coef, atol=1e-9)
    np.testing.assert_allclose(ours.intercept, intercept, atol=1e-9)


def test_pseudo_labels_without_a_sure_row_change_nothing():
    head, features = stored(3)
    ours = PseudoLabelLast(threshold=1.0).adapt_features(head, features)
    np.testing.assert_array_equal(ours.coef, head.coef)
    np.testing.assert_array_equal(ours.intercept, head.intercept)


@pytest.mark.parametrize("n_classes", [2, 5])
def test_shot_in_k_rows_is_shot_with_the_whole_bottleneck(n_classes):
    head, features = stored(n_classes)
    adapter = SHOT(epochs=3)
    ours = adapter.adapt_features(head, features, seed=2)
    order = order_of(adapter, len(features), 2)
    per_epoch = len(order) // 3
    epochs = [order[i * per_epoch : (i + 1) * per_epoch] for i in range(3)]
    logits = published.shot(head.coef, head.intercept, features, epochs)
    np.testing.assert_allclose(ours.logits(features), logits, atol=1e-9)
    assert np.abs(ours.logits(features) - head.logits(features)).max() > 0.01


def test_shot_gives_no_pseudo_label_to_a_class_that_nothing_is_predicted_as():
    rng = np.random.default_rng(0)
    features = rng.normal(size=(40, 3))
    proba = np.column_stack([rng.uniform(0.4, 1.0, 40), np.full(40, 0.1), rng.uniform(0.4, 1.0, 40)])
    proba /= proba.sum(axis=1, keepdims=True)
    assert set(nearest_centroids(features, proba)) <= {0, 2}


def test_fine_tuning_is_logistic_regression_on_the_labels_it_is_given():
    """With enough steps the head reaches the optimum, where the gradient of the labelled risk is zero."""
    rng = np.random.default_rng(0)
    features, y = rng.normal(size=(60, 2)), rng.integers(0, 3, 60)
    head = LinearHead(np.zeros((3, 2)), np.zeros(3))
    tuned = FineTune(n_labels=None, epochs=3000).adapt_features(head, features, y)
    slope = (tuned.proba(features) - np.eye(3)[y]).T @ features / 60
    assert np.abs(slope).max() < 1e-6
    np.testing.assert_array_equal(tuned.intercept, 0.0)


def test_fine_tuning_looks_at_no_more_labels_than_it_says():
    head, features = stored(2)
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, len(features))
    chosen = np.random.default_rng(7).permutation(len(y))[:5]
    other = 1 - y
    other[chosen] = y[chosen]
    first, second = (
        FineTune(n_labels=5).adapt_features(head, features, labels, seed=7) for labels in (y, other)
    )
    np.testing.assert_array_equal(first.coef, second.coef)


def test_a_predictor_without_a_last_layer_is_refused_with_a_sentence():
    class Forest(FeaturePredictor):
        pass

    forest = Forest(np.array([0, 1]), None)
    with pytest.raises(ValueError, match="T3A changes the last linear layer, and this predictor"):
        T3A().adapt(forest, np.zeros((2, 2)))
