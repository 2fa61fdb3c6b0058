"""More than two classes, each of which looks like another in the new domain: told apart and learned anew."""

import warnings

import numpy as np
import pytest
from sfboost.choice.stress import kinds_of_stress, stressed
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from sfboost import StableFeatureBoosting
from sfboost.shift import DomainData, Reference, change_in

N_CLASSES, N_STABLE, N_UNSTABLE = 5, 3, 3
EVEN, SKEWED = np.full(N_CLASSES, 0.2), np.array([0.33, 0.24, 0.18, 0.14, 0.11])
NEXT = np.roll(np.arange(N_CLASSES), 1)


class Family:
    """Gaussian classes; what U looks like in each differs a little from domain to domain."""

    def __init__(self, seed, shares):
        self.rng, self.shares = np.random.default_rng(seed), shares
        self.stable, self.unstable = (self._means(size) for size in (1.3, 1.8))

    def _means(self, size):
        means = self.rng.normal(size=(N_CLASSES, N_STABLE))
        means -= means.mean(axis=0)
        return size * means / np.sqrt((means**2).sum(axis=1).mean())

    def rows(self, n, looks_like=None):
        y = self.rng.choice(N_CLASSES, n, p=self.shares)
        means = self.unstable * (1.0 + 0.15 * self.rng.normal(size=self.unstable.shape))
        seen = y if looks_like is None else looks_like[y]
        X = np.hstack([self.stable[y], means[seen]])
        return X + self.rng.normal(size=X.shape), y


LEARNERS = {
    "logistic": LogisticRegression(max_iter=500),
    "tree": DecisionTreeClassifier(min_samples_leaf=30, max_depth=6, random_state=0),
}


@pytest.mark.parametrize(
    ("learner", "shares"),
    [
        pytest.param("logistic", EVEN, marks=pytest.mark.long, id="logistic, even"),
        pytest.param("logistic", SKEWED, id="logistic, skewed"),
        pytest.param("tree", EVEN, id="tree, even"),
        pytest.param("tree", SKEWED, marks=pytest.mark.long, id="tree, skewed"),
    ],
)
def test_permuted_classes_are_answered_no_worse_than_by_stable_features_or_by_sfb(learner, shares):
    family = Family(0, shares)
    own = [family.rows(1000) for _ in range(3)]
    X, y = (np.concatenate([part[k] for part in own]) for k in (0, 1))
    model = StableFeatureBoosting(
        stable_features=list(range(N_STABLE)),
        unstable_features=list(range(N_STABLE, N_STABLE + N_UNSTABLE)),
        stable=LEARNERS[learner],
    ).fit(X, y, sample_domain=np.repeat(["a", "b", "c"], 1000))
    X_new, y_new = family.rows(2000, NEXT)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        adapted = model.adapt(X_new)
    right = {name: np.mean(proba.argmax(axis=1) == y_new) for name, proba in adapted.answers_.items()}
    assert right["boosted"] > right["stable"] + 0.1  # there is something to be missed
    answered = np.mean(adapted.predict(X_new) == y_new)
    assert answered >= max(right["stable"], right["boosted"]) - 0.015


def exact(family, X):
    """A view of rows whose stable and pooled probabilities are the truth of training."""

    def proba(columns, means):
        far = ((X[:, None, columns] - means) ** 2).sum(axis=2)
        joint = family.shares * np.exp(-0.5 * far)
        return joint / joint.sum(axis=1, keepdims=True)

    S, U = slice(0, N_STABLE), slice(N_STABLE, None)
    both = np.hstack([family.stable, family.unstable])
    return DomainData.of(proba(S, family.stable), X[:, U], proba(slice(None), both), X[:, S])


@pytest.fixture(scope="module")
def known():
    family = Family(1, SKEWED)
    own = [family.rows(800) for _ in range(4)]
    return family, Reference.learn([exact(family, X) for X, _ in own], [y for _, y in own], list("abcd"))


def test_the_signature_tells_permuted_classes_from_mirrored_shuffled_and_untouched_ones(known):
    family, reference = known
    X, y = family.rows(3000)
    U, every, rng = X[:, N_STABLE:], np.arange(N_UNSTABLE), np.random.default_rng(0)

    def elsewhere(kind):
        made = X.copy()
        if kind is not None:
            made[:, N_STABLE:] = stressed(kind, U, y, every, rng)
        return change_in(reference, exact(family, made)).signature[-1]

    assert elsewhere("permuted") > 0.7
    for kind in (None, "mirrored", "shuffled", "weakened", "rescaled"):
        assert elsewhere(kind) < 0.4, kind


def test_each_class_takes_the_unstable_features_of_one_other_class():
    rng = np.random.default_rng(2)
    y = rng.integers(0, 4, 400)
    U = np.column_stack([y + 10.0 * np.arange(400), y])
    before = U.copy()
    made = stressed("permuted", U, y, [1], rng)
    np.testing.assert_array_equal(U, before)
    np.testing.assert_array_equal(made[:, 0], U[:, 0])
    looks_like = [np.unique(made[y == label, 1]).tolist() for label in range(4)]
    assert all(len(looks) == 1 for looks in looks_like)
    assert sorted(looks[0] for looks in looks_like) == [0, 1, 2, 3]
    assert all(looks != [label] for label, looks in enumerate(looks_like))


def test_two_classes_that_trade_places_are_mirrored_ones():
    assert "permuted" not in kinds_of_stress(2)
    assert "permuted" in kinds_of_stress(3)
