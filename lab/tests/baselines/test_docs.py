"""The page on methods names every listed one."""

from pathlib import Path

import pytest

from sfboost_lab.baselines import ADAPTERS, TRAINERS

PAGE = Path(__file__).parents[3] / "docs" / "methods.md"


@pytest.mark.parametrize(("heading", "names"), [("## The trainers", TRAINERS), ("## The adapters", ADAPTERS)])
def test_every_method_is_in_its_table(heading, names):
    section = PAGE.read_text().split(heading)[1].split("\n## ")[0]
    for name in names:
        assert f"`{name}`" in section, name
