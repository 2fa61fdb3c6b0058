"""The kit passes what keeps the contract and names what does not."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest
from absent import run_without

from sfboost_lab.baselines import harness
from sfboost_lab.baselines.contract import HeadAdapter, HeadPredictor, LinearHead
from sfboost_lab.baselines.head_adapters import T3A
from sfboost_lab.baselines.pooled import PooledTrainer
from sfboost_lab.testing import ADAPTER_CHECKS, TRAINER_CHECKS, check_adapter, check_trainer, checks, example


def test_a_trainer_and_an_adapter_that_keep_the_contract_pass():
    check_trainer(PooledTrainer())
    check_adapter(T3A())


STOLEN = {}


@dataclass(frozen=True)
class Peeking(T3A):
    """Reads test labels through a back door although it declares none."""

    def adapt_features(self, head, features, y=None, *, seed=0):
        adapted = super().adapt_features(head, features)
        return replace(adapted, intercept=adapted.intercept + STOLEN["y"][: len(head.intercept)])


def test_labels_that_reach_predictions_are_noticed(monkeypatch):
    honest = harness.domain_rows

    def peeking_rows(domain, access, seed):
        STOLEN["y"] = domain.y
        return honest(domain, access, seed)

    monkeypatch.setattr(checks, "domain_rows", peeking_rows)
    with pytest.raises(AssertionError, match="declares no labels"):
        checks.adapter_sees_no_labels(Peeking(), PooledTrainer())


@dataclass(frozen=True)
class Broken(HeadAdapter):
    name: ClassVar[str] = "broken"
    title: ClassVar[str] = "Broken"
    fault: str = ""

    def adapt_features(self, head, features, y=None, *, seed=0):
        if self.fault == "source":
            head.coef[...] *= 2
        if self.fault == "global":
            np.random.rand()
        noise = np.random.default_rng().normal() if self.fault == "random" else 0.0
        scale = np.nan if self.fault == "nan" else 1.0
        return LinearHead(scale * head.coef + noise, head.intercept.copy())


@dataclass(frozen=True)
class KeepsItsHead(Broken):
    """A predictor whose head is one array, so that an adapter could spoil it."""

    def fit(self, train, **_):
        fitted = PooledTrainer().fit(train)
        return HeadPredictor(fitted, fitted.head)


@pytest.mark.parametrize(
    ("fault", "check", "sentence"),
    [
        ("source", checks.adapter_leaves_its_source, "changes the predictor"),
        ("random", checks.adapter_is_deterministic, "two answers"),
        ("global", checks.adapter_is_deterministic, "global random state"),
        ("nan", checks.adapter_knows_its_classes, "finite"),
    ],
)
def test_each_fault_of_an_adapter_is_named(fault, check, sentence):
    with pytest.raises(AssertionError, match=sentence):
        check(Broken(fault), KeepsItsHead())


def test_an_access_that_there_is_not_is_named():
    @dataclass(frozen=True)
    class Odd(T3A):
        test_access: ClassVar = "all"

    with pytest.raises(AssertionError, match="test_access must be one of"):
        checks.adapter_declares_itself(Odd(), PooledTrainer())


def test_writing_to_the_rows_fails():
    @dataclass(frozen=True)
    class Writes(PooledTrainer):
        def fit(self, train, **_):
            train.X[0] = 0.0

    with pytest.raises(ValueError, match="read-only"):
        TRAINER_CHECKS[3](Writes())


def test_the_kit_runs_without_torch_and_without_pytest(pytestconfig, monkeypatch):
    told = pytestconfig.getoption("pythonwarnings") or ()  # with -W, as here
    monkeypatch.setenv("PYTHONWARNINGS", ",".join(["error", *told]))
    code = (
        "from sfboost_lab.testing import check_adapter, check_trainer\n"
        "from sfboost_lab.baselines import ADAPTERS, TRAINERS\n"
        "check_trainer(TRAINERS['pooled']()); check_adapter(ADAPTERS['tent']())"
    )
    run_without(("torch", "pytest"), code)


def test_every_check_is_listed_once():
    for listed in (TRAINER_CHECKS, ADAPTER_CHECKS):
        assert len({check.__name__ for check in listed}) == len(listed)


@pytest.mark.parametrize("n_classes", [2, 5])
def test_the_example_has_every_class_in_every_domain(n_classes):
    for domain in example(n_classes).domains:
        assert len(np.unique(domain.y)) == n_classes
