"""`sfboost.adapt` on arrays: with training it decides as the estimator does, without it SFB answers."""

import warnings

import numpy as np
import pytest
from gaussian_domains import AS_IT_WAS, MIRRORED_U, fitted, rows, source_rows

import sfboost
from sfboost import AdaptationRefused, Training
from sfboost_lab.testing import Dials, simulate


@pytest.fixture(scope="module")
def source():
    """An estimator, and what its f_S and X_U teach as arrays."""
    X, y, domain = source_rows(np.random.default_rng(0))
    model = fitted(np.random.default_rng(0))
    return model, sfboost.learn_training(model.predict_stable_proba(X), X[:, 2:], y, domain)


@pytest.mark.parametrize("answer", ["best", "safe"])
@pytest.mark.parametrize("signs", [AS_IT_WAS, (1, 1, -1, 1), MIRRORED_U], ids=["as it was", "one", "all"])
def test_with_training_arrays_are_decided_as_by_the_estimator(source, signs, answer, tmp_path):
    model, training = source
    X, _ = rows(np.random.default_rng(1), 1500, signs)
    pair = model.predict_stable_proba(X), X[:, 2:]
    ours, theirs = sfboost.adapt(*pair, training=training, answer=answer), model.adapt(X, answer=answer)
    assert (ours.decision_, ours.reason_.code) == (theirs.decision_, theirs.reason_.code)
    assert ours.weights_ == theirs.weights_
    named = tuple(f"x{int(name[1:]) + 2}" for name in ours.shift_.unstable.changed)
    assert (ours.shift_.verdict, named) == (theirs.shift_.verdict, theirs.shift_.unstable.changed)
    proba = ours.predict_proba(*pair)
    assert np.abs(proba - theirs.predict_proba(X)).mean() < 0.02
    np.testing.assert_allclose(np.exp(ours.explain((pair[0][:1], pair[1][:1])).joint), proba[0])
    ours.save(tmp_path / "ours.sfb")
    np.testing.assert_array_equal(sfboost.load(tmp_path / "ours.sfb").predict_proba(*pair), proba)


def test_without_training_x_u_is_learned_anew_and_nothing_is_said_to_have_moved():
    new = simulate(Dials(n_rows=3000), seed=0).new
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        adapted = sfboost.adapt(new.posterior, new.X_unstable, classes=["ill", "well"])
    assert (adapted.decision_, adapted.reason_.code, adapted.shift_) == ("adapted", "learned", None)
    engine = sfboost.adaptation.adapt(new.posterior, new.X_unstable)
    proba = adapted.predict_proba(new.posterior, new.X_unstable)
    np.testing.assert_allclose(proba, engine.predict_proba(new.posterior, new.X_unstable))
    assert set(adapted.predict(new.posterior, new.X_unstable)) == {"ill", "well"}


@pytest.mark.parametrize(
    ("dials", "training", "why"),
    [
        (Dials(n_rows=3000), None, "could not be measured in training"),
        (Dials(n_rows=3000), Training(leak=0.3), "may be nothing"),
        (Dials(n_rows=3000, new_violation=1.0), Training(leak=0.01), "X_U follows f_S within a class"),
    ],
)
def test_the_safe_answer_keeps_f_s_where_its_gain_is_in_doubt(dials, training, why):
    new = simulate(dials, seed=0).new
    pair = new.posterior, new.X_unstable
    with pytest.warns(AdaptationRefused, match=why):
        kept = sfboost.adapt(*pair, training=training, answer="safe")
    assert (kept.decision_, kept.reason_.code) == ("kept stable", "refused")
    np.testing.assert_allclose(kept.predict_proba(*pair), new.posterior)
    if not dials.new_violation:
        assert sfboost.adapt(*pair, training=training).decision_ == "adapted"
        return
    with pytest.warns(AdaptationRefused, match=why):  # nothing but the rows can say so without training
        assert sfboost.adapt(*pair).decision_ == "kept stable"
    assert sfboost.adapt(*pair, settings=sfboost.Settings("paper")).decision_ == "adapted"


def test_labels_for_all_rows_assume_nothing():
    new = simulate(Dials(n_rows=1000, new_violation=1.0), seed=0).new
    assert sfboost.adapt(new.posterior, new.X_unstable, y=new.y, answer="safe").decision_ == "adapted"


def test_wrong_options_are_refused_with_a_sentence():
    new = simulate(Dials(n_rows=100), seed=0).new
    with pytest.raises(ValueError, match=r"answer='always' is not known: use one of .'best', 'safe'"):
        sfboost.adapt(new.posterior, new.X_unstable, answer="always")
    with pytest.raises(ValueError, match=r"leak=-0\.1 makes no sense"):
        Training(leak=-0.1)
    with pytest.raises(ValueError, match="2 classes and stable_proba has 3 columns"):
        sfboost.learn_training(np.full((100, 3), 1 / 3), new.X_unstable, new.y, np.zeros(100))
