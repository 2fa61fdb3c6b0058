"""Weights of the predictors: by the side that shifted, the user's word, labels; what moved, and the words."""

import pytest

from sfboost.choice import Choice, Reason
from sfboost.choice.choosing import shifted_side, with_labels
from sfboost.shift import Change, FeatureChange, Shift

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
    assert Choice(weights, Reason("no_shift")).decision == decision


def test_labels_weigh_the_answers_and_rule_none_out():
    names, nothing = ["stable", "pooled", "boosted", "realigned"], {"p_value": 0.5, "n_domains": 3}
    chosen = Choice({"pooled": 1.0}, Reason("no_shift", nothing))
    fits = dict.fromkeys(names, -60.0)
    after = with_labels(chosen, fits | {"realigned": -20.0}, 80, 1000)
    assert after.weights["realigned"] > 0.99
    assert "With 80 labels the answer is one classifier of all features, the unstable ones realigned." in str(
        after.reason
    )
    few = with_labels(chosen, dict.fromkeys(names, -1.0), 1, 1000)
    assert few.weights["pooled"] > 0.9
    assert "With 1 label the answer is" in str(few.reason)
    same = with_labels(chosen, fits | {"pooled": -20.0}, 80, 1000)
    assert same.weights == {"pooled": 1.0}
    assert "They also recalibrate it" in str(same.reason)
    chance = with_labels(chosen, fits | {"pooled": -20.0}, 80, 1000, random=False)
    assert "The labelled rows are unlike the others" in str(chance.reason)
    assert with_labels(chosen, fits, 1000, 1000).weights == {"boosted": 1.0}


FOUND = {"p_value": 0.2, "power": 1.1, "n_domains": 3, "weights": {"pooled": 1.0}, "classifier": "a forest"}
SIDES = {"unstable": ["u"], "stable_p_value": 0.01, "stable": ["s", "t"], "weights": {"realigned": 1.0}}


@pytest.mark.parametrize(
    ("code", "values", "told"),
    [
        ("no_shift", {}, "No shift was found: features go together as in your 3 source domains (p = 0.200)."),
        ("no_shift", {}, "The answer is one classifier of all features, as trained (a forest)."),
        ("shares_moved", {"shares": ("ill", 0.1, 0.3)}, "ill from 10 % in training to about 30 % here."),
        ("unstable_shifted", SIDES, "'u' no longer goes with the stable ones as in your source domains"),
        ("unstable_shifted", SIDES, "More likely the unstable side shifted; a few labels would tell."),
        ("stable_shifted", SIDES, "'s', 't' no longer go with the unstable ones"),
        ("stable_shifted", SIDES, "More likely the stable side shifted"),
        ("cannot_tell", {}, "would show by 1.1 standard errors, and 2 are needed"),
        ("cannot_tell", {"n_domains": 1}, "To tell, more source domains would help."),
        ("learned", {"because": "50 rows are enough."}, "50 rows are enough."),
        ("refused", {"because": "2 rows are too few."}, "2 rows are too few."),
        ("all_labelled", {}, "Every row is labelled"),
        ("no_shift", {"doubt": "a domain is worse"}, "or seen where there is none: a domain is worse."),
        (
            "no_shift",
            {"weights": {"realigned": 0.9, "stable": 0.1}},
            "(90 %); the stable features alone (10 %).",
        ),
    ],
)
def test_every_code_makes_a_sentence(code, values, told):
    reason = Reason(code, FOUND).with_values(**values)
    assert told in str(reason)
    assert str(reason).endswith(".")


@pytest.mark.parametrize(
    ("unstable", "stable", "shares", "verdict", "undecided", "states"),
    [
        (change(0.5, "u"), None, None, "nothing", False, {"u": "same"}),
        (
            change(0.5, "u"),
            change(0.5, "s"),
            ((1, 0.5, 0.7),),
            "class shares",
            False,
            {"u": "same", "s": "same"},
        ),
        (change(0.5, "u", verdict="cannot tell"), None, None, "cannot tell", False, {"u": "same"}),
        (change(1e-6, "u"), change(0.5, "s"), None, "unstable", False, {"u": "reversed", "s": "same"}),
        (change(0.5, "u"), change(1e-6, "s"), None, "stable", False, {"u": "same", "s": "reversed"}),
        (change(1e-3, "u"), change(1e-2, "s"), None, "unstable", True, {"u": "reversed", "s": "reversed"}),
    ],
)
def test_a_shift_says_what_moved_of_which_features_and_whether_rows_decide(
    unstable, stable, shares, verdict, undecided, states
):
    shift = Shift(unstable, stable, shifted_side(unstable, stable), shares)
    assert (shift.verdict, shift.undecided, shift.features) == (verdict, undecided, states)
    assert shift.p_value == (stable if verdict == "stable" else unstable).p_value
    assert shift.to_dict()["verdict"] == verdict
    assert str(shift).startswith(str(unstable))


@pytest.mark.parametrize(
    ("left", "rescaled", "state"),
    [(0.9, False, "same"), (0.9, True, "unit"), (0.1, True, "lost"), (-0.9, False, "reversed")],
)
def test_what_became_of_a_feature(left, rescaled, state):
    assert FeatureChange("u", (0,), 0.01, left, 0.0, rescaled, 1.0).state == state
