"""answer="safe": the same decision, but f_S where its gain over f_S may be nothing. And one source domain."""

from dataclasses import replace

import numpy as np
import pytest
from gaussian_domains import AS_IT_WAS, MIRRORED_U, fitted, rows
from sklearn.tree import DecisionTreeClassifier

from sfboost import AdaptationRefused, AdaptationWarning, StableFeatureBoosting


@pytest.fixture(scope="module")
def model():
    return fitted(np.random.default_rng(0))


def knowing(model, **changes):
    """The same model, whose training knows something else."""
    other = StableFeatureBoosting(**model.get_params())
    other.__dict__.update(vars(model) | {"training_": replace(model.training_, **changes)})
    return other


@pytest.mark.parametrize("signs", [AS_IT_WAS, (1, 1, -1, 1), MIRRORED_U], ids=["as it was", "one", "all"])
def test_where_the_gain_is_certain_the_answer_is_that_of_best_and_the_limit_holds(model, signs):
    rest, y = rows(np.random.default_rng(1), 9500, signs)
    X, rest, y = rest[:1500], rest[1500:], y[1500:]
    safe, best = (model.adapt(X, answer=answer) for answer in ("safe", "best"))
    assert safe.weights_ == best.weights_ != {"stable": 1.0}
    np.testing.assert_array_equal(safe.predict_proba(X), best.predict_proba(X))
    found = safe.reason_.values
    gained = safe.score(rest, y) - np.mean(model.predict_stable_proba(rest).argmax(axis=1) == y)
    assert not found["kept"]
    assert 0.0 < found["least"] < gained
    assert found["gain"] == pytest.approx(gained, abs=0.03)
    assert "is better: " in str(safe.reason_)


@pytest.mark.parametrize(("gains", "kept"), [((0.05, 0.06) * 2, False), ((0.2, -0.1) * 2, True)])
def test_source_domains_that_disagree_about_the_gain_keep_f_s(model, gains, kept):
    X, _ = rows(np.random.default_rng(1), 1500)
    scores = model.training_.record.scores["stable"]
    pooled = tuple(s | {"accuracy": s["accuracy"] + gain} for s, gain in zip(scores, gains, strict=True))
    record = replace(model.training_.record, scores={"stable": scores, "pooled": pooled})
    other = knowing(model, record=record)
    if not kept:
        assert other.adapt(X, answer="safe").decision_ == "pooled"
        return
    with pytest.warns(AdaptationRefused, match="may gain nothing: .5.0 points of accuracy is expected, -"):
        adapted = other.adapt(X, answer="safe")
    assert adapted.reason_.code == "no_shift"
    np.testing.assert_allclose(adapted.predict_proba(X), model.predict_stable_proba(X))
    # Four domains, a half-spread of .15: the next one may lose t(.95, 3) · s · √(1 + 1/4) of the mean of .05.
    assert adapted.reason_.values["least"] == pytest.approx(0.05 - 2.3534 * 0.1732 * np.sqrt(1.25), abs=1e-3)


def test_where_nothing_can_be_told_f_s_answers(model):
    X, _ = rows(np.random.default_rng(2), 12)
    with pytest.warns(AdaptationWarning, match="Cannot tell whether a feature shifted"):
        assert model.adapt(X).decision_ == "pooled"
    with pytest.warns(AdaptationRefused, match="cannot be told .no test could tell"):
        adapted = model.adapt(X, answer="safe")
    np.testing.assert_allclose(adapted.predict_proba(X), model.predict_stable_proba(X))


def test_a_leak_that_could_undo_the_gain_keeps_f_s(model):
    """What is lost to the worst leak grows with it; one that nobody has measured is not zero."""
    X, _ = rows(np.random.default_rng(3), 1500, MIRRORED_U)
    least = [
        knowing(model, leak=leak).adapt(X, answer="safe").reason_.values["least"]
        for leak in (0.0, 0.01, 0.02)
    ]
    assert np.diff(least) == pytest.approx([least[1] - least[0]] * 2)
    enough = 0.01 * least[0] / (least[0] - least[1])
    assert knowing(model, leak=0.99 * enough).adapt(X, answer="safe").decision_ == "adapted"
    for leak, why in ((1.01 * enough, "may gain nothing"), (None, "could not be measured in training")):
        other = knowing(model, leak=leak)
        with pytest.warns(AdaptationRefused, match=why):
            kept = other.adapt(X, answer="safe")
        np.testing.assert_allclose(kept.predict_proba(X), model.predict_stable_proba(X))
        assert kept.reason_.code == "unstable_shifted"
        assert other.adapt(X).decision_ == "adapted"


@pytest.mark.parametrize("alone", [["a"] * 600, ["a"] * 599 + ["b"]], ids=["one", "one and a row"])
def test_one_source_domain_is_answered_by_the_calibrated_learner_and_nothing_is_claimed(alone):
    rng = np.random.default_rng(4)
    tree = DecisionTreeClassifier(min_samples_leaf=3, random_state=0)
    X, y = rows(rng, 600)
    model = StableFeatureBoosting([0, 1], [2, 3], learner=tree).fit(X, y, sample_domain=alone)
    for draw in range(50):
        X, y = rows(rng, 400, (AS_IT_WAS, MIRRORED_U)[draw % 2])
        with pytest.warns(AdaptationWarning, match="there is one source domain"):
            adapted = model.adapt(X)
        assert (adapted.decision_, adapted.reason_.code) == ("pooled", "cannot_tell")
        assert adapted.shift_.verdict == "cannot tell"
        np.testing.assert_array_equal(adapted.predict_proba(X), model.predict_proba(X))
    same, labels = rows(rng, 4000)
    raw = np.clip(tree.fit(*rows(rng, 600)).predict_proba(same), 1e-6, 1.0)
    loss = [-np.log(proba[np.arange(4000), labels]).mean() for proba in (model.predict_proba(same), raw)]
    assert loss[0] < 0.5 * loss[1]  # a tree of small leaves is far too sure
    with pytest.warns(AdaptationRefused):
        kept = model.adapt(X, answer="safe")
    np.testing.assert_allclose(kept.predict_proba(X), model.predict_stable_proba(X))
