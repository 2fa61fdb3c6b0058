"""The decision from end to end: what moved is named, and answered by the predictor that it asks for."""

import warnings

import numpy as np
import pytest
from gaussian_domains import AS_IT_WAS, MIRRORED_S, MIRRORED_U, fitted, rows
from sklearn.ensemble import HistGradientBoostingClassifier

from sfboost import Settings, StableFeatureBoosting
from sfboost.choice.predictors import relearn


def brier(answer, X, y):
    proba = answer if isinstance(answer, np.ndarray) else answer.predict_proba(X)
    return float(((proba - np.eye(proba.shape[1])[y]) ** 2).sum(axis=1).mean())


@pytest.fixture(scope="module")
def model():
    return fitted(np.random.default_rng(0))


def test_where_nothing_shifted_the_pooled_classifier_answers_as_it_is(model):
    X, _ = rows(np.random.default_rng(1), 1500)
    adapted = model.adapt(X)
    assert adapted.weights_ == {"pooled": 1.0}
    assert str(adapted.reason_).startswith(
        "No shift was found: features go together as in your 4 source domains"
    )
    np.testing.assert_allclose(adapted.predict_log_proba(X), model.answer_rows(X).log_pooled, atol=1e-12)
    assert adapted.best.as_in_training


@pytest.mark.parametrize(
    ("signs", "changed", "answer"),
    [((1, 1, -1, 1), ("x2",), "realigned"), (MIRRORED_U, ("x2", "x3"), "boosted")],
    ids=["one column", "all together"],
)
def test_mirrored_unstable_features_are_named_and_answered(model, signs, changed, answer):
    X, y = rows(np.random.default_rng(2), 1500, signs)
    adapted = model.adapt(X)
    assert adapted.shift_.unstable.changed == changed
    assert adapted.weights_ == {answer: 1.0}
    answers = adapted.answers_
    assert brier(adapted, X, y) < min(brier(answers["stable"], X, y), brier(answers["pooled"], X, y)) - 0.05
    assert not adapted.best.as_in_training


def test_a_mirrored_stable_column_is_named_and_answered(model):
    """The user said that it is stable; all other features say that it is not."""
    X, y = rows(np.random.default_rng(3), 1500, (1, -1, 1, 1))
    adapted = model.adapt(X)
    assert adapted.shift_.stable.changed == ("x1",)
    assert adapted.weights_ == {"stable realigned": 1.0}
    assert "The stable feature 'x1' no longer goes with the unstable ones" in str(adapted.reason_)
    assert brier(adapted, X, y) < brier(adapted.answers_["pooled"], X, y) - 0.05


@pytest.mark.parametrize("signs", [MIRRORED_U, MIRRORED_S], ids=["unstable", "stable"])
def test_of_two_sides_that_go_otherwise_altogether_the_users_word_tells(model, signs):
    """Rows of either world are those of the other with labels exchanged: the reason claims no more."""
    X, y = rows(np.random.default_rng(4), 1500, signs)
    adapted = model.adapt(X)
    assert adapted.weights_ == {"boosted": 1.0}
    assert "'x2', 'x3' no longer go with the stable ones" in str(adapted.reason_)
    assert "'x0', 'x1' no longer go with the unstable ones" in str(adapted.reason_)
    right = np.mean(adapted.predict(X) == y)
    assert right > 0.85 if signs == MIRRORED_U else right < 0.15


def test_three_classes(model):
    rng, shares = np.random.default_rng(5), (0.5, 0.3, 0.2)
    three = fitted(rng, 800, shares=shares)
    same, _ = rows(rng, 1500, shares=shares)
    assert three.adapt(same).weights_ == {"pooled": 1.0}
    X, y = rows(rng, 1500, MIRRORED_U, shares)
    adapted = three.adapt(X)
    assert adapted.shift_.unstable.changed == ("x2", "x3")
    answers = adapted.answers_
    assert brier(adapted, X, y) < min(brier(answers["stable"], X, y), brier(answers["pooled"], X, y)) - 0.05


def test_moved_class_shares_are_found_and_answered():
    rng = np.random.default_rng(6)
    moving = [rows(rng, 800, shares=(1 - share, share)) for share in (0.3, 0.5, 0.6, 0.4, 0.7)]
    X, y = (np.concatenate(part) for part in zip(*moving, strict=True))
    model = StableFeatureBoosting([0, 1], [2, 3]).fit(X, y, sample_domain=np.repeat(np.arange(5), 800))
    X, y = rows(rng, 1500, shares=(0.15, 0.85))
    adapted = model.adapt(X)
    assert adapted.weights_ == {"shares": 1.0}
    assert model.training_.record.prior[1] + 0.1 < adapted.best.prior[1] < 0.9
    assert "from 50 % in training to about" in str(adapted.reason_)
    assert brier(adapted, X, y) < brier(adapted.answers_["pooled"], X, y)


@pytest.mark.parametrize("signs", [AS_IT_WAS, (1, 1, -1, 1)], ids=["as it was", "mirrored"])
def test_a_row_of_weight_three_is_that_row_three_times(model, signs):
    rng = np.random.default_rng(8)
    X, y = rows(rng, 1000, signs)
    weight = 1 + 2 * y
    usual = {"settings": Settings(l2=0.01)}  # folds that choose it part a row from its copy
    weighted = model.adapt(X, sample_weight=weight, **usual)
    thrice = model.adapt(np.repeat(X, weight, axis=0), **usual)
    # Standard errors know that copies tell no more than the row once: what rests on p-values moves a little.
    assert weighted.weights_ == pytest.approx(thrice.weights_, abs=0.02)
    here = model.answer_rows(X)
    for name, answer in thrice.best.answers.items():
        found = weighted.best.answers[name].log_proba(here)
        np.testing.assert_allclose(np.exp(found), np.exp(answer.log_proba(here)), atol=0.02, err_msg=name)


@pytest.mark.parametrize("transport", ["posterior", "likelihood"])
def test_what_is_learned_anew_of_weighted_rows_by_itself_is_what_adapting_learned(transport):
    """With labels SFB is judged as it would be without them, and is learned once more for that."""
    model = fitted(np.random.default_rng(0), shares=(0.7, 0.3), transport=transport)
    X, y = rows(np.random.default_rng(11), 800, MIRRORED_U, (0.3, 0.7))
    weight, choices = 1.0 + 2.0 * y, Settings().resolved(transport=transport)
    adapted = model.adapt(X, sample_weight=weight)
    here = model.answer_rows(X, weight)
    alone = relearn(here, choices, model.training_.record.prior, model.classes_)
    found, expected = (np.exp(one.log_proba(here)) for one in (alone, adapted.best.answers["boosted"]))
    np.testing.assert_allclose(found, expected, atol=1e-3)


def test_a_rare_class_few_rows_and_boosting():
    """Nothing in the decision was made for 300 rows with 15 positives, nor for trees."""
    rng, shares = np.random.default_rng(9), (0.95, 0.05)
    trees = HistGradientBoostingClassifier(max_iter=40, random_state=0)
    model = fitted(rng, 1500, shares=shares, stable=trees, learner=trees)
    for signs in (AS_IT_WAS, MIRRORED_U):
        X, y = rows(rng, 300, signs, shares)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            adapted = model.adapt(X)
        score, best = brier(adapted, X, y), min(brier(proba, X, y) for proba in adapted.answers_.values())
        assert score < best + 0.01
        assert score < brier(adapted.answers_["stable"], X, y) - 0.02


@pytest.mark.long
def test_worlds_where_nothing_moved_are_seldom_said_to_have_changed():
    """Of 40 worlds, at a true 5 % for each of two sides, more than seven are in 5 % of the cases."""
    claims = 0
    for seed in range(40):
        rng = np.random.default_rng(100 + seed)
        best = fitted(rng, 400).adapt(rows(rng, 600)[0]).best
        claims += best.shift.side != "nothing"
    assert claims <= 7
