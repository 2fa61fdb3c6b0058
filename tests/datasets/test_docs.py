"""The page on data sets does what it says."""

import doctest
import os
from pathlib import Path

import pytest

from sfboost.lab.datasets import names

PAGE = Path(__file__).parents[2] / "docs" / "datasets.md"


@pytest.mark.data
def test_the_examples_of_the_page_run():
    pytest.importorskip("pandas", reason="the page shows tables: pip install 'sfboost[app]'")
    if not os.environ.get("SFBOOST_DATA"):
        pytest.skip("SFBOOST_DATA is not set: the worked example needs the real files")
    failed, run = doctest.testfile(str(PAGE), module_relative=False)
    assert run > 15
    assert failed == 0


def test_the_page_names_every_data_set():
    text = PAGE.read_text(encoding="utf-8")
    assert [name for name in names() if f"`{name}`" not in text] == []
