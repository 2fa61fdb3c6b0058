"""Weights of the predictors: by the side that shifted, the user's word, labels; and the words."""

import pytest

from sfboost.choice import Choice
from sfboost.choice.choosing import reason_of, shifted_side, with_labels
from sfboost.shift import Change, FeatureChange

OWN = {"a": 1.0, "b": 1.0, "c": 1.0}


def change(p_value, *names, verdict=None, power=5.0, own=OWN, n_others=0):
    """A test of the features that are named, to which a shift is put down, and of others."""
    verdict = verdict or ("changed" if p_value < 0.05 else "unchanged")
    every = (*names, *(f"other {k}" for k in range(n_others)))
    features = tuple(
        FeatureChange(name, (k,), p_value, -1.0, 0.0, False, 1.0) for k, name in enumerate(every)
    )
    changed = names if verdict == "changed" else ()
    return Change(verdict, p_value, power, 0.05, -1.0, -1.0, own, features, changed, names, 100)


@pytest.mark.parametrize(
    ("unstable", "stable", "side"),
    [
        (change(0.5, "u"), change(0.2, "s"), "nothing"),
        (change(0.2, "u", verdict="cannot tell"), None, "nothing"),
        (change(1e-6, "u"), None, "unstable"),
        (change(1e-6, "u"), change(0.5, "s"), "unstable"),
        (change(0.5, "u"), change(1e-6, "s"), "stable"),
    ],
)
def test_the_side_whose_test_finds_a_shift_has_shifted(unstable, stable, side):
    assert shifted_side(unstable, stable) == side


def test_of_two_sides_the_stronger_evidence_tells_and_that_of_the_stable_one_must_be_ten_times_as_strong():
    one_of_two = {"n_others": 1}
    for p_value, side in ((1e-3, "unstable"), (1.1e-4, "unstable"), (0.9e-4, "stable"), (1e-9, "stable")):
        assert shifted_side(change(1e-3, "u"), change(p_value, "s", **one_of_two)) == side


def test_of_two_sides_that_shifted_altogether_it_is_the_unstable_one():
    assert shifted_side(change(1e-3, "u", "v"), change(1e-9, "s", "t")) == "unstable"


@pytest.mark.parametrize(
    ("weights", "decision"),
    [
        ({"pooled": 0.6, "realigned": 0.4}, "pooled"),
        ({"shares": 1.0}, "adapted"),
        ({"realigned": 0.6, "stable realigned": 0.4}, "adapted"),
        ({"stable": 1.0}, "kept stable"),
    ],
)
def test_what_has_most_weight_names_the_decision(weights, decision):
    assert Choice(weights, "").decision == decision


def test_the_reason_says_what_was_found_and_what_is_answered():
    def told(unstable, stable, weights, moved=""):
        return reason_of(unstable, stable, weights, moved, "logistic regression")[0]

    assert told(change(0.5, "u"), None, {"pooled": 1.0}) == (
        "No shift was found: features go together as in your 3 source domains (p = 0.500). The answer is one "
        "classifier of all features, as trained (logistic regression)."
    )
    assert told(change(1e-6, "u"), None, {"realigned": 1.0}) == (
        "The unstable feature 'u' goes with the stable ones otherwise than in your source domains "
        "(p < 0.001). The answer is one classifier of all features, the unstable ones realigned."
    )
    both = told(change(1e-3, "u"), change(0.01, "s"), {"realigned": 1.0})
    assert "The stable feature 's' goes with the unstable ones otherwise" in both
    assert "this is put down to the unstable side; a few labels would tell" in both
    mixed = told(change(1e-3, "u"), None, {"realigned": 0.9, "stable": 0.1})
    assert mixed.endswith("realigned (90 %); the stable features alone (10 %).")
    faint = told(change(0.3, "u", verdict="cannot tell", power=1.1), None, {"pooled": 1.0})
    assert "the evidence to expect is 1.1 times its error, 2 is needed" in faint
    assert faint.endswith(
        "To tell, more rows, more source domains or a stable predictor that says more would help."
    )
    alone = told(change(1.0, "u", verdict="cannot tell", power=0.0, own={"a": 1.0}), None, {"pooled": 1.0})
    assert "there is one source domain" in alone
    assert alone.endswith("To tell, more source domains would help.")


def test_labels_weigh_the_answers_and_rule_none_out():
    names = ["stable", "pooled", "boosted", "realigned"]
    chosen = Choice({"pooled": 1.0}, "Found. The answer is as before.", "Found.")
    fits = dict.fromkeys(names, -60.0)
    after = with_labels(chosen, fits | {"realigned": -20.0}, 80, 1000)
    assert after.weights["realigned"] > 0.99
    assert after.reason.startswith(
        "Found. With 80 labels the answer is one classifier of all features, the unstable ones realigned."
    )
    few = with_labels(chosen, dict.fromkeys(names, -1.0), 1, 1000)
    assert few.weights["pooled"] > 0.9
    assert "With 1 label the answer is" in few.reason
    same = with_labels(chosen, fits | {"pooled": -20.0}, 80, 1000)
    assert same.reason.startswith(f"{chosen.reason} With 80 labels the answer stays the same.")
    assert "They also recalibrate it" in same.reason
    chance = with_labels(chosen, fits | {"pooled": -20.0}, 80, 1000, random=False)
    assert "The labelled rows are unlike the others" in chance.reason
    assert with_labels(chosen, fits, 1000, 1000).weights == {"boosted": 1.0}
