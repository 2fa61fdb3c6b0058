"""How a run is measured: what is shared, what is blind, what the paper's adapter does."""

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("torch", reason="the [torch] extra brings the trainers")

from sfboost import Settings, adapt
from sfboost_lab.baselines.sfb import OtherStable, SFBPaper, SFBPaperAsIs, SFBPaperLabels, Uncalibrated
from sfboost_lab.experiments import Group, Run, Session, sweep
from sfboost_lab.experiments import synthetic as experiment
from sfboost_lab.experiments.measuring import (
    Place,
    RunRows,
    adapter_hyper,
    fit_by_contract,
    labelled,
    measure_run,
    trainer_hyper,
    tuned,
)
from sfboost_lab.experiments.networks import fit_small
from sfboost_lab.experiments.store import Cache

#: Enough to beat chance, so that no stage is started again.
SHORT = {"steps": 30, "unstable_steps": 30, "learning_rate": 0.05, "batch_size": 256}


def session(tmp_path, *runs):
    return Session(Group("sfboost_lab.experiments.synthetic:measure", runs), Cache(tmp_path / "cache"))


def small(seed=0, trainer="sfb", **changes):
    hyper = trainer_hyper(trainer, "ac", **{**SHORT, **changes})
    return Run("ac", trainer, seed, "test", hyper=hyper)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A trained model of ours on AC, and its rows."""
    run = small(steps=150, unstable_steps=150)
    rows = experiment.rows_of(run)
    here = session(tmp_path_factory.mktemp("trained"), run)
    return fit_small(experiment.rows_of, run, here, rows), rows


def test_steps_of_empirical_risk_are_done_once_and_serve_every_penalty(tmp_path):
    def run(trainer):
        return Run("ac", trainer, 0, "test", hyper=trainer_hyper(trainer, "ac", pretrain_steps=5, steps=0))

    here = session(tmp_path)
    rows = experiment.rows_of(run("irm"))
    irm, vrex = (fit_by_contract(run(trainer), here, rows) for trainer in ("irm", "vrex"))
    assert run("irm").training_seed != run("vrex").training_seed
    np.testing.assert_array_equal(irm.predict_proba(rows.train.X), vrex.predict_proba(rows.train.X))
    assert len(list((tmp_path / "cache").iterdir())) == 1


def test_every_method_of_a_seed_meets_the_same_rows():
    one, other = experiment.rows_of(small()), experiment.rows_of(Run("ac", "erm", 0, "other"))
    for left, right in zip(one.places, other.places, strict=True):
        np.testing.assert_array_equal(left.X, right.X)
        np.testing.assert_array_equal(left.y, right.y)
    assert not np.array_equal(one.train.y, experiment.rows_of(small(seed=1)).train.y)


def test_the_rows_trained_on_are_those_of_the_published_code():
    from sfboost_lab.datasets import load

    run = small()
    plain = load("ac", random_state=run.data_seed)
    rows = experiment.rows_of(run)
    np.testing.assert_array_equal(rows.train.X, plain.pooled("train")[0])
    np.testing.assert_array_equal(rows.places[0].X, plain.xy("test-0.1")[0])
    held = next(place for place in rows.places if place.name == "held/train-0.95")
    assert not np.array_equal(held.y, plain.xy("train-0.95")[1])


@pytest.mark.parametrize("adapter", ["none", "sfb", "sfb-paper"])
def test_test_labels_change_nothing_but_the_score_of_the_test_domain(tmp_path, adapter):
    hyper = adapter_hyper(adapter, "ac")
    if adapter == "sfb-paper":
        hyper = tuned(hyper, "validate", steps=[1, 5])
    run = replace(small(), adapter=adapter, adapter_hyper=hyper)

    def lying(run):
        rows = experiment.rows_of(run)
        places = [Place(p.name, p.X, 1 - p.y) if not p.chooses else p for p in rows.places]
        return replace(rows, places=tuple(places))

    def fit(run, here, rows):
        return fit_small(experiment.rows_of, run, here, rows)

    here = session(tmp_path, run.unadapted())
    honest = measure_run(run, here, experiment.rows_of, fit, stress_rows=500)
    other = measure_run(run, session(tmp_path, run.unadapted()), lying, fit, stress_rows=500)
    assert other.diagnostics == honest.diagnostics
    for place, scores in honest.metrics.items():
        if place.startswith("test"):
            assert other.metrics[place]["accuracy"] == pytest.approx(1 - scores["accuracy"])
        else:
            assert other.metrics[place] == scores


def test_the_papers_adapter_is_the_paper_to_the_letter(trained):
    predictor, rows = trained
    X = rows.places[0].X
    stable, unstable = predictor.stable_and_unstable(X)
    ours = SFBPaper(batch_size=100, passes=True).adapt(predictor, X).predict_proba(X)
    theirs = adapt(np.exp(stable), unstable, settings=Settings("paper")).predict_proba(
        np.exp(stable), unstable
    )
    np.testing.assert_allclose(ours, theirs, atol=1e-12)


def test_the_scale_of_unstable_features_matters_only_if_they_are_taken_as_they_come(trained):
    predictor, rows = trained
    X = rows.places[0].X

    class Larger(OtherStable):
        def stable_and_unstable(self, X):
            stable, unstable = super().stable_and_unstable(X)
            return stable, 1.0 + 10.0 * unstable

    for kind, same in ((SFBPaper, True), (SFBPaperAsIs, False)):
        before, after = (kind().adapt(p, X).predict_proba(X) for p in (predictor, Larger(predictor)))
        assert np.allclose(before, after, atol=1e-8) == same


def test_without_calibration_the_logits_are_the_networks_own(trained):
    from sfboost_lab.experiments.networks import outputs

    predictor, rows = trained
    logits = outputs(predictor.network, rows.train.X)[2]
    own = Uncalibrated(predictor).stable_and_unstable(rows.train.X)[0]
    np.testing.assert_allclose(own[:, 1] - own[:, 0], logits[:, 1] - logits[:, 0], atol=1e-9)
    assert predictor.temperature != 1.0


def test_the_head_of_a_split_network_gives_its_probabilities(trained):
    predictor, rows = trained
    X = rows.places[0].X
    np.testing.assert_allclose(
        predictor.head.proba(predictor.features(X)), predictor.predict_proba(X), atol=1e-6
    )


def test_what_is_tuned_is_what_scores_best_blind_on_the_named_places(tmp_path, trained):
    predictor, rows = trained
    place = next(p for p in rows.places if p.name.startswith("validate"))
    grid = [1, 60, 600]
    accuracy = [
        float(np.mean(SFBPaper(steps=s).adapt(predictor, place.X).predict(place.X) == place.y)) for s in grid
    ]
    hyper = tuned(adapter_hyper("sfb-paper", "ac"), "validate", steps=grid)
    run = replace(small(), adapter="sfb-paper", adapter_hyper=hyper)
    here = session(tmp_path, run.unadapted())
    chosen = measure_run(run, here, experiment.rows_of, lambda *_: predictor).diagnostics["tuned"]["steps"]
    assert round(accuracy[grid.index(chosen)], 3) == round(max(accuracy), 3)


def test_true_labels_reach_what_the_unstable_feature_allows_and_must_be_given(tmp_path, trained):
    predictor, rows = trained
    hyper = tuned(adapter_hyper("sfb-paper-labels", "ac"), "held/", learning_rate=[0.1], steps=[20, 200])
    run = replace(small(), adapter="sfb-paper-labels", adapter_hyper=hyper)
    here = session(tmp_path, run.unadapted())
    measured = measure_run(run, here, experiment.rows_of, lambda *_: predictor)
    assert measured.test_access == "labelled"
    assert measured.metrics["test-0.1"]["accuracy"] > 0.85
    with pytest.raises(ValueError, match="needs labels"):
        SFBPaperLabels().adapt(predictor, rows.places[0].X)


def test_leaving_a_domain_out_leaves_none_of_its_rows():
    from sfboost_lab.datasets import load

    data = load("ac", n_rows=50)
    train = labelled(data, data.train)
    validation = labelled(data, data.validate * 2, names=data.train)
    rows = RunRows(train, validation, (), validation).without("train-0.7")
    assert set(rows.train.domain) == set(rows.validation.domain) == {"train-0.95"}
    assert rows.pool is None
    assert [(place.name, len(place.y)) for place in rows.places] == [("left-out/train-0.7", 50)]
    with pytest.raises(ValueError, match="No training domain 'x'"):
        rows.without("x")


def test_a_network_trained_in_company_is_the_one_trained_alone(tmp_path):
    runs = [small(seed, stability_weight=w) for seed in (0, 1) for w in (1, 10)]
    rows = experiment.rows_of(runs[0])
    together = fit_small(experiment.rows_of, runs[0], session(tmp_path / "a", *runs), rows)
    alone = fit_small(experiment.rows_of, runs[0], session(tmp_path / "b", runs[0]), rows)
    X = rows.places[0].X
    np.testing.assert_allclose(together.predict_proba(X), alone.predict_proba(X), atol=1e-3)


def test_a_group_that_goes_on_gives_what_it_would_have_given(tmp_path):
    models = [small(seed) for seed in (0, 1)]
    hyper = adapter_hyper("sfb", "ac", correction="posthoc")
    runs = [r for m in models for r in (m, replace(m, adapter="sfb", adapter_hyper=hyper))]
    group = Group("sfboost_lab.experiments.synthetic:measure", tuple(runs))
    whole = sweep([group], tmp_path / "whole").records
    assert all(record.ok for record in whole.values()), [r.error for r in whole.values()]
    # The first run alone is there, from another sweep; the trained networks are not.
    first = tmp_path / "part" / "records" / "first.jsonl"
    first.parent.mkdir(parents=True)
    first.write_text(whole[runs[0].id].to_line())
    part = sweep([group], tmp_path / "part").records
    assert {i: r.measured.metrics for i, r in part.items()} == {
        i: r.measured.metrics for i, r in whole.items()
    }
    record = whole[runs[1].id].measured
    assert record.test_access == "unlabelled"
    assert record.trained_on == ("train-0.7", "train-0.95")
    assert record.calibration["temperature"] > 0
    assert {place.split("/")[0] for place in record.metrics} >= {"test-0.1", "validate-0.6", "held", "oracle"}
