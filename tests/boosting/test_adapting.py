"""`sfboost.adapt` on arrays: what new rows alone can say is asked, and what was not checked is said."""

import warnings

import numpy as np
import pytest

import sfboost
from sfboost import AdaptationRefused, AdaptationWarning, Settings, Training
from sfboost_lab.testing import Dials, simulate


@pytest.fixture(scope="module")
def sound():
    """A new domain that satisfies the assumptions."""
    new = simulate(Dials(n_rows=3000), seed=0).new
    return new.posterior, new.X_unstable


def rare_and_leaking(seed=0, n_rows=2200):
    """Seven in a hundred are ill; f_S says little, and X_U follows it a little among the healthy too."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=n_rows)
    f = 1 / (1 + np.exp(3.0 - 0.9 * z))
    y = (rng.random(n_rows) < f).astype(int)
    X = np.column_stack([0.8 * y + 0.12 * z, 0.5 * y]) + rng.normal(size=(n_rows, 2))
    return np.column_stack([1 - f, f]), X, y


def test_without_training_the_reason_says_what_was_not_checked_and_nothing_is_warned_of(sound):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        adaptation = sfboost.adapt(*sound)
    assert adaptation.decision.kind == "adapted"
    assert "Not checked, since no training domains are known" in adaptation.decision.reason
    assert "sfboost.learn_training" in adaptation.decision.reason


def test_with_training_there_is_nothing_to_add(sound):
    for training in (Training(leak=0.01), Training(leak=0.0)):
        assert "Not checked" not in sfboost.adapt(*sound, training=training).decision.reason
    assert "Not checked" not in sfboost.adapt(*sound, settings=Settings("paper")).decision.reason


def test_a_gain_that_a_small_leak_would_undo_is_warned_of():
    """The leak is too small to be seen in the rows: only its size against the gain can be told."""
    stable, X, y = rare_and_leaking()
    with pytest.warns(AdaptationWarning, match=r"undone by a leak of 0\.00\d.*sfboost\.learn_training"):
        adapted = sfboost.adapt(stable, X)
    assert np.mean(adapted.predict(stable, X) == y) < np.mean(stable.argmax(axis=1) == y)
    with pytest.warns(AdaptationRefused, match="assumed, a fifth of the spread of f_S"):
        kept = sfboost.adapt(stable, X, answer="safe")
    np.testing.assert_allclose(kept.predict_proba(stable, X), stable)


@pytest.mark.parametrize("answer", ["checked", "safe"])
def test_rows_that_contradict_the_assumptions_keep_the_stable_predictor(answer):
    new = simulate(Dials(n_rows=3000, new_violation=1.0), seed=0).new
    with pytest.warns(AdaptationRefused, match="X_U follows f_S within a class"):
        kept = sfboost.adapt(new.posterior, new.X_unstable, answer=answer)
    np.testing.assert_allclose(kept.predict_proba(new.posterior, new.X_unstable), new.posterior)
    assert kept.uncertainty.accuracy is None
    assert kept.withheld is not None
    assert sfboost.adapt(new.posterior, new.X_unstable, settings=Settings("paper")).head is not None


def test_labels_for_all_rows_assume_nothing_that_could_be_unchecked():
    new = simulate(Dials(n_rows=1000, new_violation=1.0), seed=0).new
    adaptation = sfboost.adapt(new.posterior, new.X_unstable, y=new.y)
    assert adaptation.decision.kind == "adapted"
    assert "Not checked" not in adaptation.decision.reason
