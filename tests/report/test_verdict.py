"""The headline is no stronger than the evidence."""

from dataclasses import replace

import pytest

from sfboost.boosting import AdaptedClassifier
from sfboost.report.verdict import headline


def said(case, verdict, decision):
    """The headline of a hospital that reversed its heart rate, had the test said something else."""
    best = case.adapted.best
    change = replace(
        best.change, verdict=verdict, changed=best.change.changed if verdict == "changed" else ()
    )
    choice = replace(best.choice, decision=decision)
    adapted = AdaptedClassifier(
        case.adapted.model, case.adapted.adaptation, replace(best, change=change, choice=choice)
    )
    return headline(adapted, case.facts.changes, case.facts.stories).sentence


@pytest.mark.parametrize("decision", ["pooled", "adapted", "blended", "kept stable"])
def test_a_change_is_claimed_only_where_one_is_shown(case, decision):
    assert "a meaning" in said(case, "changed", decision)
    for verdict in ("unchanged", "cannot tell"):
        sentence = said(case, verdict, decision)
        assert "a meaning changed here, " not in sentence.replace("whether a meaning changed here", "")
        assert "opposite" not in sentence


def test_nothing_changed_is_claimed_only_where_the_answer_says_so_too(case):
    assert said(case, "unchanged", "pooled") == "Use all features as trained: nothing changed here."
    assert (
        said(case, "unchanged", "blended") == "Use the blend: a change is neither shown nor ruled out here."
    )
    assert "nothing changed" not in said(case, "changed", "pooled")


def test_what_turned_round_is_named(case):
    assert said(case, "changed", "adapted") == (
        "Use the adapted answer: a meaning changed here, and it allows for that. "
        "heart_rate says the opposite here of what training said."
    )


def test_labels_that_weighed_the_answers_are_the_reason(case):
    adaptation = replace(case.adapted.adaptation, n_labelled=20)
    adapted = AdaptedClassifier(case.adapted.model, adaptation, case.adapted.best)
    told = headline(adapted, case.facts.changes, case.facts.stories).sentence
    assert told.startswith("Use the adapted answer: 20 labels weighed the answers.")
