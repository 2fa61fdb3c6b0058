"""Batches one after the other: a line each, an alarm that holds over all of them, labels that come late."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
from gaussian_domains import AS_IT_WAS, MIRRORED_U, fitted, rows

from sfboost.boosting.monitoring import LEVEL, History, MonitoredBatch, look_at, score_late


@pytest.fixture(scope="module")
def model():
    return fitted(np.random.default_rng(0), 400)


def site(rng, turned=False):
    return rows(rng, 300, MIRRORED_U if turned else AS_IT_WAS)


def batch(p_value, data=""):
    return MonitoredBatch("", 100, "pooled", "no_shift", "", p_value, {}, {}, {}, None, data, "")


def test_a_batch_says_what_adapting_afresh_says(model):
    X, _ = site(np.random.default_rng(1), turned=True)
    line, adapted = look_at(model, X, "may", "digest")
    assert (line.name, line.rows, line.model) == ("may", 300, "digest")
    assert (
        (line.decision, line.code)
        == (adapted.decision_, adapted.reason_.code)
        == ("adapted", "unstable_shifted")
    )
    assert line.p_value == adapted.shift_.p_value < 0.001
    assert set(line.features) == {"x0", "x1", "x2", "x3"} == set(line.inputs)
    assert sum(line.shares.values()) == pytest.approx(1.0)


def test_an_alarm_is_given_where_a_shift_stays_and_not_before(model):
    rng, history = np.random.default_rng(2), History()
    for month in range(6):
        history.add(look_at(model, site(rng, turned=month > 3)[0], str(month))[0])
        assert history.alarm == (month > 3)


def test_the_evidence_is_one_in_the_mean_where_p_values_are_uniform():
    rng = np.random.default_rng(0)
    ends = [History([batch(p) for p in rng.random(4)]).evidence[-1] for _ in range(20_000)]
    # A p-value that is never near zero loses what the rarest ones would have won.
    assert 0.6 < np.mean(ends) < 1.2


def test_no_more_than_one_in_twenty_histories_of_many_months_has_a_false_alarm():
    rng = np.random.default_rng(1)
    alarms = [History([batch(p) for p in rng.random(60)]).alarm for _ in range(1000)]
    assert np.mean(alarms) <= LEVEL


@pytest.mark.long
def test_domains_like_the_source_domains_raise_few_alarms_over_two_years(model):
    alarms = 0
    for world in range(20):
        rng = np.random.default_rng(100 + world)
        alarms += History([look_at(model, site(rng)[0], str(k))[0] for k in range(24)]).alarm
    assert alarms <= 3


def test_a_history_is_read_as_it_was_written_and_a_batch_twice_is_one(tmp_path):
    history, path = History([batch(0.3, "x"), batch(0.01, "y")]), tmp_path / "history.jsonl"
    history.add(replace(batch(0.02, "y"), estimated=(0.8, 0.7, 0.9)))
    history.write(path)
    assert History.read(path).batches == history.batches
    assert [one.p_value for one in history.batches] == [0.3, 0.02]
    assert History.read(tmp_path / "none").batches == []
    path.write_text('{"name": 1}\n')
    with pytest.raises(ValueError, match="line 1, is no batch"):
        History.read(path)


def test_late_labels_score_what_was_answered_and_say_when_to_train_again(model):
    rng, history = np.random.default_rng(3), History()
    X, y = site(rng, turned=True)
    history.add(look_at(model, X, "june")[0])
    order = rng.permutation(len(y))
    scored = score_late(model, history, X[order], y[order])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert scored.accuracy["answer"] == pytest.approx(model.adapt(X).score(X, y), abs=0.01)
    assert scored.accuracy["pooled"] == model.score(X, y)
    assert scored.name == "june"
    assert not scored.retrain
    with pytest.raises(ValueError, match="No batch of this history has these 100 rows"):
        score_late(model, history, X[:100], y[:100])
