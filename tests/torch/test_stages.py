"""The stages of training as data."""

import pytest

pytest.importorskip("torch", reason="needs the torch extra")

from sfboost.torch.plan import Goal, Plan, trials, unstable_trial

PLAN = Plan(
    pretrain_steps=1, steps=2, unstable_steps=3, learning_rate=0.1, unstable_learning_rate=0.2, cosine=True
)


def _shown(goal, plan):
    return [
        (trial.name, [(p.name, p.steps, p.risks, p.trained) for p in trial.phases])
        for trial in trials(goal, plan)
    ]


def test_the_shared_split_is_one_attempt_at_everything():
    phases = [("pretrain", 1, "both", "all"), ("joint", 2, "both", "all")]
    assert _shown(Goal(split="shared"), PLAN) == [("shared", phases)]


def test_apart_the_guess_comes_first_and_the_unstable_part_after_the_stable_one():
    stable = ("stable", [("pretrain", 1, "stable", "stable"), ("stable", 2, "stable", "stable")])
    guess = ("guess", [("guess", 3, "guess", "unstable")])
    unstable = ("unstable", [("unstable", 3, "joint", "unstable")])
    again = ("again", [("again", 2, "both", "stable")])
    assert _shown(Goal(), PLAN) == [guess, stable, unstable]
    assert _shown(Goal(), PLAN.changed(balance=False)) == [stable, unstable]
    assert _shown(Goal(), PLAN.changed(unstable_steps=0)) == [stable]
    assert _shown(Goal(split="alternating"), PLAN) == [guess, stable, unstable, again]


def test_each_phase_has_its_own_rate_and_only_penalised_ones_of_f_s_fall_along_a_cosine():
    phases = {p.name: p for trial in trials(Goal(split="alternating"), PLAN) for p in trial.phases}
    assert {name: (p.learning_rate, p.cosine, p.penalised) for name, p in phases.items()} == {
        "guess": (0.2, False, False),
        "pretrain": (0.1, False, False),
        "stable": (0.1, True, True),
        "unstable": (0.2, False, True),
        "again": (0.1, True, True),
    }


def test_in_turns_it_is_f_s_that_becomes_independent():
    told = {"penalty_weight": 5.0, "independence_weight": 7.0}
    for split, weight in (("separate", 7.0), ("alternating", 0.0)):
        goal = Goal(split=split, **told)
        assert unstable_trial(goal, PLAN).phases[0].weights(goal) == (5.0, weight)
    last = trials(goal, PLAN)[-1].phases[0]
    assert last.weights(goal) == (5.0, 7.0)
    assert last.detached
