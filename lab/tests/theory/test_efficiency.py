"""Efficiency formulas against closed forms and against simulation."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfboost.diagnostics import rows_needed
from sfboost.marginal import PseudoLabelStatistics, log_weights
from sfboost_lab.theory import FiniteJoint, cell_efficiency

ESTIMATORS = ("likelihood", "posthoc", "sampled", "labels")


def random_f_s(seed, n_classes=2, n=7):
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.ones(n_classes), n), rng.dirichlet(np.ones(n))


@given(st.integers(0, 2**32 - 1), st.floats(0.02, 0.98))
@settings(max_examples=60, deadline=None)
def test_two_classes_with_known_confusion_give_the_closed_forms(seed, q):
    f, weight = random_f_s(seed)
    p = weight @ f[:, 1]
    ones, zeros = weight * f[:, 1] / p, weight * f[:, 0] / (1 - p)
    s = weight @ (f[:, 1] - p) ** 2 / (p * (1 - p))
    v1, v0 = (law @ (f[:, 1] - law @ f[:, 1]) ** 2 for law in (ones, zeros))
    posthoc = q * (1 - q) * s**2 / (q * v1 + (1 - q) * v0 + q * (1 - q) * s**2)
    likelihood = q * (1 - q) * ((ones - zeros) ** 2 / (q * ones + (1 - q) * zeros)).sum()
    mean = q * (s + zeros @ f[:, 1]) + (1 - q) * (zeros @ f[:, 1])
    sampled = q * (1 - q) * s**2 / (mean * (1 - mean))
    for name, expected in (("posthoc", posthoc), ("likelihood", likelihood), ("sampled", sampled)):
        cell = cell_efficiency(f, q, estimator=name, known_confusion=True, sample_weight=weight)
        np.testing.assert_allclose(cell.efficiency, expected, rtol=1e-6)
    assert posthoc <= likelihood * (1 + 1e-9) <= 1 + 1e-9


def test_at_the_prior_the_efficiency_of_soft_labels_is_s():
    for seed in range(20):
        f, weight = random_f_s(seed)
        statistics = PseudoLabelStatistics.from_proba(f, weight)
        cell = cell_efficiency(
            f, statistics.prior, estimator="posthoc", known_confusion=True, sample_weight=weight
        )
        np.testing.assert_allclose(cell.efficiency, statistics.informativeness)


@given(st.integers(0, 2**32 - 1), st.integers(2, 4), st.booleans())
@settings(max_examples=60, deadline=None)
def test_labels_beat_likelihood_beats_posthoc_beats_sampled(seed, n_classes, known):
    f, weight = random_f_s(seed, n_classes, 12)
    if PseudoLabelStatistics.from_proba(f, weight).spectrum[-1] < 1e-3:
        return
    q = np.random.default_rng(seed).dirichlet(np.full(n_classes, 2.0))
    options = {"mass": 0.2, "known_confusion": known, "sample_weight": weight}
    spread = [cell_efficiency(f, q, estimator=name, **options).variance for name in ESTIMATORS]
    likelihood, posthoc, sampled, labels = spread
    assert (posthoc <= sampled * (1 + 1e-9)).all()
    if known:
        assert (labels <= likelihood * (1 + 1e-6)).all()
        assert (likelihood <= posthoc * (1 + 1e-6)).all()


def test_a_certain_f_s_is_as_good_as_labels():
    for name in ESTIMATORS:
        cell = cell_efficiency([0.0, 0.0, 1.0], 0.3, estimator=name, mass=0.4)
        np.testing.assert_allclose(cell.efficiency, 1.0)


def test_doubling_a_class_by_splitting_f_s_levels_changes_nothing():
    once = cell_efficiency([0.2, 0.7], 0.4, mass=0.3, sample_weight=[2.0, 1.0])
    twice = cell_efficiency([0.2, 0.2, 0.7], 0.4, mass=0.3)
    np.testing.assert_allclose(once.variance, twice.variance)


JOINTS = {
    "two classes": FiniteJoint.from_conditionals(
        [0.6, 0.4], [[0.5, 0.3, 0.15, 0.05], [0.05, 0.15, 0.2, 0.6]], [[0.2, 0.8], [0.6, 0.4]]
    ),
    "three classes": FiniteJoint.from_conditionals(
        [0.3, 0.3, 0.4],
        [[0.6, 0.2, 0.1, 0.1], [0.1, 0.6, 0.2, 0.1], [0.1, 0.1, 0.2, 0.6]],
        [[0.3, 0.7], [0.6, 0.4], [0.5, 0.5]],
    ),
}


def estimate(joint, n, rng):
    """Post-hoc (unclipped) and likelihood estimates of Pr[Y | X_U = 0], with ε and prior estimated."""
    stable, unstable, _ = joint.sample(n, rng)
    f = joint.stable_posterior[stable]
    statistics = PseudoLabelStatistics.from_proba(f)
    posthoc = np.linalg.solve(statistics.confusion, f[unstable == 0].mean(axis=0))
    share = np.bincount(stable[unstable == 0], minlength=len(joint.stable_mass)) / (unstable == 0).sum()
    w = np.exp(log_weights(joint.stable_posterior, statistics.prior))
    q = share @ joint.stable_posterior
    for _ in range(2000):  # EM to convergence: not the way the library maximises the likelihood
        r = q * w
        new = share @ (r / r.sum(axis=1, keepdims=True))
        moved, q = np.abs(new - q).max(), new
        if moved < 1e-9:
            break
    return posthoc, q


@pytest.mark.parametrize("name", JOINTS)
def test_simulated_variances_match_with_confusion_and_prior_estimated(name):
    joint, n, repeats = JOINTS[name], 2500, 500
    rng = np.random.default_rng(11)
    drawn = np.array([estimate(joint, n, rng) for _ in range(repeats)])
    f, q = joint.stable_posterior, joint.unstable_posterior[0]
    for place, estimator in enumerate(("posthoc", "likelihood")):
        cell = cell_efficiency(
            f, q, mass=joint.unstable_mass[0], estimator=estimator, sample_weight=joint.stable_mass
        )
        # A variance of 500 draws is known to within 6 %: three of them are 19 %.
        np.testing.assert_allclose(n * drawn[:, place].var(axis=0), cell.variance, rtol=0.19)
        error = np.abs(drawn[:, place].mean(axis=0) - q).max()
        assert error < 4 * cell.standard_error(n * repeats).max()


def test_rows_needed_give_the_wanted_margin_and_a_quarter_of_them_do_not():
    joint = JOINTS["two classes"]
    q = joint.unstable_posterior[0]
    answer = rows_needed(
        joint.stable_posterior, 0.06, mass=joint.unstable_mass[0], unstable=q, sample_weight=joint.stable_mass
    )
    rng = np.random.default_rng(5)

    def coverage(n):
        return np.mean([abs(estimate(joint, n, rng)[1][1] - q[1]) <= 0.06 for _ in range(600)])

    assert 0.92 <= coverage(answer.rows) <= 0.975
    assert coverage(answer.rows // 4) < 0.75


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: cell_efficiency([0.2, 0.8], 0.5, mass=0.0), "share of rows"),
        (lambda: cell_efficiency([0.2, 0.8], 0.5, estimator="em"), "use one of"),
        (lambda: cell_efficiency([0.2, 0.8], [0.2, 0.3, 0.5]), "2 classes are expected"),
    ],
)
def test_impossible_questions_are_answered_by_a_sentence(call, message):
    with pytest.raises(ValueError, match=message):
        call()
