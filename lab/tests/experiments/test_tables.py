"""Ours beside the paper's: which runs a row reports, and what each format says."""

import csv
import io
import math
from importlib.resources import files

import pytest

from sfboost_lab.experiments import Measured, Record, Run
from sfboost_lab.experiments.paper import PaperValue, paper_table
from sfboost_lab.experiments.rendering import FORMATS, best_of, label, to_csv, to_latex, to_markdown
from sfboost_lab.experiments.rules import TEST_DOMAIN, VALIDATION_DOMAIN
from sfboost_lab.experiments.tables import Cell, Row, Table, TableColumn, make_table, paired_table

COLUMN = TableColumn("AC", "ac", "test-0.1")


def record(accuracy, validation=0.5, trainer="sfb", adapter="none", seed=0, **hyper):
    run = Run("ac", trainer, seed=seed, protocol="p", adapter=adapter, hyper=hyper)
    metrics = {"test-0.1": {"accuracy": accuracy}, "validate": {"accuracy": validation, "log_loss": 0.5}}
    return Record(run, Measured(metrics), 0.0)


def table(rows, *records, paper=None):
    return make_table("T", rows, [COLUMN], {r.run.id: r for r in records}, paper)


def test_a_row_reports_the_runs_its_rule_chose():
    row = Row("SFB", "sfb", "sfb-paper", VALIDATION_DOMAIN)
    records = [
        record(test, validation, "sfb", "sfb-paper", seed, weight=w)
        for seed, w, validation, test in [
            (0, 1, 0.6, 0.7),
            (0, 2, 0.8, 0.9),
            (1, 1, 0.9, 0.8),
            (1, 2, 0.7, 0.95),
        ]
    ]
    assert table([row], *records).rows[0][1][0].values == pytest.approx((90.0, 80.0))


def test_without_adaptation_means_the_model_that_was_chosen_for_adaptation():
    row = Row("SFB no adpt.", "sfb", "sfb-paper", VALIDATION_DOMAIN, unadapted=True)
    records = [record(0.3, 0.9, "sfb", "none", weight=1), record(0.7, 0.1, "sfb", "none", weight=2)]
    records += [
        record(0.5, 0.1, "sfb", "sfb-paper", weight=1),
        record(0.5, 0.9, "sfb", "sfb-paper", weight=2),
    ]
    assert table([row], *records).rows[0][1][0].values == pytest.approx((70.0,))


def test_a_row_may_name_a_part_of_what_is_inside_a_hyper_parameter():
    records = [record(a, stable={"weight": w, "steps": 9}) for a, w in ((0.6, 1e4), (0.7, 1e5))]
    records.append(record(0.8, trainer="erm"))  # has none
    for weight, expected in ((1e4, (60.0,)), (1e5, (70.0,)), (1e6, ())):
        row = Row("SFB", "sfb", hyper={"stable": {"weight": weight}})
        assert table([row], *records).rows[0][1][0].values == pytest.approx(expected)
    none = Row("ERM", "erm", hyper={"stable": {"weight": 1e4}})
    assert table([none], *records).rows[0][1][0].values == ()


def test_differences_are_paired_over_the_seeds_that_both_rows_have():
    records = [record(a, trainer="erm", seed=s) for s, a in enumerate((0.1, 0.2, 0.3))]
    records += [record(a, trainer="irm", seed=s) for s, a in ((0, 0.7), (2, 0.8), (3, 0.9))]
    rows = Row("ERM", "erm", paper="ERM"), Row("IRM", "irm", paper="IRM")
    by_id, paper = {r.run.id: r for r in records}, paper_table("synthetic")
    ((row, (cell,)),) = paired_table("T", {"gain": rows}, [COLUMN], by_id, paper).rows
    assert cell.values == pytest.approx((60.0, 50.0))
    assert cell.paper.mean == pytest.approx(74.9 - 9.9)
    assert math.isnan(cell.difference_error)
    assert label(row) == "gain"


def test_a_difference_to_an_oracle_is_marked():
    rows = Row("Oracle", "erm", test_access="labelled"), Row("IRM", "irm")
    ((row, _),) = paired_table("T", {"gap": rows}, [COLUMN], {}).rows
    assert label(row) == "gap (ORACLE)"


def test_a_row_without_a_rule_refuses_to_choose():
    with pytest.raises(ValueError, match="no rule to choose"):
        table([Row("IRM", "irm")], record(0.1, trainer="irm", weight=1), record(0.2, trainer="irm", weight=2))


def test_the_error_of_the_difference_knows_deviations_from_errors():
    values = (88.0, 90.0, 92.0)
    own = 2 / math.sqrt(3)
    assert Cell(values, PaperValue(89.2, 2.9, "sd", 100)).difference_error == pytest.approx(
        math.hypot(own, 0.29)
    )
    assert Cell(values, PaperValue(89.2, 2.9, "se", 100)).difference_error == pytest.approx(
        math.hypot(own, 2.9)
    )


@pytest.mark.parametrize("oracle", [{"test_access": "labelled"}, {"rule": TEST_DOMAIN}])
def test_whatever_used_test_labels_says_oracle_in_every_format(oracle):
    row, honest = Row("GT", "sfb", **oracle), Row("ERM", "erm")
    made = make_table("T", [row, honest], [COLUMN], {})
    for render in FORMATS.values():
        lines = render(made).splitlines()
        assert any("GT" in line and ("ORACLE" in line or ",True," in line) for line in lines)
        assert all("ORACLE" not in line for line in lines if "ERM" in line)


def test_the_formats_carry_ours_the_papers_and_the_difference():
    records = [record(0.892, trainer="erm"), record(0.912, trainer="erm", seed=1)]
    made = table([Row("SFB", "erm", paper="SFB")], *records, paper=paper_table("synthetic"))
    assert "| 90.2 ± 1.0 (2); paper 89.2 ± 2.9, +1.0 ± 1.0 |" in to_markdown(made)
    assert r"$90.2 \pm 1.0$ {\scriptsize ($89.2 \pm 2.9,\ +1.0 \pm 1.0$)}" in to_latex(made)
    line = next(csv.DictReader(io.StringIO(to_csv(made))))
    assert float(line["mean"]) == pytest.approx(90.2)
    assert (line["seeds"], line["paper_mean"], line["paper_spread_is"]) == ("2", "89.2", "sd")
    assert float(line["difference"]) == pytest.approx(1.0)


NAMES = [
    f.name.removesuffix(".toml")
    for f in files("sfboost_lab.experiments.paper").iterdir()
    if f.name.endswith("toml")
]


@pytest.mark.parametrize("name", NAMES)
def test_every_table_of_the_paper_is_whole_and_plausible(name):
    found = paper_table(name)
    assert found.source
    for row in found.rows:
        for column in found.columns:
            value = found.value(row, column)
            assert 0 <= value.mean <= 100
            assert 0 <= value.spread < 7


def test_tables_of_the_paper_that_share_runs_agree():
    """The same figure stands in several tables; a slip of the pen in one would show."""
    domains, figure, main = paper_table("cmnist-domains"), paper_table("figure2"), paper_table("cmnist")
    for column in figure.columns:
        for row, curve in (("SFB", "SFB, 5 rounds"), ("IRM", "IRM")):
            assert abs(domains.value(row, column).mean - figure.value(curve, column).mean) < 0.06
    ablations = paper_table("ablations")
    assert main.value("SFB", "0.1").mean == ablations.value("+BC+CS, 3 rounds", "0.1").mean
    assert domains.value("SFB", "0.1").mean == ablations.value("+BC+CS, 5 rounds", "0.1").mean
    assert paper_table("penalties").value("IRM", "with adaptation").mean == domains.value("SFB", "0.1").mean


def test_an_oracle_is_never_the_best():
    rows = [
        (Row("ERM", "erm"), (Cell((70.0,)), Cell(()))),
        (Row("IRM", "irm"), (Cell((75.0,)), Cell(()))),
        (Row("Oracle", "erm", test_access="labelled"), (Cell((90.0,)), Cell(()))),
    ]
    best = best_of(Table("T", ("AC", "CE"), tuple(rows)))
    assert best[0] == 75.0
    assert math.isnan(best[1])
