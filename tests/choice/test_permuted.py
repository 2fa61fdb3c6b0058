"""More than two classes, each of which looks like another in the target domain: answered, not missed."""

import warnings

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from sfboost import StableFeatureBoosting

N_CLASSES = 5
LEARNERS = {
    "logistic": LogisticRegression(max_iter=500),
    "tree": DecisionTreeClassifier(min_samples_leaf=30, max_depth=6, random_state=0),
}


def means(rng, size):
    made = rng.normal(size=(N_CLASSES, 3))
    made -= made.mean(axis=0)
    return size * made / np.sqrt((made**2).sum(axis=1).mean())


@pytest.mark.parametrize("shares", [(0.2,) * 5, (0.33, 0.24, 0.18, 0.14, 0.11)], ids=["even", "skewed"])
@pytest.mark.parametrize("learner", LEARNERS)
def test_permuted_classes_are_answered_no_worse_than_by_stable_features_or_by_sfb(learner, shares):
    rng = np.random.default_rng(0)
    stable, unstable = means(rng, 1.3), means(rng, 1.8)

    def rows(n, turn=0):
        y = rng.choice(N_CLASSES, n, p=shares)
        seen = unstable * (1.0 + 0.15 * rng.normal(size=unstable.shape))
        return np.hstack([stable[y], seen[(y - turn) % N_CLASSES]]) + rng.normal(size=(n, 6)), y

    X, y = (np.concatenate(part) for part in zip(*(rows(1000) for _ in range(3)), strict=True))
    model = StableFeatureBoosting([0, 1, 2], [3, 4, 5], stable=LEARNERS[learner], learner=None)
    model.fit(X, y, sample_domain=np.repeat(["a", "b", "c"], 1000))
    X_new, y_new = rows(2000, turn=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        adapted = model.adapt(X_new)
    right = {name: np.mean(proba.argmax(axis=1) == y_new) for name, proba in adapted.answers_.items()}
    assert right["boosted"] > right["stable"] + 0.1  # there is something to be missed
    assert np.mean(adapted.predict(X_new) == y_new) >= max(right["stable"], right["boosted"]) - 0.015
