"""The model card: the report's facts, as text that stays text."""

import re
from dataclasses import replace

from sfboost.report.card import model_card


def rows_of(card, heading):
    part = card.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    return [line for line in part.splitlines() if line.startswith("|")]


def test_the_card_has_every_domain_and_the_checks_that_bear_on_the_answer(case, unshifted):
    card = model_card(case.facts)
    assert len(rows_of(card, "Training data")) == 2 + len(case.facts.training.domains)
    assert len(rows_of(card, "Assumptions")) == 2 + sum(check.bears for check in case.facts.checks)
    assert len(rows_of(card, "In the target domain")) == 2 + len(case.facts.scores.by_method)
    assert "Estimated without labels: accuracy " in model_card(unshifted)
    assert "rests on no assumption" in model_card(unshifted)
    assert f"**{case.facts.decision}.**" in card


def test_every_row_of_a_table_has_as_many_cells_as_its_head(case):
    named = replace(case.facts, classes=("a | b", "c"), stable_names=("x\ny",))
    for table in re.findall(r"(?:^\|.*\n)+", model_card(named), re.MULTILINE):
        cells = {len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}
        assert len(cells) == 1


def test_what_came_from_a_table_is_no_markup(case):
    card = model_card(case.facts)
    assert "<script>" not in card
    assert r"\<script\>" in card


def test_without_labels_and_evaluation_the_card_says_so(case):
    bare = replace(case.facts, scores=None, training=replace(case.training, evaluation=[]))
    card = model_card(bare)
    assert "Not measured." in card
    assert "which nothing was fitted to" not in card
