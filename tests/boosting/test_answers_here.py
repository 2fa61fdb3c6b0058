"""How good is it here, and how sure is this row, without labels."""

import numpy as np
import pytest
from joints import draw_anticausal
from scipy.stats import t as student

from sfboost import Settings, StableFeatureBoosting, load
from sfboost.boosting import calibrate_sets, performance_without_labels
from sfboost.diagnostics import confidence_based
from sfboost.diagnostics.performance import PredictionSets


@pytest.fixture(scope="module")
def hospitals():
    parts = [draw_anticausal(500, agreement, seed) for seed, agreement in enumerate((0.95, 0.8, 0.7))]
    X, y = (np.concatenate([part[i] for part in parts]) for i in (0, 1))
    return X, y, np.repeat(["a", "b", "c"], 500)


@pytest.fixture(scope="module")
def model(hospitals):
    X, y, domain = hospitals
    return StableFeatureBoosting([0], [1], learner=None).fit(X, y, sample_domain=domain)


def test_no_figures_where_the_rows_contradict_the_assumptions(model):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 3000)
    stable = np.where(rng.random(3000) < 0.75, y, 1 - y)
    copied = np.column_stack([stable, stable]).astype(float)  # the unstable feature is the stable one
    found = performance_without_labels(model.adapt(copied, settings=Settings("paper")), copied)
    assert found["answer"].value == found["stable"].value == {}
    assert "no class explains" in str(found["answer"])


def test_more_coverage_means_larger_sets():
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(4), 500)
    y = np.array([rng.choice(4, p=row) for row in proba])
    sets = PredictionSets.calibrate(proba, y, np.repeat(["a", "b"], 250))
    small, large = sets.predict_set(proba, 0.5), sets.predict_set(proba, 0.95)
    assert (small <= large).all()
    assert small.sum() < large.sum()
    assert large[np.arange(500), y].mean() >= 0.95


def test_too_few_rows_for_the_coverage_give_every_class():
    sets = PredictionSets.calibrate([[0.9, 0.1]] * 3, [0, 0, 0], ["a"] * 3)
    assert sets.predict_set([[0.99, 0.01]], coverage=0.9).all()
    for coverage in (0.0, 1.0, float("nan"), "0.9", None):
        with pytest.raises(ValueError, match="is not a share"):
            sets.predict_set([[0.99, 0.01]], coverage=coverage)


def test_one_domain_alone_cannot_be_left_out(model):
    X, y = draw_anticausal(100, 0.9, seed=1)
    with pytest.raises(ValueError, match="two domains or more"):
        calibrate_sets(model, X, y, ["a"] * 100)


def drawn_hospitals(rng, slopes, n=400):
    """Hospitals of one population: the second feature's slope is the hospital's own."""
    y = rng.integers(0, 2, (len(slopes), n))
    S = 1.2 * y + rng.normal(size=y.shape)
    U = np.asarray(slopes)[:, None] * y + rng.normal(size=y.shape)
    return np.stack([S, U], axis=-1), y


def test_an_adapted_models_sets_cover_in_new_domains_and_survive_the_file(tmp_path):
    rng = np.random.default_rng(0)
    X, y = drawn_hospitals(rng, rng.normal(0.0, 1.5, 6))
    rows = (X.reshape(-1, 2), y.ravel(), np.repeat(np.arange(6), 400))
    model = StableFeatureBoosting([0], [1], learner=None, settings=Settings("paper")).fit(
        *rows[:2], sample_domain=rows[2]
    )
    with pytest.raises(ValueError, match="calibrate_sets"):
        model.adapt(X[0]).predict_set(X[0])
    model.calibrate_sets(*rows)
    new, truth = drawn_hospitals(rng, rng.normal(0.0, 1.5, 20))
    covered, sizes = [], []
    for here, label in zip(new, truth, strict=True):
        adapted = model.adapt(here)
        inside = adapted.predict_set(here, coverage=0.9)
        covered.append(inside[np.arange(400), label].mean())
        sizes.append(inside.sum(axis=1).mean())
    # Six domains that could come in any order: a seventh is covered with probability 6/7 or more.
    assert np.mean(np.array(covered) >= 0.9 - 0.02) >= 6 / 7 - 0.1
    assert 1.0 <= np.mean(sizes) < 1.6
    adapted.save(tmp_path / "adapted.sfb")
    np.testing.assert_array_equal(load(tmp_path / "adapted.sfb").predict_set(here), adapted.predict_set(here))


def test_costs_decide_by_the_expected_cost_and_equal_ones_by_the_class(model, hospitals):
    X = hospitals[0][:500]
    adapted = model.adapt(X)
    proba = adapted.predict_proba(X)[:, 1]
    np.testing.assert_array_equal(adapted.predict(X, costs=[[0, 1], [1, 0]]), adapted.predict(X))
    np.testing.assert_array_equal(adapted.predict(X, costs=[[0, 1], [9, 0]]), (proba > 0.1).astype(int))
    np.testing.assert_array_equal(adapted.predict(X, costs=[[2, 2], [2, 2]]), adapted.predict(X))
    with pytest.raises(ValueError, match="2 rows, one for each true class"):
        adapted.predict(X, costs=[1, 9])


def test_after_a_shift_the_stable_predictor_tells_how_far_pooled_has_fallen(model):
    X_new, y_new = draw_anticausal(3000, 0.1, seed=5)
    adapted = model.adapt(X_new)
    found = performance_without_labels(adapted, X_new)
    pooled = np.exp(model.answer_rows(X_new).log_pooled)
    true = {
        "stable": np.mean(model.predict_stable_proba(X_new).argmax(axis=1) == y_new),
        "answer": adapted.score(X_new, y_new),
        "pooled": np.mean(pooled.argmax(axis=1) == y_new),
    }
    assert confidence_based(pooled)["accuracy"] > true["pooled"] + 0.3
    for name, performance in found.items():
        assert performance.value["accuracy"] == pytest.approx(true[name], abs=0.05), name
        assert performance.lower["accuracy"] <= true[name] <= performance.upper["accuracy"], name


def test_the_answer_stands_for_labels_only_where_nothing_shifted(model):
    X_new = draw_anticausal(500, 0.1, seed=5)[0]
    for settings in (Settings("paper"), None):
        with pytest.raises(ValueError, match="No source domain has looked like this"):
            performance_without_labels(model.adapt(X_new, settings=settings), X_new, labels_from="answer")
    with pytest.raises(ValueError, match="neither 'answer' nor 'stable'"):
        performance_without_labels(model.adapt(X_new), X_new, labels_from="truth")


def test_a_model_that_is_not_adapted_is_told_what_to_do(model):
    with pytest.raises(TypeError, match="Got a StableFeatureBoosting: pass what its `adapt` returns"):
        performance_without_labels(model, draw_anticausal(50, 0.1, seed=5)[0])


def test_the_interval_is_as_far_off_as_source_domains_were(model):
    X_new, y_new = draw_anticausal(3000, 0.8, seed=5)
    adapted = model.adapt(X_new)
    assert adapted.best.as_in_training
    told = performance_without_labels(adapted, X_new, level=0.8)["answer"]
    assert "source domains, each left out in turn" in str(told)
    errors = [error["accuracy"] for error in model.training_.record.errors["pooled"]]
    off, right = np.sqrt(np.mean(np.square(errors))), told.value["accuracy"]
    noise = np.sqrt(np.mean((p := adapted.predict_proba(X_new).max(axis=1)) * (1 - p)) / 3000)
    wanted = student.ppf(0.9, len(errors)) * np.hypot(off, noise)
    assert right - told.lower["accuracy"] == pytest.approx(wanted, rel=0.1)
    assert told.lower["accuracy"] <= adapted.score(X_new, y_new) <= told.upper["accuracy"]
