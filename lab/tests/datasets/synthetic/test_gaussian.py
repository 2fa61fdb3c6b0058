import numpy as np
import pytest
from scipy.stats import norm

from sfboost_lab.datasets.synthetic import gaussian
from sfboost_lab.datasets.synthetic.ceilings import gaussian_ceiling


def linear_bayes_accuracy(means, covariance, priors):
    """Closed form for two Gaussians with one covariance."""
    gap = means[1] - means[0]
    distance = np.sqrt(gap @ np.linalg.solve(covariance, gap))
    shift = np.log(priors[1] / priors[0]) / distance
    return priors[1] * norm.cdf(distance / 2 + shift) + priors[0] * norm.cdf(distance / 2 - shift)


DIALS = {"informativeness": 1.5, "violation": 0.4, "leak": 0.3, "prior": 0.35}


@pytest.mark.parametrize("columns", [[0], [1], [0, 1]])
def test_quadrature_equals_the_closed_form(columns):
    made = gaussian(**DIALS)
    means, covariance, priors = made.moments("test-0.1")
    exact = linear_bayes_accuracy(means[:, columns], covariance[np.ix_(columns, columns)], priors)
    ceiling = made.ceiling("test-0.1", columns)
    assert ceiling.how == "quadrature"
    assert ceiling.error < 1e-4
    assert ceiling.accuracy == pytest.approx(exact, abs=max(ceiling.error, 1e-9))


def test_draws_equal_the_closed_form_within_their_standard_error():
    made = gaussian(**DIALS, n_stable=3, n_unstable=2)
    exact = linear_bayes_accuracy(*made.moments("train-0.8"))
    ceiling = made.ceiling("train-0.8", n_draws=50_000)
    assert ceiling.how == "draws"
    assert 0 < ceiling.error < 0.002
    assert abs(ceiling.accuracy - exact) < 4 * ceiling.error


def test_without_features_the_larger_class_is_the_ceiling():
    assert gaussian_ceiling(np.zeros((2, 0)), np.zeros((0, 0)), np.array([0.3, 0.7])).accuracy == 0.7


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
    assert gaussian(informativeness=0.0).ceiling("test-0.1", "stable").accuracy == pytest.approx(
        0.5, abs=1e-6
    )


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
