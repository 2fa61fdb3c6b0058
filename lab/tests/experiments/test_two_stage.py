"""SFB beside trained baselines, many baselines at once, and our adapter on an f_S without its leak."""

import numpy as np
import pytest

pytest.importorskip("torch", reason="the [torch] extra brings the trainers")

from sfboost.adaptation import Settings, Training, adapt
from sfboost_lab.baselines.learned.boosting import SFB
from sfboost_lab.baselines.sfb import FlattenedSFB
from sfboost_lab.experiments import Group, Run, Session
from sfboost_lab.experiments import synthetic as experiment
from sfboost_lab.experiments.measuring import fit_by_contract, trainer_hyper
from sfboost_lab.experiments.networks import beside, fit_beside, fit_once
from sfboost_lab.experiments.store import Cache


def irm(seed=0, **changes):
    hyper = trainer_hyper("irm", "ac", **{"pretrain_steps": 20, "steps": 60, **changes})
    return Run("ac", "irm", seed, "test", hyper=hyper)


def session(folder, *runs):
    return Session(Group("sfboost_lab.experiments.synthetic:measure", runs), Cache(folder / "cache"))


def test_a_trained_baseline_comes_back_from_the_folder_as_it_was(tmp_path, monkeypatch):
    run = irm()
    rows = experiment.rows_of(run)
    fresh = fit_by_contract(run, session(tmp_path / "a"), rows)
    stored = fit_once(run, session(tmp_path / "b"), rows)
    monkeypatch.setattr(
        "sfboost_lab.experiments.networks.fit_by_contract", lambda *_: pytest.fail("trained again")
    )
    again = fit_once(run, session(tmp_path / "b"), rows)
    for other in (stored, again):
        np.testing.assert_array_equal(fresh.predict_proba(rows.train.X), other.predict_proba(rows.train.X))


def test_f_s_beside_is_the_baselines_up_to_its_temperature_and_phi_u_knows_the_unstable_column(tmp_path):
    stable = irm(steps=300, weight=500.0)
    run = beside(stable, steps=150, learning_rate=0.01, batch_size=256)
    rows = experiment.rows_of(run)
    here = session(tmp_path)
    made = fit_beside(run, here, rows)
    plain = fit_once(stable, here, rows)
    X = rows.places[0].X
    log_proba, unstable = made.stable_and_unstable(X)
    raw = np.log(plain.predict_proba(X))
    odds = log_proba[:, 1] - log_proba[:, 0]
    np.testing.assert_allclose(odds * made.temperature, raw[:, 1] - raw[:, 0], atol=1e-4)
    assert abs(np.corrcoef(unstable[:, 0], X[:, 1])[0, 1]) > 0.9


@pytest.mark.long
def test_flattening_takes_the_leak_out_before_adapting():
    run = Run("ac", "sfb", 0, "test")
    rows = experiment.rows_of(run)
    plain = SFB.preset("ac", steps=200, unstable_steps=200)
    plain = plain.fit(rows.train, validation=rows.pool, seed=3)
    X = rows.places[0].X
    stable, unstable = plain.stable_and_unstable(X)
    flat = plain.leak_model().flatten(np.exp(stable), unstable)
    settings, known = Settings(correction="posthoc", rounds=2), Training(evidence=plain.evidence_)
    expected = adapt(flat, unstable, settings=settings, training=known).predict_proba(flat, unstable)
    found = FlattenedSFB(correction="posthoc", rounds=2).adapt(plain, X).predict_proba(X)
    np.testing.assert_allclose(found, expected, atol=1e-10)
    assert not np.allclose(flat, np.exp(stable), atol=1e-6)
