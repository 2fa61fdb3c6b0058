"""The score test and its equivalence twin: size, power, and agreement with other ways."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from scipy.stats import chi2, ncx2
from sklearn.linear_model import LogisticRegression

from sfboost.columns.invariance import (
    NullRegression,
    ScoreTest,
    TrainingDomains,
    drift_basis,
    orthonormal,
    p_uninformative,
)


def one_column(x, y, domain):
    return TrainingDomains.of(x[:, None], y, domain)


def measured(data, kind="posterior"):
    return replace(data, kind=kind, measured={}).measure(tuple(range(len(data.units))))


def rejections(make, repeats, kind="posterior"):
    """Shares of draws called changed and called stable at level .05."""
    rng = np.random.default_rng(0)
    tests = [measured(make(rng), kind) for _ in range(repeats)]
    return np.mean([t.p_change <= 0.05 for t in tests]), np.mean([t.p_drift <= 0.05 for t in tests])


def test_the_score_test_agrees_with_the_likelihood_ratio_test():
    rng = np.random.default_rng(0)
    statistics = []
    for _ in range(20):
        n = 3000
        nuisance = np.column_stack([np.ones(n), rng.standard_normal(n)])
        tested = rng.standard_normal((n, 2))
        logits = np.column_stack([0.5 * nuisance[:, 1], 0.1 * tested[:, 0], np.zeros(n)])
        y = (logits + rng.gumbel(size=(n, 3))).argmax(axis=1)
        outcome = np.eye(3)[y]
        result = NullRegression.fit(outcome, nuisance).test(tested)

        def deviance(design, labels=y):
            fit = LogisticRegression(C=1e6, fit_intercept=False, tol=1e-8, max_iter=500).fit(design, labels)
            return -2 * np.log(fit.predict_proba(design)[np.arange(len(labels)), labels]).sum()

        ratio = deviance(nuisance) - deviance(np.column_stack([nuisance, tested]))
        assert result.degrees == 4
        statistics.append((result.statistic, ratio))
    score, ratio = np.array(statistics).T
    np.testing.assert_allclose(score, ratio, rtol=0.05, atol=0.3)


def test_terms_of_some_rows_are_tested_as_if_they_were_zero_elsewhere():
    rng = np.random.default_rng(2)
    outcome, inside = np.eye(3)[rng.integers(0, 3, 300)], rng.random(300) < 0.2
    nuisance = np.column_stack([np.ones(300), rng.standard_normal(300)])
    terms, metric = rng.standard_normal((300, 2)), np.eye(4)
    null = NullRegression.fit(outcome, nuisance)
    some, all_rows = (
        null.test(terms, metric, np.flatnonzero(inside)),
        null.test(terms * inside[:, None], metric),
    )
    np.testing.assert_allclose(
        [some.statistic, some.degrees, some.inflation, some.drift],
        [all_rows.statistic, all_rows.degrees, all_rows.inflation, all_rows.drift],
        rtol=1e-10,
    )


def test_given_the_label_a_domain_is_judged_as_by_a_regression_of_it_on_the_label_and_the_column():
    rng = np.random.default_rng(3)
    y, domain = rng.integers(0, 2, 900), rng.integers(0, 3, 900)
    data = one_column(y + domain * y * 0.3 + rng.standard_normal(900), y, domain)
    by_domain = []
    for member in data.contrasts:
        outcome, terms = np.column_stack([member, 1.0 - member]), drift_basis(data.columns((0,)))
        within = np.column_stack([(terms - terms[y == k].mean(axis=0)) * (y == k)[:, None] for k in (0, 1)])
        by_domain.append(NullRegression.fit(outcome, data.label).test(orthonormal(within)).p_change)
    result = measured(data, "likelihood")
    assert result.p_change == pytest.approx(3 * min(by_domain), rel=1e-4)


@pytest.mark.long
@pytest.mark.parametrize("n", [60, 400])
@pytest.mark.parametrize("shift", [0.0, 1.0])
def test_a_cause_with_covariate_shift_is_called_changed_at_the_nominal_rate_only(n, shift):
    def make(rng):
        domain = np.repeat([0, 1], n)
        x = rng.standard_normal(2 * n) + shift * domain
        y = (rng.random(2 * n) < 1 / (1 + np.exp(-x))).astype(int)
        return one_column(np.exp(x), y, domain)  # skewed: only ranks count

    changed, _ = rejections(make, 200)
    assert changed <= 0.095  # .05 + three standard errors


@pytest.mark.parametrize(("kind", "other"), [("posterior", "likelihood"), ("likelihood", "posterior")])
def test_each_kind_accepts_its_own_world_and_rejects_the_other(kind, other):
    def make(rng):
        n, domain = 600, np.repeat([0, 1], 600)
        if kind == "likelihood":  # label shift
            y = (rng.random(2 * n) < np.where(domain, 0.7, 0.3)).astype(int)
            return one_column(y + rng.standard_normal(2 * n), y, domain)
        x = rng.standard_normal(2 * n) + domain  # covariate shift
        return one_column(x, (rng.random(2 * n) < 1 / (1 + np.exp(-x))).astype(int), domain)

    own, elsewhere = rejections(make, 60, kind)[0], rejections(make, 60, other)[0]
    assert own <= 0.14
    assert elsewhere == 1.0


@pytest.mark.long
@pytest.mark.parametrize("n", [600, 2500])
def test_a_drift_of_the_tolerance_is_called_stable_at_most_at_the_nominal_rate(n):
    def make(rng):
        # Pr[Y = 1] is .45 in one domain and .55 in the other: a drift of exactly .1, the hardest case.
        domain = np.repeat([0, 1], n)
        y = (rng.random(2 * n) < np.where(domain, 0.55, 0.45)).astype(int)
        return one_column(rng.standard_normal(2 * n), y, domain)

    changed, stable = rejections(make, 120)
    assert stable <= 0.11  # .05 + three standard errors
    assert changed > 0.7
    # The estimate is right: the mean over draws is close to .1.
    rng = np.random.default_rng(3)
    drifts = [measured(make(rng)).drift for _ in range(40)]
    assert np.mean(drifts) == pytest.approx(0.1, abs=0.015)


def test_without_drift_enough_rows_show_it_and_few_rows_never_do():
    def make(n):
        def draw(rng):
            y = rng.integers(0, 2, 2 * n)
            return one_column(y + rng.standard_normal(2 * n), y, np.repeat([0, 1], n))

        return draw

    assert rejections(make(2000), 40)[1] == 1.0
    assert rejections(make(40), 100)[1] == 0.0


def test_a_drift_in_one_small_domain_of_five_is_not_averaged_away():
    rng = np.random.default_rng(0)
    domain = np.repeat([0, 1, 2, 3, 4], [2000, 2000, 2000, 2000, 300])
    y = rng.integers(0, 2, len(domain))
    x = np.where(domain == 4, -1, 1) * y + rng.standard_normal(len(domain))
    result = measured(one_column(x, y, domain))
    assert result.p_change < 1e-10
    assert result.p_drift > 0.99
    assert result.drift > 0.4


def test_the_upper_limit_is_where_the_equivalence_test_turns():
    test = ScoreTest(statistic=9.0, degrees=3, inflation=0.001, drift=0.05)
    assert test.p_drift(test.upper(0.05)) == pytest.approx(0.05, abs=1e-6)
    assert test.p_change == pytest.approx(chi2.sf(9.0, 3))
    assert test.p_drift(0.1) == pytest.approx(ncx2.cdf(9.0, 3, 0.01 / 0.001))


def test_a_lucky_statistic_is_worth_no_more_than_the_median():
    lucky, median = (ScoreTest(t, 3, 0.001, 0.0) for t in (0.0, chi2.ppf(0.5, 3)))
    assert lucky.p_drift(0.1) == median.p_drift(0.1)
    assert lucky.upper(0.05) == median.upper(0.05) > 0.0


def test_uninformative_columns_are_called_informative_at_the_nominal_rate():
    rng = np.random.default_rng(0)
    p_values = []
    for _ in range(200):
        domain = np.repeat([0, 1], 200)
        # Both depend on the domain, so they are related overall, and not within domains.
        y = (rng.random(400) < np.where(domain, 0.7, 0.3)).astype(int)
        p_values.append(p_uninformative(one_column(rng.standard_normal(400) + domain, y, domain), (0,)))
    assert np.mean(np.array(p_values) <= 0.05) <= 0.095


@pytest.mark.long
@pytest.mark.parametrize("kind", ["posterior", "likelihood"])
@pytest.mark.parametrize("n_domains", [2, 3, 5])
def test_no_larger_set_is_shown_to_be_stable_where_the_smaller_one_says_that_none_can_be(
    families, kind, n_domains
):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        data = TrainingDomains.of(*families.gaussian_effects(rng, 400, n_domains=n_domains), kind=kind)
        for pair in combinations(range(5), 2):
            least = data.measure(pair).least_p_drift
            for more in set(range(7)) - set(pair):
                assert data.measure(tuple(sorted((*pair, more)))).p_drift >= least
