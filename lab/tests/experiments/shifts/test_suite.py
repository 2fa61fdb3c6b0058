"""The suite: who is own and who is new, what systems may see, and what its tables say."""

from dataclasses import replace

import numpy as np
import pytest

from sfboost_lab.datasets import find
from sfboost_lab.experiments import Measured, Record, Run
from sfboost_lab.experiments.cache import Cache
from sfboost_lab.experiments.grouped_runs import Group, Session
from sfboost_lab.experiments.rendering import words
from sfboost_lab.experiments.shifts.kinds import KINDS, Shifted
from sfboost_lab.experiments.shifts.suite import EXPERIMENT, measure
from sfboost_lab.experiments.shifts.suite_domains import suite_domains
from sfboost_lab.experiments.shifts.summary import tables
from sfboost_lab.experiments.shifts.systems import LEARNERS, SYSTEMS, WITH_SKADA, Fitted, strongest_name

#: "ac" serves as a table of four domains.
RUN = Run("ac", "logistic", 0, "test", data={"new": 3, "most": 300}, hyper=LEARNERS["logistic"])
HERE = [name for name in SYSTEMS if name not in WITH_SKADA]


@pytest.fixture(scope="module")
def fitted():
    return Fitted(suite_domains(RUN), "logistic", RUN.hyper)


def mirrored(fitted):
    (rows,) = fitted.domains.new.values()
    return KINDS["all mirrored"](rows, fitted.features, np.random.default_rng(0))


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


@pytest.mark.filterwarnings("ignore::sfboost.adaptation.decision.AdaptationWarning")
@pytest.mark.parametrize("name", HERE)
def test_no_system_sees_labels_of_the_new_domain(name, fitted):
    new = mirrored(fitted)
    other = Shifted(replace(new.rows, y=1 - new.rows.y), new.changed)
    one, two = (SYSTEMS[name].answer(fitted, rows).proba for rows in (new, other))
    np.testing.assert_array_equal(one, two)
    np.testing.assert_allclose(one.sum(axis=1), 1.0)


def test_dropping_the_true_list_reads_none_of_it(fitted):
    new = mirrored(fitted)
    other = Shifted(replace(new.rows, unstable=new.rows.unstable + 100.0), new.changed)
    one, two = (SYSTEMS["drop"].answer(fitted, rows).proba for rows in (new, other))
    np.testing.assert_array_equal(one, two)
    untouched = Shifted(new.rows)
    np.testing.assert_array_equal(
        SYSTEMS["drop"].answer(fitted, untouched).proba, SYSTEMS["pooled"].answer(fitted, untouched).proba
    )


def test_the_strongest_feature_is_the_one_the_pooled_model_listens_to():
    made = suite_domains(Run("gaussian", "logistic", 0, "test", data={"new": 2, "most": 500}))
    loud = replace(made.own, unstable=np.column_stack([made.own.unstable[:, 0], 3.0 * made.own.y]))
    known = replace(made, own=loud, groups=np.arange(2), names=("quiet", "loud"))
    assert strongest_name(Fitted(known, "logistic", {})) == "loud"


def test_a_run_measures_every_kind_that_the_table_can_undergo():
    run = replace(RUN, adapter="sfb-safe", data={"new": 3, "most": 200})
    made = measure(run, Session(Group("m:f", (run,)), Cache("nowhere")))
    assert set(made.metrics) == {f"test-{kind}" for kind in KINDS if kind != "category recoded"}
    assert set(made.diagnostics["decision"]) == set(made.metrics)
    assert made.metrics["test-as is"]["rows"] == 200
    assert made.trained_on == tuple(sorted(set(suite_domains(run).domain)))


def records(system, accuracy, p=0.5, data=None):
    """One record of one new domain of 1000 rows, the same accuracy after every kind."""
    run = Run("impact", "logistic", 0, "shifts", adapter=system, data=data or {"new": 0, "most": 2000})
    scores = {"accuracy": accuracy, "rows": 1000.0, "p_change": p}
    said = {"decision": {f"test-{kind}": "pooled" for kind in KINDS}}
    metrics = {f"test-{kind}": scores for kind in KINDS}
    own = tuple("abcdef")[: run.data.get("own") or 6]
    return {run.id: Record(run, Measured(metrics, diagnostics=said, trained_on=own), 0.0)}


def cells(made, title, label):
    (table,) = (table for table in made if table.title.startswith(title))
    (found,) = (cells for row, cells in table.rows if row.label.startswith(label))
    return [words(cell) for cell in found]


@pytest.fixture(scope="module")
def made():
    few = {"new": 0, "own": 2, "most": 2000}
    return tables(
        {
            **records("pooled", 0.90),
            **records("stable", 0.80),
            **records("sfb", 0.85),
            **records("best", 0.895, p=0.01),
            **records("best", 0.70, p=0.20, data=few),
        }
    )


def test_targets_stand_beside_the_figures_of_best(made):
    assert cells(made, "As is (", "SFB (ours), best") == ["89.5 (1); target ≥ 89.7, short by 0.2"]
    assert cells(made, "As is (", "pooled") == ["90.0 (1)"]
    assert cells(made, "Mirrored", "SFB (ours), best")[-1] == "89.5 (1); target ≥ 91.0, short by 1.5"
    assert cells(made, "Class means", "SFB (ours), best")[-1] == "89.5 (1); target ≥ 88.5, reached"
    assert cells(made, "SFB (ours), best, after", "attenuated") == ["89.5 (1); target ≥ 79.0, reached"]
    assert cells(made, "SFB (ours), best, after", "class means") == ["89.5 (1); target ≥ 77.0, reached"]


def test_alarms_have_an_exact_interval_and_seen_is_counted_by_own_domains(made):
    assert cells(made, "Alarms", "as is, all own domains, 1 new") == [
        "100.0 (1); target ≤ 5.0, short by 95.0",
        "2.5 (1)",
        "100.0 (1)",
    ]
    assert cells(made, "Seen", "all mirrored") == [
        "0.0 (1); target ≥ 95.0, short by 95.0",
        "100.0 (1); target ≥ 95.0, reached",
    ]
    assert cells(made, "What best decided", "as is") == ["100.0 (1)"]


def test_without_best_there_are_no_tables_of_it():
    titles = [table.title for table in tables(records("pooled", 0.9))]
    assert not any("best" in title or "Alarms" in title or "Seen" in title for title in titles)
    assert titles


def test_the_suite_is_here_when_the_files_of_all_its_tables_are(tmp_path, monkeypatch):
    monkeypatch.setenv("SFBOOST_DATA", str(tmp_path))
    monkeypatch.setenv("SFBOOST_CACHE", str(tmp_path / "cache"))
    assert not EXPERIMENT.here()
    for name in EXPERIMENT.data_sets:
        for file in find(name).wanted_files()[0]:
            (tmp_path / file.path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / file.path).touch()
    assert EXPERIMENT.here()
    assert "tables/gusto/" in EXPERIMENT.needs


def test_a_system_that_lacks_a_table_has_no_mean_over_tables():
    elsewhere = Run("tv16", "logistic", 0, "shifts", adapter="pooled", data={"new": 0, "most": 2000})
    (like,) = records("pooled", 0.7).values()
    more = {elsewhere.id: Record(elsewhere, like.measured, 0.0)}
    found = tables({**records("pooled", 0.9), **records("stable", 0.8), **more})
    assert cells(found, "Mirrored", "pooled") == ["90.0 (1)", "70.0 (1)", "80.0 (1)"]
    assert cells(found, "Mirrored", "stable") == ["80.0 (1)", "–", "–"]
