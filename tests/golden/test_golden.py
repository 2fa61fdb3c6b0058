"""Every public path answers today what it answered when `expected.json` was made (by `make.py`)."""

import json
import warnings

import pytest
from golden_cases import CASES, LONG
from golden_data import EXPECTED, differences, plain

EXPECTATIONS = json.loads(EXPECTED.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    "case", [pytest.param(name, marks=[pytest.mark.long] if name in LONG else []) for name in CASES]
)
def test_the_answers_are_the_golden_ones(case):
    """A number that changed on purpose: run `make.py`, and say in the commit why."""
    make, packages = CASES[case]
    for package in packages:
        pytest.importorskip(package, reason=f"needs the extra with {package}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of small rows; that they come is tested elsewhere
        found = list(differences(EXPECTATIONS[case], plain(make())))
    assert not found, "\n".join(found)


def test_there_are_no_expectations_without_a_case():
    assert set(EXPECTATIONS) == set(CASES)
