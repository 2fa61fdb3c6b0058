"""Exported coefficients: another program that reads them predicts what the model predicts."""

import json
from dataclasses import replace

import numpy as np
import pytest
from joints import draw_anticausal
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from sfboost import Settings, StableFeatureBoosting
from sfboost.adaptation.settings import Choices
from sfboost.answers.candidates import BoostSettings
from sfboost.answers.choosing import ALSO_QUIET
from sfboost.answers.recalibrating import RecalibratedAnswer
from sfboost.calibration import Temperature
from sfboost.export import linear_scorer, to_json, to_onnx


def session_of(model, path):
    """The graph as another program runs it."""
    pytest.importorskip("onnx", reason="ONNX graphs: pip install 'sfboost[onnx]'")
    runtime = pytest.importorskip("onnxruntime", reason="says what an ONNX graph says")
    to_onnx(model, path)
    return runtime.InferenceSession(path, providers=["CPUExecutionProvider"])


def hospitals(**how):
    parts = [draw_anticausal(600, agreement, seed) for seed, agreement in enumerate((0.95, 0.7))]
    X, y = (np.concatenate([part[i] for part in parts]) for i in (0, 1))
    return StableFeatureBoosting([0], [1], **how).fit(X, y, sample_domain=np.repeat(["a", "b"], 600))


def three_classes():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 3000)
    centre = np.array([[0.0, 0.0, 0.0], [2.0, 0.0, 1.0], [0.0, 2.0, -1.0]])
    X = centre[y] + rng.normal(size=(3000, 3))
    domain = np.repeat([1, 2], 1500)
    return StableFeatureBoosting([0, 1]).fit(X, np.array(["x", "y", "z"])[y], sample_domain=domain), X


def scored(model, X, folder):
    session = session_of(model, folder / "model.onnx")
    return session.run(["label", "probabilities"], {"X": linear_scorer(model).matrix(X)})


def agree(model, X, folder):
    label, proba = scored(model, X, folder)
    np.testing.assert_allclose(proba, model.predict_proba(X), rtol=0, atol=1e-9)
    np.testing.assert_array_equal(label, model.predict(X))


NEW, _ = draw_anticausal(1500, 0.1, seed=7)


@pytest.mark.parametrize("answer", ["safe", "paper"])
def test_onnxruntime_says_what_the_adapted_classifier_says(answer, tmp_path):
    adapted = hospitals().adapt(NEW, answer=answer)
    assert adapted.decision_ != "kept stable"
    agree(adapted, NEW, tmp_path)


def test_the_pooled_answer_is_one_linear_map(tmp_path):
    same = draw_anticausal(1500, 0.9, seed=7)[0]
    adapted = hospitals().adapt(same)
    choice = replace(adapted.best.choice, weights={"pooled": 1.0})
    adapted = type(adapted)(adapted.model, adapted.adaptation, replace(adapted.best, choice=choice))
    agree(adapted, same, tmp_path)


@pytest.fixture(scope="module")
def played():
    """Every candidate, of rows with three stable and four unstable columns, two of which are reversed."""
    rng, parts = np.random.default_rng(0), []
    for turn in (1.0, 0.8, 1.2, -1.0):
        y = rng.integers(0, 2, 800)
        shift = np.array([0.5, 0.4, 0.3, 1.0 * turn, 0.9 * turn, 0.4, 0.2])
        parts.append((10.0 + 3.0 * (y[:, None] * shift + rng.normal(size=(800, 7))), y))
    X, y = (np.concatenate([part[i] for part in parts[:3]]) for i in (0, 1))
    model = StableFeatureBoosting([0, 1, 2]).fit(X, y, sample_domain=np.repeat(["a", "b", "c"], 800))
    return model.adapt(parts[3][0]), parts[3][0]


def answering(adapted, weights):
    """The same with other weights of its candidates."""
    best = replace(adapted.best, choice=replace(adapted.best.choice, weights=weights))
    return type(adapted)(adapted.model, adapted.adaptation, best)


@pytest.mark.parametrize("name", ["stable", "pooled", "boosted", "mended", "dropped", "grafted"])
def test_every_linear_candidate_is_exported(played, name, tmp_path):
    adapted, new = played
    assert name in adapted.best.answers
    agree(answering(adapted, {name: 1.0}), new, tmp_path)


def test_a_blend_of_answers_is_exported(played, tmp_path):
    adapted, new = played
    blend = answering(adapted, {"mended": 0.5, "stable": 0.3, "boosted": 0.2})
    agree(blend, new, tmp_path)
    told = json.loads(to_json(blend))
    assert told["version"] == 1
    assert [part["weight"] for part in (told, *told["mixed_with"])] == [0.5, 0.3, 0.2]
    assert json.loads(to_json(answering(adapted, {"mended": 1.0})))["version"] == 1


@pytest.mark.parametrize("name", ["stable", "pooled", "mended", "grafted", "components"])
def test_an_answer_that_labels_put_right_is_exported(played, name, tmp_path):
    adapted, new = played
    best = with_quiet_answers(adapted, new).best
    right = RecalibratedAnswer(best.answers[name], Temperature(1.7, np.array([0.4, -0.9])))
    best = replace(best, answers={**best.answers, name: right})
    put_right = answering(type(adapted)(adapted.model, adapted.adaptation, best), {name: 0.7, "boosted": 0.3})
    agree(put_right, new, tmp_path)


def with_quiet_answers(adapted, new):
    """Also the two answers that own domains would have to ask for."""
    model, experience = adapted.model, adapted.model.training_.experience
    rows = model.answer_rows(new)
    how = BoostSettings(Choices(), experience.reference.prior, model.classes_)
    more = {name: experience.quiet.answer(name, rows, experience.habits, how) for name in ALSO_QUIET}
    best = replace(adapted.best, answers=adapted.best.answers | more)
    return type(adapted)(model, adapted.adaptation, best)


@pytest.mark.parametrize(
    "weights", [{"averaged": 1.0}, {"components": 1.0}, {"averaged": 0.6, "components": 0.4}]
)
def test_answers_to_rows_that_nothing_happened_to_are_exported(played, weights, tmp_path):
    adapted, new = played
    quiet = answering(with_quiet_answers(adapted, new), weights)
    assert (
        np.abs(quiet.predict_proba(new) - answering(adapted, {"pooled": 1.0}).predict_proba(new)).max() > 0.01
    )
    agree(quiet, new, tmp_path)


def test_an_answer_that_is_not_linear_is_refused_by_name(played):
    adapted, _ = played
    best = replace(adapted.best, answers={**adapted.best.answers, "averaged": object()})
    odd = answering(type(adapted)(adapted.model, adapted.adaptation, best), {"averaged": 1.0})
    with pytest.raises(ValueError, match='"averaged", which is not linear'):
        to_json(odd)


def test_onnxruntime_says_what_the_stable_predictor_says(tmp_path):
    agree(hospitals(calibration_bias=True), NEW, tmp_path)


def test_the_posthoc_correction_of_two_classes_is_a_formula(tmp_path):
    adapted = hospitals().adapt(NEW, answer="paper", settings=Settings("paper"))
    agree(adapted, NEW, tmp_path)


def test_three_classes_with_names_and_a_guard(tmp_path):
    model, X = three_classes()
    adapted = model.adapt(X, leak=0.01)
    assert adapted.adaptation.guard.head_covariance is not None
    assert adapted.decision_ != "kept stable"
    agree(adapted, X, tmp_path)


def test_columns_of_a_table_are_scored_as_the_model_encodes_them(tmp_path):
    pytest.importorskip("pandas", reason="tables need the [app] extra")
    from hospitals import reversed_hospital, training

    rows, new = training(), reversed_hospital()
    names = ["age", "sex", "heart_rate", "ward"]
    model = StableFeatureBoosting(["age", "sex"])
    model.fit(rows[names], rows["sick"], sample_domain=rows["hospital"])
    agree(model.adapt(new[names], answer="paper"), new[names], tmp_path)
    told = json.loads(to_json(model))
    assert [(recipe["name"], recipe["kind"]) for recipe in told["encoding"]][:2] == [
        ("age", "number"),
        ("sex", "category"),
    ]


def test_a_logistic_regression_of_ones_own_is_exported_too(tmp_path):
    X, y = draw_anticausal(900, 0.9, seed=3)
    frozen = FrozenEstimator(LogisticRegression().fit(X[:, :1], y))
    agree(hospitals(stable=frozen), NEW, tmp_path)


def test_a_forest_has_no_coefficients():
    model = hospitals(stable=RandomForestClassifier(5, random_state=0))
    with pytest.raises(ValueError, match="RandomForestClassifier: only a LogisticRegression"):
        to_json(model)


def test_a_search_is_no_formula():
    model, X = three_classes()
    adapted = model.adapt(X, answer="paper", settings=Settings("paper"))
    with pytest.raises(ValueError, match="no formula but a search"):
        to_json(adapted)


def test_the_graph_takes_any_number_of_rows_and_says_what_its_columns_are(tmp_path):
    session = session_of(hospitals(), tmp_path / "model.onnx")
    assert session.get_modelmeta().custom_metadata_map["features"] == "x0\nx1"
    for n_rows in (1, 5):
        assert session.run(["probabilities"], {"X": NEW[:n_rows]})[0].shape == (n_rows, 2)


@pytest.mark.parametrize(
    "settings", [Settings(costs=[[0.0, 1.0], [8.0, 0.0]]), Settings(metric="balanced_accuracy")]
)
def test_the_label_is_what_costs_decide(settings, tmp_path):
    rng = np.random.default_rng(0)
    y = (rng.random(1800) < 0.15).astype(int)
    X = y[:, None] + rng.normal(size=(1800, 2))
    model = StableFeatureBoosting([0], [1], settings=settings)
    adapted = model.fit(X, y, sample_domain=np.repeat(["a", "b", "c"], 600)).adapt(X[:500])
    likeliest = adapted.predict_proba(X).argmax(axis=1)
    assert adapted.predict(X).mean() > likeliest.mean() + 0.05
    for one in (model, adapted):
        agree(one, X, tmp_path)
        told = json.loads(to_json(one))
        proba = one.predict_proba(X)
        np.testing.assert_array_equal((proba @ np.array(told["costs"])).argmin(axis=1), one.predict(X))
    assert json.loads(to_json(hospitals()))["costs"] is None
