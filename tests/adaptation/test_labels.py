"""Some labels in the new domain: from none, through twenty, to all."""

import numpy as np
import pytest
from joints import GaussianFamily, draw_anticausal
from scipy.optimize import minimize

from sfboost import AdaptationWarning, Settings
from sfboost.adaptation import adapt
from sfboost.adaptation.checks import check_known_labels


def test_no_known_label_is_no_label():
    _, stable, X = GaussianFamily(0).draw(300)
    none = adapt(stable, X, refuse=False).predict_proba(stable, X)
    for missing in ([None] * 300, np.full(300, np.nan), np.full(300, -1)):
        np.testing.assert_allclose(
            adapt(stable, X, y=missing, refuse=False).predict_proba(stable, X), none, rtol=1e-9
        )


def test_labels_help_more_the_more_there_are():
    losses = {0: [], 20: [], 100: [], 400: []}
    for seed in range(6):
        family = GaussianFamily(seed, unstable_scale=0.8)
        y, stable, X = family.draw(400)
        truth, new_stable, new_X = family.draw(4000)
        for known, found in losses.items():
            partly = np.where(np.arange(400) < known, y, -1)
            proba = adapt(stable, X, y=partly, refuse=False).predict_proba(new_stable, new_X)
            found.append(-np.log(proba[np.arange(4000), truth]).mean())
    means = [np.mean(losses[known]) for known in (0, 20, 100, 400)]
    assert means == sorted(means, reverse=True)


@pytest.mark.parametrize("risk", ["unstable", "joint"])
def test_all_labels_reach_the_ceiling(risk):
    X, y = draw_anticausal(20_000, 0.1, seed=0)
    stable = np.where(X[:, 0] > 0, 0.75, 0.25)
    adaptation = adapt(stable, X[:, 1:], y=y, settings=Settings(labelled_risk=risk))
    assert adaptation.n_labelled == 20_000
    assert (adaptation.predict(stable, X[:, 1:]) == y).mean() == pytest.approx(0.9, abs=0.008)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_joint_form_minimises_equation_3_2(n_classes):
    y, stable, X = GaussianFamily(1, n_classes=n_classes, unstable_scale=0.6).draw(300)
    adaptation = adapt(stable, X, y=y, settings=Settings(labelled_risk="joint", l2=1e-2), refuse=False)
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


@pytest.mark.parametrize("correction", ["likelihood", "posthoc"])
def test_a_class_absent_from_all_labels_does_not_take_over(correction):
    for seed in range(6):
        y, stable, X = GaussianFamily(seed, n_classes=3).draw(800)
        kept = y != 0
        with pytest.warns(AdaptationWarning, match="Class 0 has an expected count of 0"):
            adaptation = adapt(
                stable[kept], X[kept], y=y[kept], settings=Settings(correction=correction), refuse=False
            )
        assert adaptation.prior[0] == 0
        accuracy = (adaptation.predict(stable[kept], X[kept]) == y[kept]).mean()
        assert accuracy > (stable[kept].argmax(axis=1) == y[kept]).mean()


def test_the_joint_form_with_some_labels_leaves_the_other_rows_to_the_likelihood():
    y, stable, X = GaussianFamily(1, n_classes=2, unstable_scale=0.6).draw(400)
    partly = np.where(np.arange(400) < 150, y, -1)
    adaptation = adapt(stable, X, y=partly, settings=Settings(labelled_risk="joint", l2=1e-2), refuse=False)
    Z, prior = adaptation.standardizer.apply(X), adaptation.prior

    def risk(theta):
        logits = np.column_stack([np.zeros(400), np.column_stack([Z, np.ones(400)]) @ theta])
        log_f = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
        joint = log_f + np.log(stable) - np.log(prior)
        total = np.log(np.exp(joint).sum(axis=1))
        rows = np.where(partly >= 0, total - joint[np.arange(400), np.maximum(partly, 0)], -total)
        return rows.mean() + 0.5e-2 * (theta[:-1] ** 2).sum()

    best = minimize(risk, np.zeros(5), method="BFGS", options={"gtol": 1e-7})
    found = np.append(adaptation.head.coef_[0], adaptation.head.intercept_)
    assert risk(found) == pytest.approx(best.fun, abs=1e-8)


@pytest.mark.parametrize("chosen", ["positives", "negatives", "by f_S", "at random"])
def test_which_rows_are_labelled_does_not_move_the_class_shares(chosen):
    rng = np.random.default_rng(0)
    x = rng.normal(-0.8, 1.0, 6000)
    stable = 1 / (1 + np.exp(-1.5 * x))
    y = (rng.random(6000) < stable).astype(int)
    X = (1.0 - 2.0 * y)[:, None] + rng.normal(size=(6000, 1))
    picked = {"positives": y == 1, "negatives": y == 0, "by f_S": stable > 0.5, "at random": y >= 0}[chosen]
    labels = np.where(picked & (rng.random(6000) < 0.3), y, -1)
    adaptation = adapt(stable, X, y=labels)
    assert adaptation.n_labelled > 300
    assert adaptation.prior[1] == pytest.approx(y.mean(), abs=0.015)


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
