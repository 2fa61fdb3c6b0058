"""Some labels in the new domain: from none, through twenty, to all."""

import numpy as np
import pytest
from joints import GaussianFamily, draw_anticausal
from scipy.optimize import minimize

from sfboost import adapt
from sfboost.adaptation.checks import check_known_labels


def test_no_known_label_is_no_label():
    _, stable, X = GaussianFamily(0).draw(300)
    none = adapt(stable, X, force=True).predict_proba(stable, X)
    for missing in ([None] * 300, np.full(300, np.nan), np.full(300, -1)):
        np.testing.assert_array_equal(adapt(stable, X, y=missing, force=True).predict_proba(stable, X), none)


def test_labels_help_more_the_more_there_are():
    losses = {0: [], 20: [], 100: [], 400: []}
    for seed in range(6):
        family = GaussianFamily(seed, unstable_scale=0.8)
        y, stable, X = family.draw(400)
        truth, new_stable, new_X = family.draw(4000)
        for known, found in losses.items():
            partly = np.where(np.arange(400) < known, y, -1)
            proba = adapt(stable, X, y=partly, force=True).predict_proba(new_stable, new_X)
            found.append(-np.log(proba[np.arange(4000), truth]).mean())
    means = [np.mean(losses[known]) for known in (0, 20, 100, 400)]
    assert means == sorted(means, reverse=True)


@pytest.mark.parametrize("risk", ["unstable", "joint"])
def test_all_labels_reach_the_ceiling(risk):
    X, y = draw_anticausal(20_000, 0.1, seed=0)
    stable = np.where(X[:, 0] > 0, 0.75, 0.25)
    adaptation = adapt(stable, X[:, 1:], y=y, labelled_risk=risk)
    assert adaptation.n_labelled == 20_000
    assert (adaptation.predict(stable, X[:, 1:]) == y).mean() == pytest.approx(0.9, abs=0.008)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_joint_form_minimises_equation_3_2(n_classes):
    y, stable, X = GaussianFamily(1, n_classes=n_classes, unstable_scale=0.6).draw(300)
    adaptation = adapt(stable, X, y=y, labelled_risk="joint", l2=1e-2, force=True)
    Z = adaptation.standardizer.apply(X)
    prior = np.bincount(y, minlength=n_classes) / 300
    columns = 1 if n_classes == 2 else n_classes

    def risk(theta):
        coef = theta.reshape(5, columns)
        logits = np.column_stack([Z, np.ones(300)]) @ coef
        if columns == 1:
            logits = np.column_stack([np.zeros(300), logits])
        joint = logits + np.log(stable) - np.log(prior)
        joint -= np.log(np.exp(joint).sum(axis=1, keepdims=True))
        return -joint[np.arange(300), y].mean() + 0.5e-2 * (coef[:-1] ** 2).sum()

    best = minimize(risk, np.zeros(5 * columns), method="BFGS", options={"gtol": 1e-7})
    found = np.vstack([adaptation.head.coef_.T, adaptation.head.intercept_])
    assert risk(found.ravel()) == pytest.approx(best.fun, abs=1e-8)


def test_the_unstable_form_with_all_labels_is_a_plain_fit_to_them():
    y, stable, X = GaussianFamily(2).draw(300)
    adaptation = adapt(stable, X, y=y, l2=1e-2, force=True)
    other = adapt(stable, X, y=y, l2=1e-2, correction="posthoc", force=True)
    np.testing.assert_allclose(adaptation.head.coef_, other.head.coef_, atol=1e-5)
    np.testing.assert_allclose(adaptation.prior, np.bincount(y, minlength=4) / 300)


@pytest.mark.parametrize(
    "correction", ["likelihood", "posthoc", "forward", "backward", "none", "posthoc-repeated"]
)
def test_every_correction_takes_a_few_labels(correction):
    y, stable, X = GaussianFamily(0).draw(1500)
    partly = np.where(np.arange(1500) < 1200, y, -1)
    with_labels = adapt(stable, X, y=partly, correction=correction, l2=1e-3)
    without = adapt(stable, X, correction=correction, l2=1e-3)
    score = [(a.predict(stable[1200:], X[1200:]) == y[1200:]).mean() for a in (with_labels, without)]
    assert score[0] >= score[1] - 0.01
    assert score[0] > (stable[1200:].argmax(axis=1) == y[1200:]).mean() + 0.1


class TestReadingLabels:
    names = np.array(["ill", "well"])

    def test_missing_marks(self):
        pandas = pytest.importorskip("pandas", reason="the [app] extra brings pandas")
        y = ["ill", None, float("nan"), pandas.NA, "well"]
        assert check_known_labels(y, self.names, 5).tolist() == [0, -1, -1, -1, 1]
        masked = np.ma.MaskedArray(["ill", "well"], mask=[True, False])
        assert check_known_labels(masked, self.names, 2).tolist() == [-1, 1]

    def test_minus_one_is_a_label_where_it_is_a_class(self):
        assert check_known_labels([-1, 1], np.array([-1, 1]), 2).tolist() == [0, 1]
        assert check_known_labels([-1, 1], np.array([0, 1]), 2).tolist() == [-1, 1]

    def test_a_class_that_training_never_saw(self):
        with pytest.raises(ValueError, match=r"y\[1\] is 'dead', a class that training never saw"):
            check_known_labels(["ill", "dead"], self.names, 2)

    def test_wrong_length(self):
        with pytest.raises(ValueError, match="there are 3 rows"):
            check_known_labels(["ill"], self.names, 3)
