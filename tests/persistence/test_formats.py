"""Files of every format version that was ever released keep loading. `make_fixtures.py` wrote them."""

import json
from pathlib import Path

import numpy as np
import pytest

import sfboost
from sfboost.persistence.archive import unpack
from sfboost.persistence.saving import SCHEMA

FOLDER = Path(__file__).parent / "fixtures"
NEEDS = {"foreign": "skops", "network": "torch", "adapted-network": "torch"}
CASES = [
    (version, name)
    for version in range(1, SCHEMA + 1)
    for name in json.loads((FOLDER / f"v{version}-expected.json").read_text(encoding="utf-8"))["predictions"]
]


@pytest.mark.filterwarnings(
    # scikit-learn may have moved on since; that is told, and the predictions are compared here.
    "ignore::sfboost.SavedModelWarning",
    "ignore::sklearn.exceptions.InconsistentVersionWarning",
)
@pytest.mark.parametrize(("version", "name"), CASES)
def test_an_old_file_loads_and_predicts_as_it_did(version, name):
    if name in NEEDS:
        pytest.importorskip(NEEDS[name], reason=f"needs the extra with {NEEDS[name]}")
    expected = json.loads((FOLDER / f"v{version}-expected.json").read_text(encoding="utf-8"))
    rows = np.array(expected["rows"])
    model = sfboost.load(FOLDER / f"v{version}-{name}.sfb")
    # Another processor adds up in another order; float32 networks have seven digits.
    tolerance = 1e-5 if "network" in name else 1e-12
    np.testing.assert_allclose(model.predict_proba(rows), expected["predictions"][name], rtol=tolerance)
    assert model.classes_.tolist() == ["ill", "well"]


@pytest.mark.filterwarnings(
    "ignore::sfboost.SavedModelWarning", "ignore::sklearn.exceptions.InconsistentVersionWarning"
)
def test_old_names_are_known_by_their_new_ones(tmp_path):
    """The file has method, stability, evidence_ and source_prior_; it adapts, and is saved with new names."""
    model = sfboost.load(FOLDER / "v1-model.sfb")
    assert model.transport == "posterior"
    assert model.settings.method == "default"
    assert model.training_.evidence.convincing
    assert model.training_.leak == max(leak.lower for leak in model.leaks_)
    assert [head.name for head in model.training_.heads] == ["north", "south"]
    assert model.domains_[0].head is model.training_.heads[0].head
    assert model.domains_[0].calibration.n_rows == 300
    assert not {"method", "stability", "verbose", "evidence_", "source_prior_", "domains_"} & set(vars(model))
    rows = np.random.default_rng(0).normal(size=(500, 2))
    adapted = model.adapt(rows, answer="paper").predict_proba(rows)
    model.save(tmp_path / "again.sfb")
    again = sfboost.load(tmp_path / "again.sfb").adapt(rows, answer="paper")
    np.testing.assert_array_equal(again.predict_proba(rows), adapted)
    assert sfboost.load(FOLDER / "v1-adapted.sfb").adaptation.settings.transport == "posterior"


@pytest.mark.filterwarnings("ignore::sfboost.SavedModelWarning")
def test_an_adapted_network_of_an_earlier_name_is_an_adapted_classifier(tmp_path):
    pytest.importorskip("torch", reason="needs the extra with torch")
    assert (
        b'"kind":"AdaptedSFBClassifier"'
        in unpack((FOLDER / "v1-adapted-network.sfb").read_bytes())["manifest.json"]
    )
    adapted = sfboost.load(FOLDER / "v1-adapted-network.sfb")
    assert type(adapted) is sfboost.AdaptedClassifier
    rows = np.zeros((3, 2))
    assert adapted.explain(rows[0]).feature_names == ("Φ_U[0]",)
    adapted.save(tmp_path / "again.sfb")
    assert unpack((tmp_path / "again.sfb").read_bytes())["manifest.json"].count(b'"AdaptedClassifier"') == 1
    again = sfboost.load(tmp_path / "again.sfb")
    np.testing.assert_array_equal(again.predict_log_proba(rows), adapted.predict_log_proba(rows))


def test_the_current_format_has_its_files():
    assert {version for version, _ in CASES} == set(range(1, SCHEMA + 1))
    assert {name for version, name in CASES if version == SCHEMA} >= {
        "model",
        "adapted",
        "foreign",
        "network",
    }


@pytest.mark.filterwarnings(
    "ignore::sfboost.SavedModelWarning", "ignore::sklearn.exceptions.InconsistentVersionWarning"
)
def test_a_leak_model_saved_without_its_class_shares_finds_them_again():
    """The file is of a version that flattened to equal class shares; its rows have 20 % of one class."""
    pytest.importorskip("torch", reason="needs the extra with torch")
    model = sfboost.load(FOLDER / "v1-flattened-network.sfb")
    _, _, labels, domain = model.validation_
    shares = np.mean([(labels[domain == name] == "well").mean() for name in model.domains_])
    assert shares == pytest.approx(0.2, abs=0.02)
    np.testing.assert_allclose(model.leak_model_.prior, [1 - shares, shares], atol=0.01)
    rows = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    log_proba, unstable = model.stable_and_unstable(rows, flattened=False)
    equal = model.leak_model_.flatten(np.exp(log_proba), unstable, prior=[0.5, 0.5])
    odds = model.leak_model_.prior / 0.5 * equal
    np.testing.assert_allclose(model.predict_proba(rows), odds / odds.sum(axis=1, keepdims=True), atol=1e-9)


@pytest.mark.filterwarnings("ignore::sfboost.SavedModelWarning")
@pytest.mark.parametrize("name", ["network", "adapted-network"])
def test_a_network_saved_with_flat_parameters_has_a_plan_and_is_saved_with_it(name, tmp_path):
    pytest.importorskip("torch", reason="needs the extra with torch")
    from sfboost.torch import Plan

    def network_of(model):
        return getattr(model, "model", model)

    model = sfboost.load(FOLDER / f"v1-{name}.sfb")
    model.save(tmp_path / "again.sfb")
    for loaded in (network_of(model), network_of(sfboost.load(tmp_path / "again.sfb"))):
        assert loaded.plan == Plan(
            steps=40, unstable_steps=40, learning_rate=0.01, precision="float32", verbose=0
        )
        assert (loaded.penalty, loaded.penalty_weight, loaded.random_state) == ("irm", 10.0, 0)
        assert not {"steps", "stability", "stability_weight", "l2", "precision", "evidence_"} & set(
            vars(loaded)
        )
        assert loaded.training_.evidence.convincing
        assert [head.name for head in loaded.training_.heads] == ["north", "south"]


@pytest.mark.filterwarnings("ignore::sfboost.SavedModelWarning")
def test_an_answer_that_own_domains_chose_keeps_what_it_was_chosen_by(tmp_path):
    """What play and the test for a change have learned is in the file: the model in it adapts again."""
    best = sfboost.load(FOLDER / "v1-best.sfb")
    assert best.decision_ == "adapted"
    assert {case.metric for case in best.model.training_.experience.cases} == {"brier"}
    rows = np.random.default_rng(0).normal(size=(500, 2))
    best.model.save(tmp_path / "again.sfb")
    again = sfboost.load(tmp_path / "again.sfb").adapt(rows)
    np.testing.assert_array_equal(again.predict_proba(rows), best.model.adapt(rows).predict_proba(rows))
    assert again.weights_ == best.model.adapt(rows).weights_
