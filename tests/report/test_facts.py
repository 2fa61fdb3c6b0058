import numpy as np
import pytest

from sfboost.boosting.metrics import score_predictions
from sfboost.report import make_facts, render
from sfboost.report.facts import change_in_words, find_changes


def test_the_reversed_feature_is_told_and_the_faithful_one_is_not(case):
    stories = {story.name: story for story in case.facts.stories[0].features}
    assert case.facts.stories[0].label == "yes"
    assert stories["heart_rate"].change == "reversed"
    assert all(slope > 0.5 for slope in stories["heart_rate"].training)
    assert stories["heart_rate"].here < -0.5
    assert stories["in_a"].change == "as in training"
    assert "heart_rate says the opposite here" in case.facts.headline.sentence


def test_the_slope_here_is_that_of_the_adapted_head(case, new_features):
    adaptation = case.adapted.adaptation
    raw = adaptation.uncertainty.coef.value[0, 0]
    story = next(s for s in case.facts.stories[0].features if s.name == "heart_rate")
    assert story.here == pytest.approx(raw * case.training.units[0])


@pytest.mark.parametrize(
    ("training", "here", "error", "words"),
    [
        ((1.0, 0.5), -1.0, 0.2, "reversed"),
        ((1.0, 0.5), -1.0, None, "reversed"),
        ((1.0, 0.5), -1.0, 0.7, "says little here"),  # within sampling error
        ((1.0, 0.5), 0.8, 0.1, "as in training"),
        ((1.0, -0.5), -1.0, 0.1, "differed between training domains"),
        ((0.02, None), 0.9, 0.1, "speaks only here"),
        ((0.02, 0.01), 0.05, 0.1, "says little anywhere"),
        ((1.0, 0.5), None, None, "not learned here"),
    ],
)
def test_a_change_is_named_beyond_sampling_error_only(training, here, error, words):
    assert change_in_words(training, here, error) == words


def test_the_meaning_of_each_feature_is_told_in_every_own_domain_and_here(case):
    found = {meaning.name: meaning for meaning in case.facts.meanings}
    assert {name: meaning.verdict for name, meaning in found.items()} == {
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
        assert (name, "training domains") in where
    assert ("complementarity", "new domain") in where
    assert ("informativeness", "new domain") not in where


@pytest.mark.filterwarnings("ignore::sfboost.AdaptationWarning")
def test_keeping_the_stable_predictor_is_said_and_shown(case, new_features):
    few = new_features.head(30)
    facts = make_facts(case.model.adapt(few, answer="safe"), case.training, few)
    assert facts.headline.kind == "kept stable"
    assert "no prediction changed" in facts.headline.sentence
    assert facts.changes.n_changed == 0
    assert {story.change for story in facts.stories[0].features} == {"not learned here"}
    page = render(facts)
    assert "Adapting was refused before the leak came into it." in page
    assert "None: every row gets the class" in page


def test_scores_are_estimated_without_labels_where_nothing_shifted(case, unshifted):
    told, true = unshifted.foretold, unshifted.scores.by_method
    assert set(told) == {"stable", "answer", "pooled"}
    for method, one in told.items():
        for metric in ("accuracy", "log_loss"):
            assert one.lower[metric] <= true[method][metric] <= one.upper[metric], (method, metric)
    assert "How good it is here, without labels" in render(unshifted)
    assert case.facts.foretold is None
    assert "How good it is here, without labels" not in render(case.facts)
