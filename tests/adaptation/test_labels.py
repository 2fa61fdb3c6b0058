"""Some labels in the new domain: from none, through twenty, to all."""

import numpy as np
import pytest
from joints import GaussianFamily, draw_anticausal

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


def test_all_labels_reach_the_ceiling():
    X, y = draw_anticausal(20_000, 0.1, seed=0)
    stable = np.where(X[:, 0] > 0, 0.75, 0.25)
    adaptation = adapt(stable, X[:, 1:], y=y)
    assert adaptation.n_labelled == 20_000
    assert (adaptation.predict(stable, X[:, 1:]) == y).mean() == pytest.approx(0.9, abs=0.008)


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
