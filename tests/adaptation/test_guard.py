"""The guard: the band is exact for two classes, δ* is where the gain vanishes, harm stays small."""

import warnings
from itertools import pairwise

import numpy as np
import pytest
from joints import drawn

from sfboost import AdaptationRefused, AdaptationWarning, Settings, StableFeatureBoosting, Training, adapt
from sfboost.adaptation.engine import adapt_rows
from sfboost.adaptation.guard import SAMPLING_REACH, expected_gain
from sfboost.adaptation.settings import resolve
from sfboost.diagnostics import Dials, random_dials, simulate
from sfboost.heads import SoftLogisticRegression
from sfboost.marginal import log_combine


@pytest.fixture(scope="module")
def binary():
    """A Gaussian problem that satisfies the assumptions, adapted with a leak of 0.02 allowed for."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 3000)
    stable = 1 / (1 + np.exp(-1.6 * (0.8 * (2 * y - 1) + rng.normal(size=3000))))
    unstable = (2 * y - 1)[:, None] * 0.9 + rng.normal(size=(3000, 1))
    return stable, unstable, y, adapt(stable, unstable, answer="safe", training=Training(leak=0.02))


def test_two_classes_get_the_point_of_the_band_that_is_nearest_to_the_prior(binary):
    _, unstable, _, adaptation = binary
    guard, model = adaptation.guard, adaptation.unstable
    X = adaptation.standardizer.apply(unstable)
    q = np.exp(model.log_proba(X))[:, 1]
    design = np.column_stack([X, np.ones(len(X))])
    error = q * (1 - q) * np.sqrt(np.einsum("ij,jk,ik->i", design, guard.head_covariance, design))
    reach = 0.02 / adaptation.informativeness + SAMPLING_REACH * error
    prior = adaptation.prior[1]
    nearest = np.where(q > prior, np.maximum(q - reach, prior), np.minimum(q + reach, prior))
    np.testing.assert_allclose(adaptation.unstable_proba(unstable)[:, 1], nearest, atol=1e-9)


def test_trust_falls_with_the_leak_and_is_zero_where_the_leak_explains_all(binary):
    _, unstable, _, adaptation = binary
    X = adaptation.standardizer.apply(unstable)
    shares = [adaptation.guard.trust(adaptation.unstable, X, leak) for leak in (0.0, 0.02, 0.1, 1.0)]
    assert all((more >= less).all() for more, less in pairwise(shares))
    assert (shares[-1] == 0.0).all()
    assert shares[0].max() > 0.9


def test_break_even_is_the_leak_at_which_the_gain_of_the_unguarded_answers_vanishes(binary):
    stable, unstable, _, adaptation = binary
    guard, model, X = adaptation.guard, adaptation.unstable, adaptation.standardizer.apply(unstable)
    f = np.column_stack([1 - stable, stable])
    adopted = log_combine(f, model.log_proba(X), adaptation.divisor).argmax(axis=1)

    def gain(leak):
        joint = np.exp(log_combine(f, guard.log_unstable(model, X, leak), adaptation.divisor))
        return expected_gain(f, joint, adopted)

    assert 0.02 < guard.break_even < 0.5
    assert abs(gain(guard.break_even)) < 1e-3
    assert gain(0.8 * guard.break_even) > 0 > gain(1.2 * guard.break_even)


def test_rows_that_depend_on_the_leak_are_those_whose_answer_changes(binary):
    stable, unstable, _, adaptation = binary
    without = adapt(stable, unstable, answer="safe", training=Training(leak=0.0))
    changed = without.predict(stable, unstable) != adaptation.predict(stable, unstable)
    np.testing.assert_array_equal(adaptation.depends_on_leak(stable, unstable), changed)
    assert 0.0 < changed.mean() < 0.2
    assert not adapt(stable, unstable).depends_on_leak(stable, unstable).any()


def test_a_leak_that_explains_everything_keeps_the_stable_predictor_exactly(binary):
    stable, unstable, _, _ = binary
    with pytest.warns(AdaptationRefused, match="no answer"):
        kept = adapt(stable, unstable, answer="safe", training=Training(leak=0.6))
    assert kept.decision.kind == "kept stable"
    assert kept.head is None
    np.testing.assert_allclose(kept.predict_proba(stable, unstable)[:, 1], stable, rtol=1e-12)
    # What was withheld is still there to say which rows the decision cost.
    assert kept.guard.break_even > 0.0
    assert kept.depends_on_leak(stable, unstable).any()


def test_the_guard_fits_the_same_unstable_model_as_the_paper(binary):
    stable, unstable, _, adaptation = binary
    plain = adapt(stable, unstable)
    X = adaptation.standardizer.apply(unstable)
    np.testing.assert_array_equal(adaptation.unstable.log_proba(X), plain.unstable.log_proba(X))


def test_an_alarm_keeps_the_stable_predictor_of_a_safe_answer_alone(binary):
    stable, unstable, _, _ = binary
    none = dict.fromkeys(("y", "classes", "sample_weight"))
    options = none | {"training": Training(), "uncertainty": False, "alarm": "X_U follows X_S"}
    with pytest.warns(AdaptationRefused, match="X_U follows X_S"):
        kept = adapt_rows(stable, unstable, resolve(), answer="safe", **options)
    assert kept.decision.kind == "kept stable"
    for answer in ("checked", "paper"):
        assert adapt_rows(stable, unstable, resolve(), answer=answer, **options).head is not None


def test_decisions_have_three_kinds_in_the_order_of_the_leak(binary):
    stable, unstable, _, _ = binary
    kinds = []
    for leak in (0.0, 0.08, 0.6):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", AdaptationWarning)
            kinds.append(adapt(stable, unstable, answer="safe", training=Training(leak=leak)).decision.kind)
    assert kinds == ["adapted", "blended", "kept stable"]


def test_guarded_probabilities_stay_on_the_simplex_for_many_classes():
    problem = simulate(random_dials(np.random.default_rng(4), "none"), seed=4)
    new = problem.new
    assert new.posterior.shape[1] > 2
    adaptation = adapt(new.posterior, new.X_unstable, answer="safe", training=Training(leak=0.02))
    guarded = adaptation.unstable_proba(new.X_unstable)
    np.testing.assert_allclose(guarded.sum(axis=1), 1.0, atol=1e-9)
    assert guarded.min() >= 0.0
    plain = adapt(new.posterior, new.X_unstable, answer="paper").unstable_proba(new.X_unstable)
    near, far = np.abs(guarded - adaptation.prior), np.abs(plain - adaptation.prior)
    assert (near.max(axis=1) <= far.max(axis=1) + 1e-9).all()


@pytest.mark.parametrize("method", ["paper", "default"])
def test_every_method_can_be_guarded(binary, method):
    stable, unstable, y, _ = binary
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AdaptationWarning)
        adaptation = adapt(stable, unstable, settings=Settings(method), answer="safe")
    assert adaptation.guard is not None
    assert np.mean(adaptation.predict(stable, unstable) == y) >= np.mean((stable > 0.5) == y) - 0.01


class CountingHead(SoftLogisticRegression):
    """Our head; it counts how often it is asked."""

    calls = 0

    def predict_log_proba(self, X):
        type(self).calls += 1
        return super().predict_log_proba(X)


@pytest.mark.parametrize("correction", ["likelihood", "posthoc"])
def test_an_answer_of_the_guard_asks_the_head_once_whatever_leaks_are_tried(binary, correction):
    stable, unstable, _, _ = binary
    settings = Settings(head=CountingHead(), correction=correction)
    adaptation = adapt(stable, unstable, settings=settings, answer="safe", training=Training(leak=0.01))
    for answer in (adaptation.predict_proba, adaptation.depends_on_leak):
        CountingHead.calls = 0
        answer(stable, unstable)
        assert CountingHead.calls == 1


def test_one_law_two_worlds_only_a_given_leak_protects():
    """AC and "copied X_S" have one law of (X_S, X_U): no test can tell them apart, leak=δ can."""
    scores = {}
    for name in ("AC", "copied X_S"):
        rows = drawn(name, 20_000, seed=1)
        plain = adapt(rows.posterior, rows.X_unstable)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", AdaptationWarning)
            guarded = adapt(rows.posterior, rows.X_unstable, answer="safe", training=Training(leak=0.1))
        scores[name] = [
            np.mean(a.predict(rows.posterior, rows.X_unstable) == rows.y) for a in (plain, guarded)
        ]
    assert scores["AC"][0] == pytest.approx(0.90, abs=0.01)
    assert scores["copied X_S"][0] == pytest.approx(0.60, abs=0.01)
    # E[f_S | y, u] differs by ±.1 in the second world: allowing for it keeps 75 % in both.
    assert scores["AC"][1] == pytest.approx(0.75, abs=0.01)
    assert scores["copied X_S"][1] == pytest.approx(0.75, abs=0.01)


def test_the_safe_answer_of_the_estimator_is_guarded_and_the_papers_is_not():
    problem = simulate(random_dials(np.random.default_rng(1), "none"), seed=1)
    X, y, domain = problem.training_rows()
    model = StableFeatureBoosting(stable_features=list(range(problem.n_stable))).fit(X, y, domain)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AdaptationWarning)
        guarded, plain = (model.adapt(problem.new.X, answer=answer) for answer in ("safe", "paper"))
        given = model.adapt(problem.new.X, leak=0.25)
    assert guarded.adaptation.guard.leak_source == "training domains"
    assert guarded.leak_ == max(leak.lower for leak in model.leaks_)
    assert plain.adaptation.guard is None
    assert plain.break_even_ is None
    assert given.leak_ == 0.25
    assert given.depends_on_leak(problem.new.X).shape == (len(problem.new.y),)


@pytest.mark.long
def test_mean_harm_is_not_positive_and_the_worst_is_small_where_training_shows_the_leak():
    """A small version of studies/study_guard.py."""
    harm, unguarded = [], []
    for number in range(10):
        rng = np.random.default_rng([1, number])
        problem = simulate(random_dials(rng, "training and new"), int(rng.integers(2**31)))
        X, y, domain = problem.training_rows()
        new = problem.new
        model = StableFeatureBoosting(stable_features=list(range(problem.n_stable))).fit(X, y, domain)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", AdaptationWarning)
            scores = [
                model.adapt(new.X, answer=answer, settings=Settings(l2=1.0 / len(new.y))).score(new.X, new.y)
                for answer in ("safe", "paper")
            ]
        stable = model.score(new.X, new.y)
        harm.append(stable - scores[0])
        unguarded.append(stable - scores[1])
    assert np.mean(harm) <= 0.0
    assert max(harm) <= 0.03
    assert max(unguarded) > max(harm)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"answer": "always"}, "answer='always' is not known"),
        ({"answer": "paper", "leak": 0.1}, "no effect without a guard"),
        ({"leak": -0.1}, "makes no sense"),
        ({"settings": Settings(head=SoftLogisticRegression())}, "name the head as `unstable`"),
    ],
)
def test_wrong_options_are_refused_with_a_sentence(options, sentence):
    X, y, domain = simulate(Dials(n_rows=200), seed=0).training_rows()
    model = StableFeatureBoosting(stable_features=[0, 1]).fit(X, y, domain)
    with pytest.raises(ValueError, match=sentence):
        model.adapt(X, **options)


def test_break_even_and_cost_count_a_row_of_weight_three_like_three_rows():
    """20 000 rows: the sampling error, for which a repeated row is no observation, is almost nothing."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 20_000)
    stable = 1 / (1 + np.exp(-1.6 * (0.8 * (2 * y - 1) + rng.normal(size=20_000))))
    unstable = (2 * y - 1)[:, None] * 0.9 + rng.normal(size=(20_000, 1))
    weight = np.where(np.abs(stable - 0.5) < 0.3, 3, 1)
    weight[::5] = 0
    rows = np.repeat(np.arange(20_000), weight)
    options = {"answer": "safe", "training": Training(leak=0.05), "settings": Settings(l2=1e-4)}
    weighted = adapt(stable, unstable, sample_weight=weight, **options).guard
    repeated = adapt(stable[rows], unstable[rows], **options).guard
    ignored = adapt(stable, unstable, **options).guard
    assert weighted.break_even == pytest.approx(repeated.break_even, rel=0.02)
    assert weighted.cost == pytest.approx(repeated.cost, rel=0.1)
    assert ignored.break_even != pytest.approx(repeated.break_even, rel=0.1)


def test_the_expected_gain_of_weighted_rows_is_that_of_repeated_ones():
    rng = np.random.default_rng(0)
    stable, joint = rng.dirichlet(np.ones(3), 50), rng.dirichlet(np.ones(3), 50)
    weight = rng.integers(0, 4, 50)
    rows = np.repeat(np.arange(50), weight)
    adopted = joint.argmax(axis=1)
    expected = expected_gain(stable[rows], joint[rows], adopted[rows])
    assert expected_gain(stable, joint, adopted, weight) == pytest.approx(expected, abs=1e-12)


def test_rows_of_weight_zero_raise_no_alarm():
    problem = simulate(Dials(n_rows=2000, covariate_shift=0.3), seed=3)
    X, y, domain = problem.training_rows()
    model = StableFeatureBoosting(stable_features=[0, 1]).fit(X, y, domain)
    new = problem.new.X
    copies = new.copy()
    copies[:, 2] = 3.0 * copies[:, 0]  # X_U follows X_S
    rows, weight = np.vstack([new, copies]), np.repeat([1.0, 0.0], 2000)
    with pytest.warns(AdaptationRefused, match="X_U follows f_S"):
        model.adapt(rows, answer="safe")
    weighted = model.adapt(rows, sample_weight=weight, answer="safe")
    assert weighted.reason_ == model.adapt(new, answer="safe").reason_


def test_an_adapted_classifier_carries_break_even_and_says_which_rows_depend_on_the_leak():
    problem = simulate(
        Dials(n_rows=3000, training_violation=0.3, new_violation=0.3, covariate_shift=0.3), seed=1
    )
    X, y, domain = problem.training_rows()
    model = StableFeatureBoosting(stable_features=[0, 1]).fit(X, y, domain)
    new = problem.new.X
    adapted = model.adapt(new, answer="safe")
    assert adapted.leak_ > 0.0
    assert 0.0 < adapted.break_even_ < 1.0
    assert f"break-even {adapted.break_even_:.3f}" in adapted.reason_
    dependent = adapted.depends_on_leak(new)
    np.testing.assert_array_equal(dependent, adapted.predict(new) != model.adapt(new, leak=0.0).predict(new))
    assert 0 < dependent.sum() < 1500
