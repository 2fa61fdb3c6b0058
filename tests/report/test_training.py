from copy import copy

import sfboost
from sfboost.report import TrainingFacts


def test_what_fit_leaves_behind_survives_a_file(case, tmp_path):
    model = copy(case.model)
    model.table_ = case.training.to_dict()
    model.save(tmp_path / "model.sfb")
    again = TrainingFacts.from_dict(sfboost.load(tmp_path / "model.sfb").table_)
    assert again.domains == case.training.domains
    assert again.checks == case.training.checks
    assert again.evaluation == case.training.evaluation


def test_the_evaluation_is_kept_with_its_reasons(case):
    assert {row["domain"] for row in case.training.evaluation} == {"north", "south", "east"}
    assert all(row["reason"] for row in case.training.evaluation)
