"""The closed list of types."""

import importlib
import pkgutil
from dataclasses import is_dataclass

import pytest
from sklearn.base import BaseEstimator

import sfboost
from sfboost.persistence.registry import KINDS, TYPES, name_of, type_of

NEEDS_TORCH = {name for name, module in TYPES.items() if module.startswith("sfboost.torch")}


@pytest.mark.parametrize("name", sorted(TYPES))
def test_every_name_leads_to_its_type_and_back(name):
    if name in NEEDS_TORCH:
        pytest.importorskip("torch", reason="needs the torch extra")
    assert name_of(type_of(name)) == name


def test_every_kind_is_listed_and_can_save():
    assert set(KINDS) <= set(TYPES)
    assert all(hasattr(type_of(kind), "save") for kind in set(KINDS) - NEEDS_TORCH)


def test_no_function_is_in_the_list():
    names = set(TYPES) - NEEDS_TORCH
    assert all(isinstance(type_of(name), type) for name in names)


def test_every_head_and_everything_an_adaptation_holds_is_listed():
    """A new result type that is not listed would make saving fail for users, not for us."""
    missing = []
    for room in ("adaptation", "leakage", "heads", "calibration"):
        for module in pkgutil.iter_modules([f"{sfboost.__path__[0]}/{room}"]):
            found = vars(importlib.import_module(f"sfboost.{room}.{module.name}"))
            for name, value in found.items():
                ours = isinstance(value, type) and value.__module__ == f"sfboost.{room}.{module.name}"
                kept = ours and (is_dataclass(value) or issubclass(value, BaseEstimator))
                if kept and not name.startswith("_") and name_of(value) is None:
                    missing.append(name)
    # Never part of a fitted model.
    assert sorted(missing) == [
        "Amount",
        "Climb",
        "Coordinates",
        "Curved",
        "Explanation",
        "Learned",
        "LikelihoodSums",
        "Narrow",
        "Overview",
        "Point",
        "Problem",
        "RowSketch",
        "SoftLabelMixin",
        "Stack",
        "StressDomain",
        "StressTable",
        "Whitening",
        "Yardstick",
    ]


def test_a_class_that_only_has_the_name_is_another_class():
    assert name_of(type("Temperature", (), {"__module__": "sfboost.elsewhere"})) is None
