import json
import re
from pathlib import Path

import numpy as np
import pytest

from sfboost.boosting.metrics import score_predictions
from sfboost.json_values import json_values
from sfboost.report import make_facts, render
from sfboost.report.facts import find_changes


def test_what_each_feature_says_is_told_in_every_source_domain_and_here(case):
    found = {one.name: one for one in case.facts.features}
    assert {name: one.verdict for name, one in found.items()} == {
        "heart_rate": "changed",
        "in_a": "unchanged",
    }
    assert set(found["heart_rate"].own) == {"north", "south", "east"}
    assert all(value > 0.2 for value in found["heart_rate"].own.values())
    assert found["heart_rate"].here < -0.2
    assert found["in_a"].here > 0.2


def test_changes_are_counted_by_class_and_shown_surest_first():
    stable = np.array([[0.9, 0.1], [0.6, 0.4], [0.3, 0.7], [0.55, 0.45]])
    adapted = np.array([[0.8, 0.2], [0.1, 0.9], [0.9, 0.1], [0.45, 0.55]])
    cells = [{"id": k} for k in "abcd"]
    changes = find_changes(("no", "yes"), stable, adapted, cells)
    assert changes.n_changed == 3
    assert changes.counts == ((1, 2), (1, 0))
    assert [example.cells["id"] for example in changes.examples] == ["c", "b", "d"]
    assert [example.row for example in changes.examples] == [3, 2, 4]
    assert find_changes(("no", "yes"), stable, adapted, None).examples == ()


def test_cells_are_shown_as_people_write_them():
    stable, adapted = np.array([[0.9, 0.1]]), np.array([[0.1, 0.9]])
    row = {"income": 200000.0, "age": 41.0, "score": -0.313512, "tiny": 1.25e-7, "id": 7, "gap": float("nan")}
    (shown,) = find_changes(("no", "yes"), stable, adapted, [row]).examples
    assert list(shown.cells.values()) == ["200000", "41", "-0.3135", "1.25e-07", "7", "–"]


def test_scores_are_those_of_the_predictions(case, new_features):
    y = (case.new["sick"] == "yes").to_numpy(int)
    expected = score_predictions(y, case.adapted.predict_proba(new_features))
    assert case.facts.scores.by_method["answer"] == pytest.approx(expected, rel=1e-12)
    assert set(case.facts.scores.by_method) == {"stable", "answer", "pooled"}


def test_rows_without_labels_are_not_scored(case, new_features):
    y = case.new["sick"].to_numpy(object).copy()
    y[::2] = None
    facts = make_facts(case.adapted, case.training, new_features, y=y)
    assert facts.scores.n_rows == 400
    assert make_facts(case.adapted, case.training, new_features, y=np.full(800, None)).scores is None


def test_checks_come_from_training_and_from_the_new_rows(case):
    where = {(check.name, check.where) for check in case.facts.checks}
    for name in ("stability", "calibration", "complementarity", "informativeness"):
        assert (name, "source domains") in where
    assert ("complementarity", "target domain") in where
    assert ("informativeness", "target domain") not in where


def test_scores_are_estimated_without_labels_where_nothing_shifted(case, unshifted):
    found, true = unshifted.estimated, unshifted.scores.by_method["answer"]
    for metric in ("accuracy", "log_loss"):
        assert found.lower[metric] <= true[metric] <= found.upper[metric], metric
    assert "How good the answer is here, without labels" in render(unshifted)
    assert case.facts.estimated is None
    assert "How good the answer is here" not in render(case.facts)


def test_assumptions_are_shown_where_the_answer_rests_on_them(case, unshifted):
    assert {one.name for one in case.facts.checks if one.bears} == {"stability"}  # realigned
    assert not any(one.bears for one in unshifted.checks)  # all features as trained
    assert render(case.facts).count("<article") == 1
    assert "rests on no assumption of Stable Feature Boosting" in render(unshifted)


def test_the_values_of_the_page_are_json_and_their_keys_are_documented(case, unshifted):
    page = (Path(__file__).parents[2] / "docs" / "command-line.md").read_text(encoding="utf-8")
    for facts in (case.facts, unshifted):
        values = json.loads(json.dumps(json_values(facts.to_dict())))
        assert [key for key in values if f"| `{key}` |" not in page] == []
        assert [key for key in keys_of(values) if not re.fullmatch(r"[a-z_]+", key)] == []
    assert case.facts.to_dict()["reversed"] == ["heart_rate"]


def keys_of(values):
    """Keys of ours; those of `own` and `missing` are names of domains and columns."""
    for key, value in values.items() if isinstance(values, dict) else ():
        yield key
        yield from keys_of(value) if key not in ("own", "missing") else ()
    for value in values if isinstance(values, list) else ():
        yield from keys_of(value)
