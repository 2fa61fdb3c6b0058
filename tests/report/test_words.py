"""The headline follows the weights, and is no stronger than the evidence."""

from copy import copy
from dataclasses import replace

import pytest

from sfboost.boosting import AdaptedClassifier
from sfboost.calibration import Temperature
from sfboost.choice.choosing import shifted_side
from sfboost.choice.reasons import WORDS, Reason
from sfboost.choice.recalibrating import RecalibratedPredictor
from sfboost.report import make_facts, render
from sfboost.report.words import headline
from sfboost.shift import Shift

MEANINGS = "the unstable features shifted here"


def with_best(case, n_labelled=0, **changes):
    """The same adapted classifier, had the decision been another."""
    adaptation = replace(case.adapted.adaptation, n_labelled=n_labelled)
    return AdaptedClassifier(case.adapted.model, adaptation, replace(case.adapted.best, **changes))


def told(case, adapted, meanings=None):
    meanings = case.facts.features if meanings is None else meanings
    return headline(adapted, case.facts.changes, meanings)


def shifted(case, unstable, stable, stable_p=1.0):
    """What moved, had the tests of both sides said something else."""
    shift = case.adapted.shift_
    change = replace(shift.unstable, verdict=unstable)
    other = replace(shift.stable, verdict=stable, p_value=stable_p, suspects=())
    return Shift(change, other, shifted_side(change, other))


def said(case, unstable, stable, weights, stable_p=1.0):
    """The headline of a hospital that reversed its heart rate, had the tests said something else."""
    adapted = with_best(
        case,
        shift=shifted(case, unstable, stable, stable_p),
        choice=replace(case.adapted.best.choice, weights=weights),
    )
    return told(case, adapted, () if unstable != "changed" else None).sentence


def test_what_has_most_weight_is_what_is_advised(case):
    for name in WORDS:
        sentence = said(case, "changed", "unchanged", {name: 1.0})
        assert sentence.startswith(f"Use {WORDS[name]}: {MEANINGS}.")
        mixed = said(case, "changed", "unchanged", {name: 0.6, "other": 0.4})
        assert mixed.startswith(f"Use a mixture, above all {WORDS[name]}: ")


@pytest.mark.parametrize("verdict", ["unchanged", "cannot tell"])
def test_a_shift_is_claimed_only_where_one_is_shown(case, verdict):
    sentence = said(case, verdict, "unchanged", {"pooled": 1.0})
    assert "features shifted" not in sentence
    assert "opposite" not in sentence
    assert said(case, verdict, "changed", {"stable realigned": 1.0}).endswith(
        ": the stable features shifted here."
    )


def test_each_finding_has_its_words(case):
    pooled = {"pooled": 1.0}
    assert said(case, "unchanged", "unchanged", pooled).endswith(": no shift of a feature was found here.")
    assert said(case, "cannot tell", "unchanged", pooled).endswith(
        ": these rows cannot say whether a feature shifted."
    )
    for p_value, likely in ((0.5, "unstable"), (0.0, "stable")):  # of the stable side
        both = said(case, "changed", "changed", pooled, stable_p=p_value)
        assert f"no longer go together as in training, more likely because the {likely} ones shifted." in both


def test_moved_class_shares_are_said_and_shown(case, new_features):
    best = case.adapted.best
    moved = with_best(
        case,
        shift=replace(shifted(case, "unchanged", "unchanged"), shares=(("no", 0.5, 0.2), ("yes", 0.5, 0.8))),
        choice=replace(best.choice, weights={"shares": 1.0}),
        answers=best.answers | {"shares": best.answers["pooled"]},
    )
    assert told(case, moved, ()).sentence.endswith(
        ": no feature is seen to have shifted, but the class shares have moved."
    )
    facts = make_facts(moved, case.training, new_features)
    assert facts.shares == (0.2, 0.8)
    assert "here, as the answer takes them" in render(facts)
    assert case.facts.shares is None
    assert "as the answer takes them" not in render(case.facts)


def test_the_stable_features_are_on_the_page_too(case):
    assert {one.name for one in case.facts.stable_features} == {"age", "chol"}
    assert "And the stable ones" in render(case.facts)


def guessing(case, **brier):
    """The same adapted classifier, had source domains had these Brier scores."""
    model = copy(case.adapted.model)
    record = model.training_.record
    scores = record.scores | {name: [{"brier": score}] for name, score in brier.items()}
    model.training_ = replace(model.training_, record=replace(record, scores=scores))
    return AdaptedClassifier(model, case.adapted.adaptation, case.adapted.best)


def test_where_no_answer_beat_a_guess_on_source_domains_that_is_said_first(case):
    found, plain = told(case, guessing(case, pooled=0.245, stable=0.3)), told(case, case.adapted)
    assert found.sentence.startswith(
        "No answer can be trusted here: in your source domains, each left out in turn, none was better than "
        "a guess. What you get is "
    )
    assert found.because.startswith("Why: In your source domains, each left out in turn, neither ")
    assert '<div class="verdict no-answer">' in render(replace(case.facts, headline=found))
    assert found.advice.startswith("Label some of these rows (--labels), or add source domains")
    assert '<div class="verdict adapted">' in render(replace(case.facts, headline=plain))
    unsure = replace(plain, tone="cannot tell")
    assert '<div class="verdict cannot-tell">' in render(replace(case.facts, headline=unsure))
    for brier in ({"pooled": 0.2, "stable": 0.3}, {"pooled": 0.3, "stable": 0.2}):
        assert told(case, guessing(case, **brier)) == plain


def test_a_reason_on_the_page_has_words_for_symbols(case):
    choice = replace(case.adapted.best.choice, reason=Reason("refused", {"because": "f_S is not stable."}))
    assert told(case, with_best(case, choice=choice)).because == "Why: the stable predictor is not stable."


def test_only_features_that_the_page_calls_changed_are_named(case):
    """What the shift was put down to, but cannot be told by itself, is not said to be the opposite."""
    opposite = "Here heart_rate says the opposite of what it says in training."
    assert told(case, case.adapted).sentence.endswith(opposite)
    unsure = tuple(replace(one, verdict="cannot tell") for one in case.facts.features)
    assert told(case, case.adapted, unsure).sentence.endswith(f"{MEANINGS}.")


def test_labels_that_weighed_the_answers_are_the_reason(case):
    assert ": 20 labels weighed the answers." in told(case, with_best(case, 20)).sentence


def test_stable_features_that_labels_recalibrated_are_not_said_to_stand_alone(case):
    best = case.adapted.best
    answers = {**best.answers, "stable": RecalibratedPredictor(best.answers["stable"], Temperature(1.0))}
    choice = replace(best.choice, weights={"stable": 1.0})
    found = told(case, with_best(case, 20, answers=answers, choice=choice), ())
    assert found.sentence == (
        "Use the stable features alone: 20 labels weighed the answers and recalibrated it."
    )
    assert found.count.endswith(
        "predicted classes differ from those of the stable features alone, without labels."
    )


def test_where_no_class_differs_none_is_counted(case):
    none = replace(case.facts.changes, n_changed=0)
    found = headline(case.adapted, none, case.facts.features)
    assert found.count == "Every predicted class is that of the stable features alone."


def test_the_power_of_the_test_is_said_in_words(case):
    """A loss is seen by four tests of five where its share of the power is 1.96 + 0.84 standard errors."""
    shift = case.adapted.shift_

    def evidence(**what):
        changed = replace(shift, unstable=replace(shift.unstable, **what))
        return told(case, with_best(case, shift=changed), ()).evidence

    assert "lost 28 % of what they say" in evidence(verdict="unchanged", power=10.0)
    assert "lost all that they say" in evidence(verdict="unchanged", power=2.1)
    assert "too few" in evidence(verdict="cannot tell", power=1.0)
    assert "about 1 in 25 target domains" in evidence(verdict="changed", p_value=0.04)
    assert "less than 1 in 1000" in evidence(verdict="changed", p_value=1e-9)


def test_without_stable_columns_no_side_is_blamed(case):
    found = headline(case.adapted, case.facts.changes, case.facts.features, unsure=True)
    assert found.sentence.endswith("with care: features shifted here, and the rows cannot say which.")
    assert found.tone == "cannot tell"
