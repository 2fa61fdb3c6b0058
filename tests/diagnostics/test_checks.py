"""Every check: silent where the assumptions hold, loud where they fail, honest where nothing can be told."""

import numpy as np
import pytest
from joints import drawn

from sfboost import AdaptationRefused, StableFeatureBoosting
from sfboost.boosting.diagnosing import held_out_rows
from sfboost.diagnostics import (
    CheckInputs,
    diagnose,
    domain_leak,
    make_new_rows,
    make_training_rows,
)
from sfboost.diagnostics.complementarity import check_complementarity, measured_informativeness
from sfboost.diagnostics.informativeness import (
    check_calibration,
    check_informativeness,
)
from sfboost.diagnostics.moments import conditional_independence, holm, zero_mean_test
from sfboost.diagnostics.new_domain import check_new_domain
from sfboost.diagnostics.stability import check_kind_of_stability, check_stability
from sfboost_lab.testing import Dials, simulate


def inputs(dials, seed=0, stable=lambda f: f):
    """Rows of a simulated problem with the true posterior as f_S, changed by `stable`."""
    problem = simulate(dials, seed)
    X, y, domain = problem.training_rows()
    k, new = problem.n_stable, problem.new
    f = stable(np.vstack([part.posterior for part in problem.training]))
    return CheckInputs(
        make_training_rows(f, y, domain, X[:, k:], X[:, :k]),
        make_new_rows(stable(new.posterior), new.X_unstable),
    )


def sharpened(factor):
    def change(f):
        g = f**factor
        return g / g.sum(axis=1, keepdims=True)

    return change


CLEAN = Dials(n_classes=2, n_rows=600, n_training_rows=600, n_domains=3, covariate_shift=0.3)


# -- size: a small version of studies/study_checks.py ------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("n_classes", [2, 4])
def test_false_alarms_are_rare_where_every_assumption_holds(n_classes):
    """60 draws at level .05: more than 9 alarms have a chance of one in a thousand."""
    checks = {
        "stability": check_stability,
        "calibration": check_calibration,
        "complementarity": check_complementarity,
        "new domain": check_new_domain,
    }
    alarms = dict.fromkeys([*checks, "slope"], 0)
    for seed in range(60):
        rows = inputs(Dials(**(CLEAN.__dict__ | {"n_classes": n_classes})), seed)
        for name, check in checks.items():
            alarms[name] += check(rows).verdict in ("doubtful", "violated")
        slope = check_kind_of_stability(rows).p_value
        alarms["slope"] += slope is not None and slope < 0.05
    assert max(alarms.values()) <= 9, alarms


# -- power ----------------------------------------------------------------------------------------------

LOUD = Dials(n_rows=3000, n_training_rows=3000, n_domains=3)


def with_dials(**changes):
    return Dials(**(LOUD.__dict__ | changes))


@pytest.mark.parametrize(
    ("check", "rows"),
    [
        (check_complementarity, lambda: inputs(with_dials(training_violation=0.5))),
        (check_new_domain, lambda: inputs(with_dials(new_violation=0.6))),
        (check_new_domain, lambda: inputs(with_dials(n_classes=3, new_violation=0.8))),
        (check_calibration, lambda: inputs(LOUD, stable=sharpened(2.0))),
        (check_stability, lambda: fitted_rows(with_dials(label_shift=1.0))),
        (check_kind_of_stability, lambda: fitted_rows(with_dials(label_shift=1.0))),
    ],
)
def test_a_clear_violation_is_called_one(check, rows):
    result = check(rows())
    assert result.verdict == "violated", result
    assert result.remedy
    assert result.p_value < 0.05


def fitted_rows(dials, seed=0):
    problem = simulate(dials, seed)
    X, y, domain = problem.training_rows()
    model = StableFeatureBoosting(list(range(problem.n_stable)), learner=None)
    return CheckInputs(held_out_rows(model, X, y, domain))


def test_the_slope_is_one_under_label_shift_and_zero_under_covariate_shift():
    label = check_kind_of_stability(fitted_rows(with_dials(label_shift=1.0)))
    covariate = check_kind_of_stability(fitted_rows(with_dials(covariate_shift=1.0)))
    assert label.statistic == pytest.approx(1.0, abs=4 * label.standard_error)
    assert label.details["p_posterior"] < 1e-6
    assert covariate.statistic == pytest.approx(0.0, abs=4 * covariate.standard_error)
    assert covariate.details["p_likelihood"] < 1e-6


def test_an_overconfident_f_s_trained_on_noise_claims_but_does_not_know():
    rng = np.random.default_rng(0)
    f = rng.choice([0.05, 0.95], 2000)
    outcome = check_informativeness(CheckInputs(make_training_rows(f, rng.integers(0, 2, 2000))))
    assert outcome.details["s_claimed"] > 0.7
    assert outcome.details["s_measured"] < 0.1
    assert outcome.verdict == "violated"


@pytest.mark.parametrize("values", ["many", "two"])
def test_x_u_that_repeats_x_s_is_a_violation_even_where_f_s_is_saturated(values):
    stable = inputs(with_dials(n_rows=4000)).new.stable
    if values == "two":
        stable = np.where(stable > 0.5, 0.75, 0.25)
    copied = stable[:, 1:] + 0.01 * np.random.default_rng(0).normal(size=(4000, 1))
    assert check_new_domain(CheckInputs(None, make_new_rows(stable, copied))).verdict == "violated"


# -- exact values ---------------------------------------------------------------------------------------


def test_the_leak_of_a_copied_bit_is_its_exact_value():
    """ "copied X_S": E[f | y, u] − E[f | y] by hand from the joint law; 200 000 rows."""
    rows = drawn("copied X_S", 200_000, seed=0)
    found = domain_leak(rows.posterior, rows.X_unstable, rows.y, "a")
    # Within a class x_S is right with .75, u = x_S with .7: Cov(f, u) = .5 · .75 · .25 · .4.
    variance_u = (0.75 * 0.7 + 0.25 * 0.3) * (1 - (0.75 * 0.7 + 0.25 * 0.3))
    exact = 0.5 * 0.75 * 0.25 * 0.4 / np.sqrt(variance_u)
    assert found.size == pytest.approx(exact, abs=0.002)
    assert found.lower <= found.size
    assert found.informativeness == pytest.approx(0.25, abs=0.005)


def test_opposite_leaks_in_two_classes_do_not_cancel():
    rows = drawn("CE-DD", 4000, seed=0)
    assert domain_leak(rows.posterior, rows.X_unstable, rows.y, "a").relative > 0.4
    assert conditional_independence(rows.posterior[:, 1:], rows.X_unstable, rows.y).p_value < 1e-10


def test_measured_informativeness_is_the_claim_for_a_calibrated_f_s():
    rows = drawn("AC", 100_000, seed=0)
    assert measured_informativeness(rows.posterior, rows.y) == pytest.approx(0.25, abs=0.01)


@pytest.mark.parametrize("kinds", ["continuous", "discrete", "mixed"])
def test_conditional_independence_keeps_its_level_and_sees_dependence(kinds):
    rng = np.random.default_rng(0)
    p_null, p_alternative = [], []
    for _ in range(100):
        y = rng.integers(0, 3, 500)
        a, b = y + rng.normal(size=500), y + rng.normal(size=500)
        c = b + 0.5 * (a - y)
        if kinds == "discrete":
            a, b, c = (np.clip(np.round(values), -1, 3) for values in (a, b, c))
        if kinds == "mixed":
            b, c = np.clip(np.round(b), -1, 3), np.clip(np.round(c), -1, 3)
        p_null.append(conditional_independence(a[:, None], b[:, None], y).p_value)
        p_alternative.append(conditional_independence(a[:, None], c[:, None], y).p_value)
    assert np.mean(np.array(p_null) < 0.05) <= 0.13
    assert np.mean(np.array(p_alternative) < 0.05) >= 0.9


def test_hotelling_agrees_with_the_t_test_in_one_dimension():
    from scipy.stats import ttest_1samp

    rows = np.random.default_rng(0).normal(0.2, 1.0, 50)
    found = zero_mean_test(rows[:, None])
    # Ours divides by n where t divides by n − 1: the difference is 1/n.
    assert found.p_value == pytest.approx(ttest_1samp(rows, 0.0).pvalue, rel=0.1)


def test_holm_controls_any_false_alarm_among_many():
    rng = np.random.default_rng(0)
    alarms = [holm(rng.random(10)).min() < 0.05 for _ in range(2000)]
    assert np.mean(alarms) == pytest.approx(0.05, abs=0.015)
    p = rng.random(20) / 10
    assert (holm(p) <= np.minimum(20 * p, 1)).all()  # never more than Bonferroni's, and in the same order
    assert np.array_equal(np.argsort(holm(p), kind="stable")[:3], np.argsort(p)[:3])


# -- the counter-examples -------------------------------------------------------------------------------

SHOWN = ("informativeness", "complementarity", "complementarity, new domain")
TABLE = {
    "XOR": ("violated", "holds", "cannot tell"),
    "Y1": ("holds", "violated", "cannot tell"),
    "Y2": ("holds", "violated", "cannot tell"),
    "Y3": ("violated", "holds", "cannot tell"),
    "Y4": ("violated", "holds", "cannot tell"),
    "CE-DD": ("holds", "violated", "cannot tell"),
    "AC": ("holds", "holds", "cannot tell"),
    "copied X_S": ("holds", "violated", "cannot tell"),
}


@pytest.mark.parametrize("name", TABLE)
def test_the_verdicts_on_the_counter_examples_are_those_of_the_docs(name):
    parts = [drawn(name, 2000, i) for i in range(3)]
    training = make_training_rows(
        np.vstack([part.posterior for part in parts[:2]]),
        np.concatenate([part.y for part in parts[:2]]),
        np.repeat(["a", "b"], 2000),
        np.vstack([part.X_unstable for part in parts[:2]]),
    )
    report = diagnose(training, make_new_rows(parts[2].posterior, parts[2].X_unstable))
    assert tuple(report[check].verdict for check in SHOWN) == TABLE[name]


def test_a_leak_that_only_the_new_domain_has_is_noticed_and_the_stable_predictor_kept():
    problem = simulate(with_dials(new_violation=0.9, covariate_shift=0.3), seed=3)
    X, y, domain = problem.training_rows()
    model = StableFeatureBoosting([0, 1], learner=None).fit(X, y, domain)
    with pytest.warns(AdaptationRefused, match="X_U follows f_S within a class"):
        kept = model.adapt(problem.new.X, answer="safe")
    assert kept.decision_ == "kept stable"
    assert model.training_.leak < 0.02  # training shows none: to allow for that alone would not have helped


def test_one_domain_or_few_rows_is_cannot_tell():
    rows = inputs(CLEAN).training
    first = rows.by_domain[0][1]
    one = make_training_rows(rows.stable[first], rows.y[first], rows.domain[first])
    assert check_stability(CheckInputs(one)).verdict == "cannot tell"
    assert check_kind_of_stability(CheckInputs(one)).verdict == "cannot tell"
    few = first[:20]
    tiny = make_training_rows(rows.stable[few], rows.y[few], rows.domain[few], rows.X_unstable[few])
    assert check_complementarity(CheckInputs(tiny)).verdict == "cannot tell"
