"""One adapted class: whatever model it is of, it has the same attributes, which mean the same."""

from copy import copy

import numpy as np
import pytest
from joints import draw_anticausal
from scipy.special import log_softmax
from sklearn.linear_model import LogisticRegression

from sfboost import AdaptedClassifier, Settings, StableFeatureBoosting, load
from sfboost.adaptation import adapt

KINDS = ["columns", "network"]


def rows_of(*agreements, n=1500):
    parts = [draw_anticausal(n, agreement, seed) for seed, agreement in enumerate(agreements)]
    X, y = (np.concatenate([part[i] for part in parts]) for i in (0, 1))
    return X, y, np.repeat(np.arange(len(agreements)), n)


@pytest.fixture(scope="module")
def new():
    return draw_anticausal(3000, 0.1, seed=9)[0]


@pytest.fixture(scope="module")
def models():
    X, y, domain = rows_of(0.9, 0.7)
    made = {"columns": StableFeatureBoosting([0], [1], learner=None).fit(X, y, domain)}
    try:
        import torch
    except ImportError:
        return made
    from sfboost.torch import Plan, SFBClassifier

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    plan = Plan(learning_rate=0.02, steps=80, unstable_steps=80, validation_fraction=0.5, min_gain=-9.0)
    network = SFBClassifier("small", n_stable=1, plan=plan).fit(X, y, sample_domain=domain)
    torch.set_num_threads(threads)
    return {**made, "network": network}


def adapted_of(models, kind, X):
    if kind not in models:
        pytest.skip("needs the torch extra")
    return models[kind].adapt(X, settings=Settings("paper"))


@pytest.mark.parametrize("kind", KINDS)
def test_every_attribute_is_there_and_of_its_type(models, new, kind):
    adapted = adapted_of(models, kind, new)
    assert type(adapted) is AdaptedClassifier
    assert adapted.decision_ == "adapted"
    assert adapted.reason_.code == "learned"
    assert adapted.classes_.tolist() == [0, 1]
    assert adapted.prior_.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(adapted.confusion_.sum(axis=0), 1.0)
    assert 0.1 < adapted.informativeness_ < 0.5  # (2 · 0.75 − 1)² = 0.25
    assert adapted.head_ is not None
    assert adapted.rounds_ == 1
    assert adapted.warnings_ == ()


@pytest.mark.parametrize("kind", KINDS)
def test_the_terms_of_an_explanation_add_up_to_the_prediction(models, new, kind):
    adapted = adapted_of(models, kind, new)
    for row in (new[3], new[3:4]):
        why = adapted.explain(row)
        np.testing.assert_allclose(why.joint, adapted.predict_log_proba(new[3:4])[0], atol=1e-12)
        np.testing.assert_allclose(why.joint, log_softmax(why.stable + why.unstable - why.prior), atol=1e-9)
        assert why.feature_names == adapted.model.unstable_names_
        assert len(why.feature_names) == 1
    with pytest.raises(ValueError, match=r"one row, got 2|features"):
        adapted.explain(new[:2])


@pytest.mark.parametrize("kind", KINDS)
def test_training_knows_what_the_unstable_feature_meant_in_each_domain_and_is_saved(models, kind, tmp_path):
    if kind not in models:
        pytest.skip("needs the torch extra")
    training = models[kind].training_
    assert [head.name for head in training.heads] == [0, 1]
    slopes = [abs(head.head.coef_[0, 0]) for head in training.heads]
    # The log-odds of a sign that agrees in 90 % and in 70 % of the rows.
    np.testing.assert_allclose(slopes, [np.log(9), np.log(7 / 3)], atol=0.3)
    np.testing.assert_allclose(training.source_prior, 0.5, atol=0.05)
    assert training.evidence.convincing
    assert training.leak is not None
    models[kind].save(tmp_path / "model.sfb")
    loaded = load(tmp_path / "model.sfb").training_
    for name in ("evidence", "leak"):
        assert getattr(loaded, name) == getattr(training, name)
    for ours, theirs in zip(loaded.heads, training.heads, strict=True):
        np.testing.assert_array_equal(ours.head.coef_, theirs.head.coef_)
        np.testing.assert_array_equal(ours.feature_scale, theirs.feature_scale)


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_adapted_is_what_the_engine_makes_of_both_parts(models, new, kind):
    adapted = adapted_of(models, kind, new)
    log_stable, unstable = models[kind].stable_and_unstable(new)
    by_hand = adapt(
        np.exp(log_stable),
        unstable,
        training=models[kind].training_,
        settings=Settings("paper"),
    )
    np.testing.assert_allclose(
        by_hand.predict_log_proba(np.exp(log_stable), unstable), adapted.predict_log_proba(new), rtol=1e-9
    )


@pytest.mark.parametrize("kind", KINDS)
def test_fitting_the_model_again_does_not_change_what_was_adapted_before(models, new, kind):
    own = {name: copy(model) for name, model in models.items()}
    adapted = adapted_of(own, kind, new)
    before, stable = adapted.predict_proba(new), own[kind].predict_proba(new)
    X, y, domain = rows_of(0.2, 0.6, n=300)
    own[kind].fit(X, 1 - y, sample_domain=domain)
    assert not np.allclose(own[kind].predict_proba(new), stable)
    np.testing.assert_array_equal(adapted.predict_proba(new), before)


class CountingClassifier(LogisticRegression):
    """Logistic regression that counts how often it predicts."""

    calls = 0

    def predict_proba(self, X):
        type(self).calls += 1
        return super().predict_proba(X)


def test_f_s_is_predicted_once_to_adapt_and_once_to_predict(new):
    X, y, domain = rows_of(0.9, 0.7)
    model = StableFeatureBoosting([0], [1], stable=CountingClassifier(), learner=LogisticRegression())
    model.fit(X, y, domain)
    CountingClassifier.calls = 0
    adapted = model.adapt(new, answer="safe")
    assert CountingClassifier.calls == 1
    adapted.predict_proba(new)
    assert CountingClassifier.calls == 2


def findings(n_rows, stable, unstable, seed):
    """Two findings that point to the class with these accuracies."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n_rows)
    right = rng.random((n_rows, 2)) < [stable, unstable]
    return np.where(right, 2 * y[:, None] - 1, 1 - 2 * y[:, None]).astype(float), y


@pytest.mark.filterwarnings("ignore::sfboost.AdaptationWarning")
def test_twenty_labels_help_where_what_was_called_stable_is_not():
    """f_S is 35 % right here, where all features as trained would have 79 %."""
    parts = [findings(500, 0.7, agreement, i) for i, agreement in enumerate((0.85, 0.8, 0.75))]
    X, y = (np.concatenate([part[i] for part in parts]) for i in (0, 1))
    model = StableFeatureBoosting([0], [1]).fit(X, y, sample_domain=np.repeat(["a", "b", "c"], 500))
    right = {"stable": [], "without": [], "with": []}
    for seed in range(20, 30):
        X_new, y_new = findings(60, 0.36, 0.79, seed)
        labels = np.where(np.arange(60) < 20, y_new, np.nan)
        stable = model.predict_stable_proba(X_new[20:]).argmax(axis=1)
        right["stable"].append(np.mean(stable == y_new[20:]))
        for name, answer in (("without", model.adapt(X_new)), ("with", model.adapt(X_new, labels))):
            right[name].append(answer.score(X_new[20:], y_new[20:]))
    means = {name: np.mean(scores) for name, scores in right.items()}
    assert means["stable"] < 0.4
    assert means["with"] > max(means["stable"], means["without"]) + 0.2
