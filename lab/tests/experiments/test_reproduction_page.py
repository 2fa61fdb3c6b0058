"""Tables of docs/reproduction.md that were taken from records: figures and marks."""

import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="the [torch] extra brings the trainers")

from sfboost_lab.experiments import cmnist, cmnist_parts
from sfboost_lab.experiments.committed import committed_records
from sfboost_lab.experiments.paper import paper_table
from sfboost_lab.experiments.registry import EXPERIMENTS
from sfboost_lab.experiments.rendering import number, words
from sfboost_lab.experiments.tables import chosen_records

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "reproduction.md").read_text("utf-8")
#: Experiment → the heading below which its table stands, and how many of its rows are matched by name.
TABLES = {
    "synthetic": ("## Synthetic data", 11),
    "cmnist": ("## ColoredMNIST", 20),
    "cmnist-domains": ("**Over eleven agreements**", 19),
    "penalties": ("**Other penalties**", 8),
    "pacs": ("## PACS", 11),
}
_FIGURE = re.compile(r"[+-]?\d+\.\d|\b100\b")

pytestmark = pytest.mark.long


@cache
def rows_of(name):
    """Rows of the first table of an experiment, from the committed records, by name."""
    experiment = EXPERIMENTS[name]
    records = experiment.own(committed_records(experiment.protocols[0]), quick=False)
    return {row.label: (row, cells) for row, cells in experiment.tables(records)[0].rows}


def shown_below(heading):
    """Name → (whole first cell, the others) of the first table below a heading."""
    part = PAGE[PAGE.index(heading) :]
    lines = re.search(r"(?:^\|.*\|\n)+", part, re.M).group().splitlines()[2:]
    found = {}
    for line in lines:
        first, *rest = (cell.strip() for cell in line.strip("|").split(" | "))
        name = re.sub(r"[¹²³]| \(ORACLE\)|, 3 seeds", "", first).replace("  ", " ").strip()
        found[name.replace("pseudo-labels", "PL")] = (first, rest)
    return found


def figures(text):
    return {float(figure) for figure in _FIGURE.findall(re.sub(r"\(also [^)]*\)", "", text))}


@pytest.mark.parametrize("name", TABLES)
def test_rows_have_the_mark_and_the_figures_of_the_records(name):
    heading, n_rows = TABLES[name]
    shown, made = shown_below(heading), rows_of(name)
    both = shown.keys() & made.keys()
    assert len(both) == n_rows, (sorted(shown.keys() - both), sorted(made.keys() - both))
    for label in both:
        (first, rest), (row, cells) = shown[label], made[label]
        assert ("(ORACLE)" in first) == row.oracle, first
        assert ("¹" in first) == ("moved towards" in row.remark), first
        assert ("²" in first) == ("coloured like" in row.remark or "200 of 600" in row.remark), first
        assert ("³" in first) == (row.adapter in ("t3a", "pl-last", "pl-all") and name == "cmnist-domains")
        told = figures(" | ".join(rest))
        assert told, first
        assert told <= {float(figure) for cell in cells for figure in _FIGURE.findall(words(cell))}, first


def with_error(cell):
    return f"{number(cell.mean)} ± {number(cell.standard_error)}"


def test_the_summary_has_the_figures_of_the_records():
    head, *lines = re.search(r"^\| \| paper says.*\n(?:^\|.*\n)+", PAGE, re.M).group().splitlines()
    assert head.count("(ORACLE)") == 2  # the paper's way, and ours
    synthetic, mnist = rows_of("synthetic"), rows_of("cmnist")
    wanted = {
        "AC, 100 seeds": (0, synthetic, ("SFB (paper)", "SFB (paper), always 20 steps")),
        "CE-DD, 100 seeds": (1, synthetic, ("SFB (paper)", "SFB (paper), always 20 steps")),
        "ColoredMNIST, 10 seeds": (0, mnist, ("SFB (paper), published steps", "SFB (paper)")),
    }
    table = {cells[0]: cells for cells in ([c.strip() for c in x.strip("|").split("|")] for x in lines)}
    for line, (k, made, theirs) in wanted.items():
        _, paper, way, ours, _ = table[line]
        assert paper == number(made["SFB (ours)"][1][k].paper.mean)
        assert re.findall(r"[\d.]+ ± [\d.]+", way) == [with_error(made[label][1][k]) for label in theirs]
        labels = ("SFB (ours)", "SFB (ours), always post-hoc")
        always = [with_error(made[label][1][k]) for label in labels if label in made]
        assert re.findall(r"[\d.]+ ± [\d.]+", ours.replace("**", "")) == always
        assert all(made[label][0].oracle for label in (*theirs, "SFB (ours)"))


def listed(values):
    *first, last = (number(value) for value in values)
    return f"{', '.join(first)} and {last}"


def test_pacs_tells_the_gain_beside_the_level_and_the_papers_level():
    experiment = EXPERIMENTS["pacs"]
    _, gains = experiment.tables(experiment.own(committed_records("pacs"), quick=False))
    (gained,) = (cells for row, cells in gains.rows if row.label == "SFB (ours)")
    text = " ".join(PAGE.split())
    level = [cell.mean for cell in rows_of("pacs")["SFB (ours)"][1]]
    assert f"gains {listed([c.mean for c in gained])} points" in text
    assert f"to {listed(level)} (photo, art, cartoon, sketch; ORACLE" in text
    styles = ("photo", "art_painting", "cartoon", "sketch")
    before, after = (
        [paper_table("pacs").value(label, style).mean for style in styles]
        for label in ("SFB no adpt.", "SFB")
    )
    assert (
        f"it gains {listed([b - a for a, b in zip(before, after, strict=True)])}, to {listed(after)}" in text
    )
    assert sum(theirs > ours for theirs, ours in zip(after, level, strict=True)) == 3
    assert "above ours in three of four styles" in text
    shown = shown_below("## PACS")
    assert figures(" | ".join(shown["the paper's SFB"][1])) == set(after)
    assert figures(" | ".join(shown["the paper's SFB, no adaptation"][1])) == set(before)


def test_what_each_number_of_components_gains_on_pacs_is_what_the_page_says():
    records, gained = committed_records("pacs"), {}
    for record in records.values():
        run = record.run
        if run.adapter == "sfb-components" and run.left_out is None:
            place, n = f"test-{run.data['test']}", run.adapter_hyper["n_components"]
            gain = record.value(place) - records[run.unadapted().id].value(place)
            gained.setdefault((n, run.data["test"]), []).append(gain > 0)
    assert [len(seeds) for seeds in gained.values()] == [5] * 12
    assert all(all(seeds) for seeds in gained.values())
    assert "4, 8 and 16 of them gained in every style and seed" in " ".join(PAGE.split())


def test_what_stress_domains_choose_on_colored_mnist_is_what_the_page_says():
    records, (column,) = committed_records(cmnist.PROTOCOL), cmnist.COLUMNS
    chosen = chosen_records(cmnist_parts.SFB_OURS, column, records).values()
    three = sum(
        (r.run.adapter_hyper["correction"], r.run.adapter_hyper["rounds"]) == ("posthoc", 3) for r in chosen
    )
    means = []
    for told in cmnist.OURS["sfb-flat"]:
        row = replace(cmnist_parts.SFB_OURS, rule=None, adapter_hyper=told)
        found = chosen_records(row, column, records).values()
        means.append(100 * sum(r.value(column.place) for r in found) / len(found))
    one, _, five, likelihood = map(number, means)
    said = " ".join(PAGE.split())
    assert f"post-hoc in three rounds for {three} of {len(chosen)} seeds" in said
    assert f"One round has {one}, five {five}, the likelihood {likelihood} " in said
