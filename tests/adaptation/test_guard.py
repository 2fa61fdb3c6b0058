"""The guard: f_U is taken whole where its gain is beyond doubt, not at all elsewhere; harm stays small."""

import warnings

import numpy as np
import pytest
from joints import drawn
from sfboost.adaptation.guard import SAMPLING_REACH, worst_leak

from sfboost import AdaptationRefused, AdaptationWarning, Settings, StableFeatureBoosting, Training
from sfboost.adaptation import adapt
from sfboost.adaptation.engine import adapt_rows
from sfboost.adaptation.scores import METRICS, Yardstick
from sfboost.adaptation.settings import resolve
from sfboost.diagnostics import training_leak
from sfboost.heads import SoftLogisticRegression
from sfboost.marginal import log_combine
from sfboost_lab.testing import Dials, random_dials, simulate


@pytest.fixture(scope="module")
def binary():
    """A Gaussian problem that satisfies the assumptions, adapted with a leak of 0.02 allowed for."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 3000)
    stable = 1 / (1 + np.exp(-1.6 * (0.8 * (2 * y - 1) + rng.normal(size=3000))))
    unstable = (2 * y - 1)[:, None] * 0.9 + rng.normal(size=(3000, 1))
    return stable, unstable, y, adapt(stable, unstable, answer="safe", training=Training(leak=0.02))


def judged(adaptation, stable, unstable, leak):
    """Expected gain of the adapted answers if the worst leak of this size made f_U."""
    model, X = adaptation.unstable, adaptation.standardizer.apply(unstable)
    f, prior = np.column_stack([1 - stable, stable]), adaptation.prior
    q = np.exp(model.log_proba(X))
    joint = np.exp(log_combine(f, np.log(q), prior))
    worst = worst_leak((q - prior) @ adaptation.confusion.T, q, np.ones(len(f)))
    moved = q - leak * worst @ np.linalg.inv(adaptation.confusion).T
    seen = np.exp(log_combine(f, np.log(np.maximum(moved, 1e-300)), prior))
    return Yardstick("accuracy").gain(f, joint, seen)


def test_what_the_guard_lets_through_is_whole(binary):
    stable, unstable, _, adaptation = binary
    plain = adapt(stable, unstable)
    assert adaptation.decision.kind == "adapted"
    np.testing.assert_allclose(
        adaptation.predict_proba(stable, unstable), plain.predict_proba(stable, unstable), rtol=1e-9
    )


def guard_of(binary, costs=None, metric=None):
    stable, unstable = binary[:2]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AdaptationWarning)
        settings = Settings(costs=costs, metric=metric)
        return adapt(stable, unstable, answer="safe", training=Training(leak=0.02), settings=settings).guard


def test_an_error_that_costs_one_is_a_point_of_accuracy_and_other_units_change_nothing(binary):
    plain, priced = binary[3].guard, guard_of(binary, [[0, 1], [1, 0]])
    np.testing.assert_allclose(
        [priced.gain, priced.gain_error, priced.break_even],
        [plain.gain, plain.gain_error, plain.break_even],
        rtol=1e-9,
    )
    cents = guard_of(binary, [[0, 100], [100, 0]])
    np.testing.assert_allclose(
        [cents.gain, cents.gain_error, cents.break_even],
        [100 * plain.gain, 100 * plain.gain_error, plain.break_even],
        rtol=1e-4,
    )
    assert "in cost a row" in cents.decision("Some rows").reason


def test_the_guard_asks_what_is_saved_where_errors_have_a_price(binary):
    stable, unstable, y, _ = binary
    costs = np.array([[0.0, 1.0], [5.0, 0.0]])
    guard = guard_of(binary, costs)
    joint = adapt(stable, unstable).predict_proba(stable, unstable)
    saved = np.mean(costs[y, (stable > 1 / 6).astype(int)] - costs[y, (joint[:, 1] > 1 / 6).astype(int)])
    assert guard.gain == pytest.approx(saved, abs=0.05)
    # Where one decision is right whatever the row, nothing is to be gained by knowing more of it.
    assert not guard_of(binary, [[0.0, 1.0], [1e9, 0.0]]).accepts


@pytest.mark.parametrize("metric", [metric for metric in METRICS if metric != "ece"])
def test_the_gain_is_that_of_the_score_that_counts(binary, metric):
    """As labels show it; and the break-even leak is where the same score says that nothing is gained."""
    stable, unstable, y, _ = binary
    guard = guard_of(binary, metric=metric)
    f, joint = np.column_stack([1 - stable, stable]), adapt(stable, unstable).predict_proba(stable, unstable)
    true = Yardstick(metric).gain(f, joint, np.eye(2)[y])
    assert guard.metric == metric
    assert true > 0.02
    assert guard.gain == pytest.approx(true, abs=0.15 * true)
    assert guard.accepts
    names = {"log_loss": "in log loss", "brier": "in Brier score", "auroc": "in AUROC"}
    assert names.get(metric, "accuracy") in guard.decision("Some rows").reason


def test_f_u_is_used_exactly_where_the_leak_is_below_break_even(binary):
    stable, unstable, _, adaptation = binary
    limit = adaptation.guard.break_even
    assert 0.02 < limit < 0.5
    kinds = []
    for leak in (0.0, 0.99 * limit, 1.01 * limit):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", AdaptationWarning)
            found = adapt(stable, unstable, answer="safe", training=Training(leak=leak))
        assert found.guard.break_even == limit
        kinds.append(found.decision.kind)
    assert kinds == ["adapted", "adapted", "kept stable"]


def test_at_break_even_the_loss_to_the_leak_and_to_sampling_error_is_the_gain(binary):
    stable, unstable, _, adaptation = binary
    guard = adaptation.guard
    plain, worst = (judged(adaptation, stable, unstable, leak) for leak in (0.0, guard.break_even))
    assert np.hypot(plain - worst, SAMPLING_REACH * guard.gain_error) == pytest.approx(guard.gain, abs=1e-4)


def test_the_estimated_gain_is_the_gain_of_labels_and_its_error_that_of_other_draws():
    """Forty draws: estimates and truths agree in the mean, and differ by about the error that is told."""
    errors, told = [], []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        y = rng.integers(0, 2, 600)
        stable = 1 / (1 + np.exp(-1.6 * (0.8 * (2 * y - 1) + rng.normal(size=600))))
        unstable = (2 * y - 1)[:, None] * [0.6, 0.0, 0.0] + rng.normal(size=(600, 3))
        head = SoftLogisticRegression(l2=1e-3)  # one of our own spares the choice of a penalty
        adaptation = adapt(
            stable, unstable, settings=Settings(head=head), answer="safe", training=Training(leak=0.0)
        )
        new = rng.integers(0, 2, 20_000)
        f = 1 / (1 + np.exp(-1.6 * (0.8 * (2 * new - 1) + rng.normal(size=20_000))))
        U = (2 * new - 1)[:, None] * [0.6, 0.0, 0.0] + rng.normal(size=(20_000, 3))
        gained = np.mean(adaptation.predict(f, U) == new) - np.mean((f > 0.5) == new)
        errors.append(adaptation.guard.gain - gained if adaptation.head is not None else np.nan)
        told.append(adaptation.guard.gain_error)
    errors = np.array(errors)
    assert np.isfinite(errors).sum() >= 20
    assert abs(np.nanmean(errors)) < 0.02
    assert 0.5 < np.nanstd(errors) / np.mean(told) < 1.5


@pytest.mark.parametrize("n_features", [1, 30])
def test_noise_gains_nothing_however_many_its_columns(n_features):
    """What many useless columns change looks like a gain to the head that changes it."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 3000)
    stable = 1 / (1 + np.exp(-2.0 * (0.8 * (2 * y - 1) + rng.normal(size=3000))))
    noise = rng.normal(size=(3000, n_features))
    settings = Settings(head=SoftLogisticRegression(l2=1e-6))
    with pytest.warns(AdaptationRefused, match="not beyond sampling error"):
        kept = adapt(stable, noise, settings=settings, answer="safe")
    assert kept.guard.gain < SAMPLING_REACH * kept.guard.gain_error


def test_the_worst_leak_is_all_that_is_seen_where_x_u_hardly_tells_the_classes_apart():
    rng = np.random.default_rng(0)
    weight = np.ones(50_000)
    faint, strong = (1 / (1 + np.exp(-slope * rng.normal(size=50_000))) for slope in (0.05, 20.0))
    for q, share in ((faint, 1.0), (strong, 0.3)):
        both = np.column_stack([1 - q, q])
        shown = 0.4 * (both - both.mean(axis=0))
        worst = worst_leak(shown, both, weight)
        along = np.sum(worst * shown) / np.sqrt(np.sum(shown**2) * len(q) * 2)
        assert (along > 0.99) if share == 1.0 else (along < 0.6)


def test_a_leak_that_explains_everything_keeps_the_stable_predictor_exactly(binary):
    stable, unstable, _, _ = binary
    with pytest.warns(AdaptationRefused, match="not beyond what such a leak can do"):
        kept = adapt(stable, unstable, answer="safe", training=Training(leak=0.6))
    assert kept.decision.kind == "kept stable"
    assert kept.head is None
    np.testing.assert_allclose(kept.predict_proba(stable, unstable)[:, 1], stable, rtol=1e-12)
    assert kept.guard.break_even > 0.0


def test_the_guard_fits_the_same_unstable_model_as_the_paper(binary):
    stable, unstable, _, adaptation = binary
    plain = adapt(stable, unstable)
    X = adaptation.standardizer.apply(unstable)
    np.testing.assert_allclose(adaptation.unstable.log_proba(X), plain.unstable.log_proba(X), rtol=1e-9)


def test_an_alarm_keeps_the_stable_predictor_of_a_safe_answer_alone(binary):
    stable, unstable, _, _ = binary
    none = dict.fromkeys(("y", "classes", "sample_weight"))
    options = none | {"training": Training(), "uncertainty": False, "alarm": "X_U follows X_S"}
    with pytest.warns(AdaptationRefused, match="X_U follows X_S"):
        kept = adapt_rows(stable, unstable, resolve(), answer="safe", **options)
    assert kept.decision.kind == "kept stable"
    for answer in ("checked", "paper"):
        assert adapt_rows(stable, unstable, resolve(), answer=answer, **options).head is not None


def test_many_classes_are_guarded_as_a_whole_too():
    problem = simulate(random_dials(np.random.default_rng(4), "none"), seed=4)
    new = problem.new
    assert new.posterior.shape[1] > 2
    adaptation = adapt(new.posterior, new.X_unstable, answer="safe", training=Training(leak=0.005))
    assert adaptation.guard.break_even > 0.005
    plain = adapt(new.posterior, new.X_unstable, answer="paper")
    np.testing.assert_allclose(
        adaptation.unstable_proba(new.X_unstable), plain.unstable_proba(new.X_unstable), rtol=1e-9
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AdaptationWarning)
        kept = adapt(new.posterior, new.X_unstable, answer="safe", training=Training(leak=0.9))
    np.testing.assert_allclose(kept.predict_proba(new.posterior, new.X_unstable), new.posterior, rtol=1e-9)


@pytest.mark.parametrize("method", ["paper", "default"])
def test_every_method_can_be_guarded(binary, method):
    stable, unstable, y, _ = binary
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AdaptationWarning)
        adaptation = adapt(stable, unstable, settings=Settings(method), answer="safe")
    assert adaptation.guard is not None
    assert np.mean(adaptation.predict(stable, unstable) == y) >= np.mean((stable > 0.5) == y) - 0.01


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
    model = StableFeatureBoosting(list(range(problem.n_stable))).fit(X, y, domain)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AdaptationWarning)
        guarded, plain = (model.adapt(problem.new.X, answer=answer) for answer in ("safe", "paper"))
        given = model.adapt(problem.new.X, leak=0.25)
    assert guarded.adaptation.guard.leak_source == "training domains"
    assert guarded.leak_ == training_leak(model.leaks_) > max(leak.lower for leak in model.leaks_)
    assert plain.adaptation.guard is None
    assert plain.break_even_ is None
    assert given.leak_ == 0.25


@pytest.mark.long
def test_mean_harm_is_not_positive_and_the_worst_is_small_where_training_shows_the_leak():
    """A small version of studies/study_guard.py."""
    harm, unguarded = [], []
    for number in range(10):
        rng = np.random.default_rng([1, number])
        problem = simulate(random_dials(rng, "training and new"), int(rng.integers(2**31)))
        X, y, domain = problem.training_rows()
        new = problem.new
        model = StableFeatureBoosting(list(range(problem.n_stable))).fit(X, y, domain)
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
        ({"answer": "always"}, "answer='always' is not known: use one of .'best', 'safe'"),
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


def test_gain_and_break_even_count_a_row_of_weight_three_like_three_rows():
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
    assert weighted.gain == pytest.approx(repeated.gain, rel=0.02)
    assert ignored.break_even != pytest.approx(repeated.break_even, rel=0.1)


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


def test_an_adapted_classifier_carries_its_break_even():
    problem = simulate(
        Dials(n_rows=3000, training_violation=0.3, new_violation=0.3, covariate_shift=0.3), seed=1
    )
    X, y, domain = problem.training_rows()
    model = StableFeatureBoosting(stable_features=[0, 1]).fit(X, y, domain)
    new = problem.new.X
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AdaptationWarning)
        adapted, kept = model.adapt(new, answer="safe"), model.adapt(new, leak=0.5)
    assert adapted.leak_ > 0.0
    assert 0.0 < adapted.break_even_ < 0.5
    assert f"break-even {adapted.break_even_:.3f}" in adapted.reason_
    assert kept.decision_ == "kept stable"
