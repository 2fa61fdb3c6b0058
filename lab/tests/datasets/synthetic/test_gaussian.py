import numpy as np
import pytest

from sfboost_lab.datasets.synthetic import gaussian

DIALS = {"informativeness": 1.5, "violation": 0.4, "leak": 0.3, "prior": 0.35}


def test_drawn_rows_have_the_moments_asked_for():
    made = gaussian(**DIALS, n_stable=2, n_unstable=2)
    means, covariance, priors = made.moments("test-0.1")
    domain = made.sample(100_000, random_state=1).domain("test-0.1")
    assert domain.y.mean() == pytest.approx(priors[1], abs=0.01)
    for label in (0, 1):
        rows = domain.X[domain.y == label]
        np.testing.assert_allclose(rows.mean(axis=0), means[label], atol=0.03)
        np.testing.assert_allclose(np.cov(rows.T), covariance, atol=0.04)


def test_agreement_is_how_often_the_unstable_sign_is_the_label():
    domain = gaussian(n_unstable=4).sample(50_000).domain("test-0.1")
    assert np.mean((domain.X[:, 1:].sum(axis=1) > 0) == domain.y) == pytest.approx(0.1, abs=0.01)


def test_zero_informativeness_leaves_the_stable_columns_at_chance():
    assert (gaussian(informativeness=0.0, n_stable=2).moments("test-0.1")[0][:, :2] == 0).all()


def test_violation_breaks_complementarity_but_not_stability():
    made = gaussian(violation=0.6)
    train, test = made.moments("train-0.95"), made.moments("test-0.1")
    assert test[1][0, 1] == pytest.approx(0.6)
    np.testing.assert_allclose(train[0][:, 0], test[0][:, 0])


def test_leak_moves_the_stable_column_with_the_domain():
    made = gaussian(leak=0.5)
    assert made.moments("train-0.95")[0][1, 0] > made.moments("test-0.1")[0][1, 0] + 1


def test_label_shift_is_a_prior_of_one_domain():
    made = gaussian(test=[{"agreement": 0.1, "prior": 0.9}])
    assert made.moments("test-0.1")[2].tolist() == pytest.approx([0.1, 0.9])
    assert made.moments("train-0.8")[2].tolist() == [0.5, 0.5]


@pytest.mark.parametrize("wrong", [{"test": [1.0]}, {"violation": 1.0}, {"n_stable": 0}])
def test_dials_beyond_their_range_are_refused(wrong):
    with pytest.raises(ValueError, match=r"need to lie|needs 1 or more"):
        gaussian(**wrong)
