"""Rules choose by what they say they choose by."""

from dataclasses import replace

import pytest

from sfboost_lab.experiments import Measured, Record, Run
from sfboost_lab.experiments.rules import (
    LEAVE_ONE_OUT,
    STRESS_DOMAINS,
    TEST_DOMAIN,
    TRAINING_DOMAINS,
    VALIDATION_DOMAIN,
    choose,
)

RULES = (VALIDATION_DOMAIN, TRAINING_DOMAINS, STRESS_DOMAINS, LEAVE_ONE_OUT, TEST_DOMAIN)


def candidate(weight, seed=0):
    return Run("ac", "sfb", seed=seed, protocol="p", hyper={"weight": weight})


def record(run, **places):
    """Accuracy, or (accuracy, log loss), by place."""
    pairs = {place: value if isinstance(value, tuple) else (value, 0.5) for place, value in places.items()}
    metrics = {place.replace("__", "/"): {"accuracy": a, "log_loss": b} for place, (a, b) in pairs.items()}
    return Record(run, Measured(metrics, trained_on=("x", "y")), 0.0)


def book(*records):
    return {r.run.id: r for r in records}


def test_one_sweep_gives_each_rule_its_own_answer():
    runs = {weight: candidate(weight) for weight in (1, 2, 3, 4)}
    places = ("validate-0.6", "held__x", "stress__0.1", "oracle__test")
    records = book(
        *(
            record(run, **{p: 0.9 if i == k else 0.6 for i, p in enumerate(places)})
            for k, run in enumerate(runs.values())
        )
    )
    rules = (VALIDATION_DOMAIN, TRAINING_DOMAINS, STRESS_DOMAINS, TEST_DOMAIN)
    assert [choose(runs.values(), records, rule)[0].hyper["weight"] for rule in rules] == [1, 2, 3, 4]


def test_test_metrics_never_decide():
    good, bad = candidate(1), candidate(2)
    records = book(
        record(good, **{"validate": 0.7, "test": 0.1}), record(bad, **{"validate": 0.6, "test": 0.9})
    )
    for rule in RULES:
        if not rule.oracle:
            assert choose([good, bad], records, rule).get(0, good) == good


def test_only_the_rule_that_uses_test_labels_is_an_oracle_and_says_so():
    assert [rule for rule in RULES if rule.oracle] == [TEST_DOMAIN]
    assert all(("ORACLE" in rule.name) == rule.oracle for rule in RULES)


def test_ties_in_accuracy_go_to_the_lower_log_loss():
    runs = [candidate(w) for w in (1, 2, 3)]
    records = book(
        record(runs[0], validate=(0.750, 0.60)),
        record(runs[1], validate=(0.748, 0.50)),
        record(runs[2], validate=(0.700, 0.10)),
    )
    assert choose(runs, records, VALIDATION_DOMAIN) == {0: runs[1]}


def test_leave_one_out_needs_and_uses_one_run_per_training_domain():
    good, bad = candidate(1), candidate(2)
    needed = {run: LEAVE_ONE_OUT.needs(run, ("x", "y")) for run in (good, bad)}
    assert [n.left_out for n in needed[good]] == ["x", "y"]
    assert all(replace(n, left_out=None) == good for n in needed[good])
    own = [record(good, validate=0.1), record(bad, validate=0.9)]
    left = [
        record(run, **{f"left-out__{run.left_out}": accuracy, "test": 0.0})
        for run, accuracy in zip((*needed[good], *needed[bad]), (0.8, 0.7, 0.9, 0.3), strict=True)
    ]
    assert choose([good, bad], book(*own, *left), LEAVE_ONE_OUT) == {0: good}
    # A candidate whose domains are not all recorded is not compared.
    assert choose([good, bad], book(*own, *left[1:]), LEAVE_ONE_OUT) == {0: bad}


def test_seeds_choose_for_themselves_or_together():
    runs = {(w, s): candidate(w, s) for w in (1, 2) for s in (0, 1)}
    accuracy = {(1, 0): 0.9, (2, 0): 0.8, (1, 1): 0.5, (2, 1): 0.8}
    records = book(*(record(run, validate=accuracy[key]) for key, run in runs.items()))
    alone = choose(runs.values(), records, VALIDATION_DOMAIN)
    together = choose(runs.values(), records, VALIDATION_DOMAIN, across_seeds=True)
    assert {seed: run.hyper["weight"] for seed, run in alone.items()} == {0: 1, 1: 2}
    assert {seed: run.hyper["weight"] for seed, run in together.items()} == {0: 2, 1: 2}


def test_candidates_are_compared_on_the_seeds_that_have_all_of_them():
    # The sweep ends after seed 0; what seed 1 says of one candidate alone must not help or hurt it.
    runs = [candidate(1, 0), candidate(2, 0), candidate(2, 1)]
    for first, second, chosen in ((0.9, 0.6, {0: 1}), (0.6, 0.9, {0: 2, 1: 2})):
        accuracy = zip(runs, (first, second, 0.1), strict=True)
        records = book(*(record(run, validate=value) for run, value in accuracy))
        made = choose(runs, records, VALIDATION_DOMAIN, across_seeds=True)
        assert {seed: run.hyper["weight"] for seed, run in made.items()} == chosen


@pytest.mark.parametrize("rule", RULES)
def test_failed_runs_are_not_chosen(rule):
    run = candidate(1)
    assert choose([run], book(Record(run, None, 0.0, {}, "Traceback")), rule) == {}
