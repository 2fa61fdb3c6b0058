"""Batches one after the other: a line each, an alarm that holds over all of them, labels that come late."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
from gaussian_domains import AS_IT_WAS, MIRRORED_U, fitted, rows

from sfboost import StableFeatureBoosting
from sfboost.boosting.monitoring import LEVEL, History, MonitoredBatch, look_at, score_late


@pytest.fixture(scope="module")
def model():
    return fitted(np.random.default_rng(0), 400)


def site(rng, turned=False):
    return rows(rng, 300, MIRRORED_U if turned else AS_IT_WAS)


def batch(p_value, data=""):
    return MonitoredBatch("", 100, "pooled", "no_shift", "", p_value, {}, {}, {}, "accuracy", None, data, "")


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
    assert history.add(replace(batch(0.02, "y"), estimated=(0.8, 0.7, 0.9))) == batch(0.01, "y")
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
        assert scored.scores["answer"] == pytest.approx(model.adapt(X).score(X, y), abs=0.01)
    assert scored.scores["pooled"] == model.score(X, y)
    assert scored.name == "june"
    assert not scored.retrain
    with pytest.raises(ValueError, match="No batch of this history has these 100 rows"):
        score_late(model, history, X[:100], y[:100])


def test_labels_that_are_still_missing_are_left_out_of_the_score(model):
    history, (X, y) = History(), site(np.random.default_rng(4))
    with pytest.raises(ValueError, match="holds no batch"):
        score_late(model, history, X, y)
    history.add(look_at(model, X, "july")[0])
    some = np.where(np.arange(len(y)) < 120, y, np.nan)
    scored = score_late(model, history, X, some)
    assert scored.rows == 120
    assert scored.scores["pooled"] == pytest.approx(model.score(X[:120], y[:120]))
    with pytest.raises(ValueError, match="1 of the 300 rows have a label"):
        score_late(model, history, X, np.where(np.arange(len(y)) < 1, y, np.nan))


def test_of_skewed_classes_auroc_is_estimated_and_labels_can_say_retrain():
    """A rare class whose unstable sign turned: accuracy would hardly tell, probabilities do."""

    def rare(rng, n_rows=2000, turned=False):
        y = (rng.random(n_rows) < 0.06).astype(int)
        stable = y[:, None] + rng.normal(size=(n_rows, 2))
        return np.hstack([stable, (2 * (1 - y if turned else y))[:, None] + rng.normal(size=(n_rows, 1))]), y

    rng, history = np.random.default_rng(5), History()
    parts = [rare(rng) for _ in range(3)]
    X, y = (np.concatenate([part[k] for part in parts]) for k in (0, 1))
    fitted = StableFeatureBoosting([0, 1], learner=None).fit(X, y, sample_domain=np.repeat(list("abc"), 2000))
    X_new, y_new = rare(rng)
    line, _ = look_at(fitted, X_new, "august")
    history.add(line)
    scored = score_late(fitted, history, X_new, y_new)
    assert line.metric == scored.metric == "auroc"
    value, low, high = line.estimated
    assert low <= scored.scores["answer"] <= high
    assert value == pytest.approx(scored.scores["answer"], abs=0.05)
    assert not scored.retrain
