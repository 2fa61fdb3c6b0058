"""The page on data sets names every one; `tests/test_pages.py` runs its examples."""

from pathlib import Path

from sfboost_lab.datasets import names

PAGE = Path(__file__).parents[3] / "docs" / "datasets.md"


def test_the_page_names_every_data_set():
    text = PAGE.read_text(encoding="utf-8")
    assert [name for name in names() if f"`{name}`" not in text] == []
