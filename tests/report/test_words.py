"""The headline is no stronger than the evidence."""

from copy import copy
from dataclasses import replace

import pytest

from sfboost.boosting import AdaptedClassifier
from sfboost.calibration import Temperature
from sfboost.choice.recalibrating import RecalibratedPredictor
from sfboost.report import render
from sfboost.report.words import headline

DECIDING = {"pooled": "pooled", "adapted": "boosted", "kept stable": "stable"}


def said(case, verdict, decision):
    """The headline of a hospital that reversed its heart rate, had the test said something else."""
    best = case.adapted.best
    change = replace(
        best.change, verdict=verdict, changed=best.change.changed if verdict == "changed" else ()
    )
    choice = replace(best.choice, weights={DECIDING[decision]: 1.0})
    adapted = AdaptedClassifier(
        case.adapted.model, case.adapted.adaptation, replace(best, change=change, choice=choice)
    )
    meanings = case.facts.meanings if verdict == "changed" else ()
    return headline(adapted, case.facts.changes, case.facts.stories, meanings).sentence


@pytest.mark.parametrize("decision", DECIDING)
def test_a_change_is_claimed_only_where_one_is_shown(case, decision):
    assert "a meaning" in said(case, "changed", decision)
    for verdict in ("unchanged", "cannot tell"):
        sentence = said(case, verdict, decision)
        assert "a meaning changed here, " not in sentence.replace("whether a meaning changed here", "")
        assert "opposite" not in sentence


def test_nothing_changed_is_claimed_only_where_the_answer_says_so_too(case):
    assert said(case, "unchanged", "pooled") == "Use all features as trained: nothing changed here."
    assert "nothing changed" not in said(case, "changed", "pooled")


def guessing(case, **brier):
    """The same adapted classifier, had left-out source domains had these Brier scores."""
    model = copy(case.adapted.model)
    record = model.training_.record
    model.training_ = replace(model.training_, record=replace(record, brier=record.brier | brier))
    return AdaptedClassifier(model, case.adapted.adaptation, case.adapted.best)


def test_where_no_answer_beat_a_guess_on_own_domains_that_is_said_first(case):
    told = (case.facts.changes, case.facts.stories, case.facts.meanings)
    found = headline(guessing(case, pooled=0.245, stable=0.3), *told)
    assert found.sentence == (
        "No answer can be trusted here: on your own domains none was better than a guess. What you get is "
        "the adapted answer."
    )
    assert found.because.startswith(
        "Why: In your source domains, each left out in turn, neither one classifier of all features nor the "
        "stable ones alone were better than a guess at random (Brier score 0.24 and 0.30, the guess has 0.25)"
    )
    assert '<div class="verdict no-answer">' in render(replace(case.facts, headline=found))
    assert found.advice.startswith("Label some of these rows (--labels), or add training domains")
    plain = headline(case.adapted, *told)
    assert '<div class="verdict adapted">' in render(replace(case.facts, headline=plain))
    unsure = replace(plain, kind="pooled", tone="cannot tell")
    assert '<div class="verdict cannot-tell">' in render(replace(case.facts, headline=unsure))
    for brier in ({"pooled": 0.2, "stable": 0.3}, {"pooled": 0.3, "stable": 0.2}):
        assert headline(guessing(case, **brier), *told) == plain


def test_a_reason_on_the_page_has_words_for_symbols(case):
    choice = replace(case.adapted.best.choice, reason="But f_S is not shown to be stable.")
    adapted = AdaptedClassifier(
        case.adapted.model, case.adapted.adaptation, replace(case.adapted.best, choice=choice)
    )
    told = headline(adapted, case.facts.changes, case.facts.stories, case.facts.meanings)
    assert told.because == "Why: But the stable predictor is not shown to be stable."


def test_what_turned_round_is_named(case):
    assert said(case, "changed", "adapted") == (
        "Use the adapted answer: a meaning changed here, and it allows for that. "
        "heart_rate says the opposite here of what training said."
    )


def test_labels_that_weighed_the_answers_are_the_reason(case):
    adaptation = replace(case.adapted.adaptation, n_labelled=20)
    adapted = AdaptedClassifier(case.adapted.model, adaptation, case.adapted.best)
    told = headline(adapted, case.facts.changes, case.facts.stories, case.facts.meanings).sentence
    assert told.startswith("Use the adapted answer: 20 labels weighed the answers.")


def test_stable_features_that_labels_put_right_are_not_said_to_stand_alone(case):
    best = case.adapted.best
    answers = {**best.answers, "stable": RecalibratedPredictor(best.answers["stable"], Temperature(1.0))}
    best = replace(best, answers=answers, choice=replace(best.choice, weights={"stable": 1.0}))
    adaptation = replace(case.adapted.adaptation, n_labelled=20)
    told = headline(
        AdaptedClassifier(case.adapted.model, adaptation, best), case.facts.changes, case.facts.stories, ()
    )
    assert told.sentence == "Use the stable features, put right by 20 labels: they weighed the answers."
    assert told.count.endswith("predicted classes are not what the stable features say without them.")


def test_only_features_that_the_page_calls_changed_are_named(case):
    """What the change was put down to, but cannot be told by itself, is not said to be the opposite."""
    unsure = tuple(replace(one, verdict="cannot tell") for one in case.facts.meanings)
    told = headline(case.adapted, case.facts.changes, case.facts.stories, unsure).sentence
    assert told == "Use the adapted answer: a meaning changed here, and it allows for that."


@pytest.mark.parametrize(("error", "named"), [(0.1, True), (0.0, False), (None, False)])
def test_the_safe_answer_names_slopes_beyond_their_error_alone(case, error, named):
    """No error is known of a slope that was not asked for one, and none is of a column of one value."""
    story = case.facts.stories[0]
    stories = (replace(story, features=tuple(replace(one, error=error) for one in story.features)),)
    safe = AdaptedClassifier(case.adapted.model, case.adapted.adaptation)
    told = headline(safe, case.facts.changes, stories, ()).sentence
    assert ("heart_rate says the opposite" in told) is named


def test_where_no_class_differs_none_is_counted(case):
    none = replace(case.facts.changes, n_changed=0)
    told = headline(case.adapted, none, case.facts.stories, case.facts.meanings)
    assert told.count == "Every predicted class is what the stable features say."
