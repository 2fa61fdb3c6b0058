"""The suite: who is own and who is new, and what happens to the new one."""

from dataclasses import replace

import numpy as np

from sfboost_lab.experiments import Run
from sfboost_lab.experiments.shifts.suite_domains import suite_domains
from sfboost_lab.experiments.shifts.systems import LEARNERS, Fitted

#: "ac" serves as a table of four domains.
RUN = Run("ac", "logistic", 0, "test", data={"new": 3, "most": 300}, hyper=LEARNERS["logistic"])


def test_the_new_domain_is_none_of_the_own_and_no_domain_is_larger_than_it_may_be():
    made = suite_domains(RUN)
    assert set(made.new) == {"test-0.1"}
    assert len(set(made.domain)) == 3
    assert not set(made.new) & set(made.domain)
    assert max(np.unique(made.domain, return_counts=True)[1]) == 300
    assert len(made.new["test-0.1"]) == 300


def test_few_own_domains_are_some_of_all():
    few = suite_domains(replace(RUN, data={**RUN.data, "own": 2}))
    assert len(set(few.domain)) == 2
    assert set(few.domain) < set(suite_domains(RUN).domain)


def test_colourings_are_new_one_by_one():
    made = suite_domains(Run("colored_digits", "logistic", 0, "test", data={"most": 100}))
    assert set(made.domain) == {"train-0.9", "train-0.8"}
    assert list(made.new)[:2] == ["test-1.0", "test-0.9"]


def test_the_strongest_feature_is_the_one_the_pooled_model_listens_to():
    made = suite_domains(Run("gaussian", "logistic", 0, "test", data={"new": 2, "most": 500}))
    loud = replace(made.own, unstable=np.column_stack([made.own.unstable[:, 0], 3.0 * made.own.y]))
    known = replace(made, own=loud, groups=np.arange(2), names=("quiet", "loud"))
    assert Fitted(known, "logistic", {}).features.importance.argmax() == 1
