"""Weights of the predictors: by the evidence for each side, by the user's word, by labels; and the words."""

import pytest

from sfboost.choice import Choice
from sfboost.choice.choosing import reason_of, weigh, with_labels
from sfboost.shift import Change, FeatureChange

ANSWERS = {"nothing": "pooled", "unstable": "realigned", "stable": "stable realigned"}
OWN = {"a": 1.0, "b": 1.0, "c": 1.0}


def change(p_value, *names, verdict=None, power=5.0, own=OWN):
    verdict = verdict or ("changed" if p_value < 0.05 else "unchanged")
    features = tuple(
        FeatureChange(name, (k,), p_value, -1.0, 0.0, False, 1.0) for k, name in enumerate(names)
    )
    changed = names if verdict == "changed" else ()
    return Change(verdict, p_value, power, 0.05, -1.0, -1.0, own, features, changed, names, 100)


def test_where_no_test_finds_a_shift_one_predictor_answers():
    assert weigh(change(0.5, "u"), change(0.2, "s"), ANSWERS) == {"pooled": 1.0}
    assert weigh(change(0.5, "u"), None, ANSWERS) == {"pooled": 1.0}
    assert weigh(change(0.2, "u", verdict="cannot tell"), None, ANSWERS) == {"pooled": 1.0}


def test_where_one_test_does_its_side_answers():
    assert weigh(change(1e-6, "u"), change(0.5, "s"), ANSWERS) == {"realigned": 1.0}
    assert weigh(change(0.5, "u"), change(1e-6, "s"), ANSWERS) == {"stable realigned": 1.0}
    nobody = {"nothing": "pooled", "unstable": "realigned"}  # answers a shift of the stable side
    assert weigh(change(0.5, "u"), change(1e-6, "s"), nobody) == {"pooled": 1.0}


@pytest.mark.parametrize(("names", "odds"), [(("s",), 2.0), (("s", "t"), 4.0)])
def test_against_equal_evidence_the_users_word_is_worth_two_for_each_feature(names, odds):
    weights = weigh(change(1e-3, "u"), change(1e-3, *names), ANSWERS)
    assert weights["realigned"] / weights["stable realigned"] == pytest.approx(odds)
    assert sum(weights.values()) == pytest.approx(1.0)
    stronger = weigh(change(1e-3, "u"), change(1e-4, *names), ANSWERS)
    assert stronger["realigned"] / stronger["stable realigned"] == pytest.approx(odds / 10.0)
    assert weigh(change(1e-6, "u"), change(1e-3, *names), ANSWERS) == {"realigned": 1.0}


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
    both = told(change(1e-3, "u"), change(0.01, "s"), {"realigned": 0.95, "stable realigned": 0.05})
    assert "The stable feature 's' goes with the unstable ones otherwise" in both
    assert both.endswith("Which side shifted these rows alone cannot tell for sure: a few labels would.")
    assert "realigned (95 %); one classifier" in both
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
