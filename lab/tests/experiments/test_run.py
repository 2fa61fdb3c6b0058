"""The identity of a run, and what its seeds depend on."""

from dataclasses import fields, replace

import numpy as np
import pytest

from sfboost_lab.experiments import Run

RUN = Run(
    "ac", "irm", seed=0, protocol="p", adapter="pl", data={"n": 5}, hyper={"w": 10}, adapter_hyper={"lr": 0.1}
)
CHANGES = {
    "dataset": "ce_dd",
    "trainer": "erm",
    "seed": 1,
    "protocol": "q",
    "adapter": "t3a",
    "data": {"n": 6},
    "hyper": {"w": 11},
    "adapter_hyper": {"lr": 0.2},
    "left_out": "train-0.9",
}


def test_every_field_is_part_of_the_identity():
    assert set(CHANGES) == {field.name for field in fields(Run)}
    ids = {replace(RUN, **{name: value}).id for name, value in CHANGES.items()}
    assert len(ids | {RUN.id}) == len(CHANGES) + 1


def test_equal_values_of_other_types_are_the_same_run():
    same = replace(RUN, hyper={"w": np.float64(10.0)}, data={"n": np.int64(5)})
    assert same == RUN
    assert same.id == RUN.id


def test_the_identity_is_the_same_in_every_release():
    """Records that are committed must be found again: this id may never change."""
    assert Run("ac", "erm", seed=0, protocol="test").id == "4c482f6ee8554a1fa7b7a3ab8659b94b"


def test_rows_depend_on_data_set_and_seed_alone():
    same = {
        name for name, value in CHANGES.items() if replace(RUN, **{name: value}).data_seed == RUN.data_seed
    }
    assert same == set(CHANGES) - {"dataset", "seed"}


def test_pretraining_is_shared_by_all_trainers_and_adapters():
    def seed(run):
        return run.pretraining_seed("mlp", 400)

    same = {name for name, value in CHANGES.items() if seed(replace(RUN, **{name: value})) == seed(RUN)}
    assert same == set(CHANGES) - {"dataset", "seed"}
    assert RUN.pretraining_seed("mlp", 400) != RUN.pretraining_seed("mlp", 600)


def test_adapters_share_the_trained_model():
    same = {
        n for n, value in CHANGES.items() if replace(RUN, **{n: value}).training_seed == RUN.training_seed
    }
    assert same == {"adapter", "adapter_hyper"}
    assert all(replace(RUN, **{name: value}).own_seed != RUN.own_seed for name, value in CHANGES.items())


@pytest.mark.parametrize("value", [float("nan"), object(), {1, 2}])
def test_what_cannot_be_written_down_is_refused(value):
    with pytest.raises(TypeError, match="in a run's identity"):
        _ = Run("ac", "erm", seed=0, protocol="p", hyper={"weight": value}).id
